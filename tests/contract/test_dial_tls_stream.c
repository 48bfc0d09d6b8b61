/* The byte stream that the dialer gives on TLS: reading, writing, new keys, and its end. */
#include "tests/lib/peer.h"
#include "tests/lib/tls_scene.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

Test(dial_tls_stream, good_certificate_for_a_name, .timeout = 20)
{
	struct tls_scene c;
	char byte;

	tls_scene_init(&c, "DNS:localhost");
	tls_scene_dial(&c);
	tls_scene_echoes(&c);
	cr_assert_not_null(strstr(c.dialling.log, "security=TLSv1.3"));
	transport_shutdown(c.dialling.transport);
	cr_assert_eq(dialling_read(c.dialling.transport, &byte, 1), 0);
	tls_scene_end(&c);
}

static void send_much(SSL *ssl, void *arg)
{
	char bytes[5000];

	memset(bytes, 's', sizeof bytes);
	for (size_t size = *(size_t *)arg, n; size > 0; size -= n) {
		n = size < sizeof bytes ? size : sizeof bytes;
		if (SSL_write(ssl, bytes, (int)n) != (int)n)
			_exit(1);
	}
}

/* gRPC ends a call with trailers, so a stream that is cut is just an end: no trailers, a lost stream. */
Test(dial_tls_stream, end_without_close_notify_is_an_end, .timeout = 20)
{
	struct tls_scene c;
	size_t size = 3;
	char bytes[100];

	for (int abrupt = 0; abrupt <= 1; abrupt++) {
		tls_scene_init(&c, "DNS:localhost");
		c.server.talk = send_much;
		c.server.arg = &size;
		c.server.abrupt = abrupt;
		tls_scene_dial(&c);
		tls_scene_reads(&c, "sss");
		for (int i = 0; i < 3; i++)
			cr_assert_eq(dialling_read(c.dialling.transport, bytes, sizeof bytes), 0);
		cr_assert_null(transport_why(c.dialling.transport));
		tls_scene_end(&c);
	}
}

/* Bytes inside are told by transport_pending: the socket would not say so. */
Test(dial_tls_stream, short_reads_lose_nothing, .timeout = 30)
{
	struct tls_scene c;
	struct transport *t;
	size_t got = 0, size = 100000;
	ssize_t n;
	char bytes[7];

	tls_scene_init(&c, "DNS:localhost");
	c.server.talk = send_much;
	c.server.arg = &size;
	tls_scene_dial(&c);
	t = c.dialling.transport;
	while (got < size) {
		n = transport_read(t, bytes, sizeof bytes);
		cr_assert(n > 0 || n == -EAGAIN, "%zd", n);
		if (n > 0)
			got += (size_t)n;
		if (n == -EAGAIN)
			cr_assert_not(transport_pending(t));
		if (!transport_pending(t) && got < size)
			peer_wait(transport_fd(t), POLLIN);
	}
	tls_scene_end(&c);
}

static char nth(size_t i)
{
	return (char)('a' + i * 7 % 26 + i / 4096 % 3);
}

/* Writes size bytes as uneven pieces and reads their echo, with the peer's buffers full in between. */
Test(dial_tls_stream, many_pieces_are_joined_and_come_back_in_order, .timeout = 60)
{
	enum { SIZE = 3 * 1024 * 1024 };
	static char sent[SIZE], bytes[65536];
	struct tls_scene c;
	struct transport *t;
	size_t put = 0, got = 0;
	bool refused = false;

	for (size_t i = 0; i < SIZE; i++)
		sent[i] = nth(i);
	tls_scene_init(&c, "DNS:localhost");
	tls_scene_dial(&c);
	t = c.dialling.transport;
	cr_assert_not_null(t);
	while (got < SIZE) {
		size_t left = SIZE - put, a = left < 9 ? left : 9, b = left - a < 20000 ? left - a : 20000;
		struct iovec iov[3] = {
		    {sent + put, a}, {sent + put + a, b}, {sent + put + a + b, left - a - b}};
		ssize_t n = left > 0 ? transport_writev(t, iov, 3) : -EAGAIN;

		if (n > 0) {
			cr_assert_leq(n, 16384);
			put += (size_t)n;
			continue;
		}
		cr_assert_eq(n, -EAGAIN);
		refused |= put < SIZE;
		n = transport_read(t, bytes, sizeof bytes);
		if (n == -EAGAIN) {
			peer_wait(transport_fd(t), left > 0 ? POLLIN | POLLOUT : POLLIN);
			continue;
		}
		cr_assert_gt(n, 0);
		cr_assert(memcmp(bytes, sent + got, (size_t)n) == 0, "at %zu", got);
		got += (size_t)n;
	}
	cr_assert(refused);
	tls_scene_end(&c);
}

static void wait_for_the_end(SSL *ssl, void *arg)
{
	bool notified;
	char byte;
	int n;

	(void)arg;
	n = SSL_read(ssl, &byte, 1);
	notified = n <= 0 && SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN;
	n = (int)read(SSL_get_fd(ssl), &byte, 1);
	SSL_write(ssl, notified ? "notified " : "cut ", notified ? 9 : 4);
	SSL_write(ssl, n == 0 ? "fin" : "no fin", n == 0 ? 3 : 6);
}

/* grpc-client.md 20: the peer sees close_notify and FIN, and what it says then is still read. */
Test(dial_tls_stream, leaving_is_close_notify_and_fin, .timeout = 20)
{
	struct tls_scene c;
	char byte;

	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		tls_scene_init(&c, "DNS:localhost");
		c.server.max_version = version;
		c.server.talk = wait_for_the_end;
		tls_scene_dial(&c);
		cr_assert_not_null(c.dialling.transport, "%s", c.dialling.log);
		transport_shutdown(c.dialling.transport);
		tls_scene_reads(&c, "notified fin");
		cr_assert_eq(dialling_read(c.dialling.transport, &byte, 1), 0);
		tls_scene_end(&c);
	}
}

static void rekey_and_echo(SSL *ssl, void *arg)
{
	char bytes[16];
	int n;

	(void)arg;
	while ((n = SSL_read(ssl, bytes, sizeof bytes)) > 0) {
		SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
		SSL_write(ssl, bytes, n);
	}
}

/* Each read has to answer a key update, that is to write. */
Test(dial_tls_stream, key_updates_pass_unnoticed, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	c.server.talk = rekey_and_echo;
	tls_scene_dial(&c);
	for (int i = 0; i < 50; i++)
		tls_scene_echoes(&c);
	tls_scene_end(&c);
}

struct flood {
	int go[2]; /* a byte: the client's socket is full */
};

/* Asks for new keys while the client cannot write, then reads all that came and says how much it was, and
 * whether it was in order. */
static void rekey_a_full_client(SSL *ssl, void *arg)
{
	const struct flood *f = arg;
	size_t size = 0;
	bool in_order = true;
	char bytes[16384], text[64];
	int n;

	if (read(f->go[0], bytes, 1) != 1)
		_exit(1);
	SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
	SSL_write(ssl, "rekeyed", 7);
	while ((n = SSL_read(ssl, bytes, sizeof bytes)) > 0) {
		for (int i = 0; i < n; i++)
			in_order &= bytes[i] == nth(size + (size_t)i);
		size += (size_t)n;
	}
	n = snprintf(text, sizeof text, "%zu %s", size, in_order ? "in order" : "broken");
	SSL_write(ssl, text, n);
}

/* grpc-client.md 21: SSL_read may want to write, and cannot. What comes is read all the same, and no byte of
 * the write that was under way is lost or doubled. */
Test(dial_tls_stream, a_key_update_while_the_socket_is_full, .timeout = 30)
{
	static char sent[256 * 1024];
	struct tls_scene c;
	struct flood flood;
	struct transport *t;
	size_t put = 0, after;
	char text[64];
	ssize_t n;

	cr_assert_eq(pipe(flood.go), 0);
	tls_scene_init(&c, "DNS:localhost");
	c.server.talk = rekey_a_full_client;
	c.server.arg = &flood;
	tls_scene_dial(&c);
	t = c.dialling.transport;
	cr_assert_not_null(t, "%s", c.dialling.log);
	do {
		struct iovec iov = {sent, sizeof sent};

		for (size_t i = 0; i < sizeof sent; i++)
			sent[i] = nth(put + i);
		n = transport_writev(t, &iov, 1);
		put += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	cr_assert_eq(n, -EAGAIN);
	cr_assert_eq(write(flood.go[1], "g", 1), 1);
	tls_scene_reads(&c, "rekeyed");
	/* What the socket did not take whole must be offered again; then a little more. */
	after = put + 100000;
	for (; put < after; put += (size_t)n) {
		struct iovec iov = {sent, after - put < sizeof sent ? after - put : sizeof sent};

		for (size_t i = 0; i < sizeof sent; i++)
			sent[i] = nth(put + i);
		while ((n = transport_writev(t, &iov, 1)) == -EAGAIN)
			peer_wait(transport_fd(t), transport_write_wants_read(t) ? POLLIN : POLLOUT);
		cr_assert_gt(n, 0);
	}
	transport_shutdown(t);
	snprintf(text, sizeof text, "%zu in order", after);
	tls_scene_reads(&c, text);
	tls_scene_end(&c);
}

static void renegotiate(SSL *ssl, void *arg)
{
	char byte;

	(void)arg;
	SSL_renegotiate(ssl);
	SSL_do_handshake(ssl); /* HelloRequest leaves */
	SSL_write(ssl, "after", 5);
	SSL_read(ssl, &byte, 1);
}

/* RFC 9113 9.2.1 forbids it: TLS 1.2's other way to make a read write. It is declined, and what comes is
 * read. */
Test(dial_tls_stream, renegotiation_is_declined, .timeout = 20)
{
	struct tls_scene c;
	char bytes[64];

	tls_scene_init(&c, "DNS:localhost");
	c.server.max_version = TLS1_2_VERSION;
	c.server.talk = renegotiate;
	tls_scene_dial(&c);
	tls_scene_reads(&c, "after");
	cr_assert_leq(dialling_read(c.dialling.transport, bytes, sizeof bytes), 0);
	tls_scene_end(&c);
}

/* grpc-client.md 21: SSL_get_error looks at the queue, whoever put something there. */
Test(dial_tls_stream, errors_of_others_do_not_count, .timeout = 20)
{
	struct tls_scene c;
	char bytes[20000] = {0};
	struct iovec iov = {bytes, sizeof bytes};
	ssize_t n;

	tls_scene_init(&c, "DNS:localhost");
	tls_scene_dial(&c);
	tls_scene_echoes(&c);
	ERR_raise(ERR_LIB_USER, 1);
	cr_assert_eq(transport_read(c.dialling.transport, bytes, sizeof bytes), -EAGAIN);
	do {
		ERR_raise(ERR_LIB_USER, 1);
		n = transport_writev(c.dialling.transport, &iov, 1);
	} while (n > 0);
	cr_assert_eq(n, -EAGAIN);
	tls_scene_end(&c);
}

static void say_and_go(SSL *ssl, void *arg)
{
	const struct flood *f = arg;
	struct linger now = {1, 0};
	char byte;

	SSL_write(ssl, "bye", 3);
	/* The client has seen that it is there, and not read it. */
	if (read(f->go[0], &byte, 1) != 1)
		_exit(1);
	setsockopt(SSL_get_fd(ssl), SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(SSL_get_fd(ssl));
	_exit(0);
}

/* As of a plain socket, what came before the reset can still be read. */
Test(dial_tls_stream, what_came_before_a_write_failed_is_read, .timeout = 20)
{
	struct tls_scene c;
	struct flood flood;
	int err = 0;

	cr_assert_eq(pipe(flood.go), 0);
	tls_scene_init(&c, "DNS:localhost");
	c.server.talk = say_and_go;
	c.server.arg = &flood;
	tls_scene_dial(&c);
	cr_assert_not_null(c.dialling.transport, "%s", c.dialling.log);
	peer_wait(transport_fd(c.dialling.transport), POLLIN);
	cr_assert_eq(write(flood.go[1], "g", 1), 1);
	peer_wait(transport_fd(c.dialling.transport), POLLHUP);
	while (err == 0)
		err = dialling_write(c.dialling.transport, "x", 1);
	cr_assert(err == -EPIPE || err == -ECONNRESET, "%d", err);
	tls_scene_reads(&c, "bye");
	tls_scene_end(&c);
}
