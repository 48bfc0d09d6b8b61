/* The real dialer against small peers on loopback: addresses, plain streams, the deadline. */
#include "common/channel.h"
#include "common/clock.h"
#include "common/fd.h"
#include "netd/race.h"
#include "tests/lib/dialling.h"
#include "tests/lib/dns.h"
#include "tests/lib/peer.h"
#include "tests/lib/tls_scene.h"
#include "tests/lib/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void echo(int listener, void *arg)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);
	char bytes[4096];
	ssize_t n;

	(void)arg;
	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		fd_write_full(fd, bytes, (size_t)n);
}

static struct settings settings_for(const char *host, uint16_t port)
{
	struct settings s;

	settings_init(&s);
	strcpy(s.relay_host, host);
	s.relay_port = port;
	return s;
}

Test(dial, plain_stream_carries_bytes_and_ends, .timeout = 20)
{
	struct settings s = settings_for("127.0.0.1", peer_start(echo, NULL));
	struct dialling d;
	char bytes[16];
	struct iovec iov[2] = {{(char[]){"ab"}, 2}, {(char[]){"cd"}, 2}};

	dialling_run(&d, &s, 5000);
	cr_assert_not_null(d.transport, "%s", d.log);
	cr_assert_not_null(strstr(d.log, "security=plaintext"));
	cr_assert_eq(transport_writev(d.transport, iov, 2), 4);
	for (ssize_t got = 0; got < 4;)
		got += dialling_read(d.transport, bytes + got, sizeof bytes - (size_t)got);
	cr_assert_arr_eq(bytes, "abcd", 4);
	cr_assert_eq(transport_unsent(d.transport), 0);
	cr_assert_not(transport_pending(d.transport));
	transport_shutdown(d.transport);
	cr_assert_eq(dialling_read(d.transport, bytes, sizeof bytes), 0);
	dialling_end(&d);
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof value;

	cr_assert_eq(getsockopt(fd, level, name, &value, &size), 0);
	return value;
}

Test(dial, socket_is_tuned, .timeout = 20)
{
	struct settings s = settings_for("localhost", peer_start(echo, NULL));
	struct dialling d;
	int fd;

	dialling_run(&d, &s, 5000);
	cr_assert_not_null(d.transport, "%s", d.log);
	fd = transport_fd(d.transport);
	cr_assert_eq(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	cr_assert_eq(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 128 * 1024);
	cr_assert_eq(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 40000);
	cr_assert_eq(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	dialling_end(&d);
}

Test(dial, unsent_bytes_are_counted_while_the_peer_does_not_read, .timeout = 20)
{
	uint16_t port = 0;
	FD_CLOSE int listener = peer_listen(&port);
	struct settings s = settings_for("127.0.0.1", port);
	static char block[1 << 20];
	struct iovec iov = {block, sizeof block};
	struct dialling d;
	ssize_t n;

	dialling_run(&d, &s, 5000);
	while ((n = transport_writev(d.transport, &iov, 1)) > 0)
		;
	cr_assert_eq(n, -EAGAIN);
	cr_assert_gt(transport_unsent(d.transport), 0);
	dialling_end(&d);
}

Test(dial, reset_is_an_error, .timeout = 20)
{
	uint16_t port = 0;
	FD_CLOSE int listener = peer_listen(&port);
	struct settings s = settings_for("127.0.0.1", port);
	struct linger now = {1, 0};
	struct dialling d;
	char byte;
	int fd;

	dialling_run(&d, &s, 5000);
	fd = accept(listener, NULL, NULL);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(fd);
	cr_assert_eq(dialling_read(d.transport, &byte, 1), -ECONNRESET);
	cr_assert_eq(dialling_write(d.transport, "x", 1), -EPIPE);
	dialling_end(&d);
}

Test(dial, refused_connection_names_each_address, .timeout = 20)
{
	uint16_t port = 0;
	int listener = peer_listen(&port);
	struct settings s = settings_for("localhost", port);
	struct dialling d;
	char text[64];

	close(listener);
	dialling_run(&d, &s, 5000);
	dialling_failed(&d, CHANNEL_CLOSE_CONNECT, "127.0.0.1:");
	snprintf(text, sizeof text, "class=connect peer=localhost:%u reason=", port);
	dialling_failed(&d, CHANNEL_CLOSE_CONNECT, text);
	dialling_failed(&d, CHANNEL_CLOSE_CONNECT, "Connection refused");
	dialling_end(&d);
}

Test(dial, limit_ends_a_connection_that_nobody_answers, .timeout = 20)
{
	uint16_t port = 0;
	struct settings s;
	struct dialling d;
	uint64_t start;

	peer_deaf("127.0.0.1", &port);
	s = settings_for("127.0.0.1", port);
	start = clock_now_ms();
	dialling_run(&d, &s, 300);
	cr_assert_geq(clock_now_ms() - start, 300);
	dialling_failed(&d, CHANNEL_CLOSE_HANDSHAKE, "300 ms are over, waiting for a connection (127.0.0.1:");
	dialling_failed(&d, CHANNEL_CLOSE_HANDSHAKE, "no answer");
	dialling_end(&d);
}

/* --- a connection is good when SETTINGS have come --- */

static const char settings_frame[] = "\0\0\6\4\0\0\0\0\0\0\3\0\0\0\1";

/* An HTTP/2 server, as far as the dial sees: reads the greeting, says arg (or SETTINGS), waits for the end.
 */
static void answer(int listener, void *arg)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);
	char bytes[64];

	if (read(fd, bytes, sizeof bytes) <= 0)
		return;
	if (arg)
		fd_write_full(fd, arg, strlen(arg));
	else
		fd_write_full(fd, settings_frame, sizeof settings_frame - 1);
	shutdown(fd, SHUT_WR);
	while (read(fd, bytes, sizeof bytes) > 0)
		;
}

/* The other address of localhost, at the same port: what accepts there, and is no relay. */
static int stranger(uint16_t port)
{
	struct sockaddr_in6 a = {
	    .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0)
		cr_skip_test("no IPv6");
	cr_assert_eq(listen(fd, 8), 0);
	return fd;
}

static void hang_up(int listener)
{
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			close(accept(listener, NULL, NULL));
	}
	close(listener);
}

static void expect_v4(struct dialling *d)
{
	char bytes[sizeof settings_frame];
	size_t got = 0;

	cr_assert_not_null(d->transport, "%s", d->log);
	cr_assert_not_null(strstr(d->log, "address=127.0.0.1:"), "%s", d->log);
	cr_assert(d->end.has_address && d->end.address.any.sa_family == AF_INET);
	while (got < sizeof settings_frame - 1) {
		ssize_t n = dialling_read(d->transport, bytes + got, sizeof bytes - got);

		cr_assert_gt(n, 0);
		got += (size_t)n;
	}
	cr_assert_arr_eq(bytes, settings_frame, sizeof settings_frame - 1,
			 "what was looked at is there to be read");
}

Test(dial, an_address_that_accepts_and_closes_hides_no_other, .timeout = 20)
{
	uint16_t port = peer_start(answer, NULL);
	struct settings s = settings_for("localhost", port);
	struct dialling d;
	uint64_t start;

	hang_up(stranger(port));
	start = clock_now_ms();
	dialling_greet(&d, &s, "hello", 5000);
	expect_v4(&d);
	cr_assert_lt(clock_now_ms() - start, RACE_CONNECTED_MS);
	dialling_end(&d);
}

Test(dial, an_address_that_accepts_and_is_silent_hides_no_other, .timeout = 20)
{
	uint16_t port = peer_start(answer, NULL);
	struct settings s = settings_for("localhost", port);
	FD_CLOSE int silent = stranger(port);
	struct dialling d;

	dialling_greet(&d, &s, "hello", 5000);
	expect_v4(&d);
	dialling_end(&d);
	(void)silent;
}

/* And in TLS: nothing there answers a ClientHello. */
Test(dial, an_address_that_stalls_in_tls_hides_no_other, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	c.settings.relay_port = peer_start(tls_scene_serve, &c.server);
	FD_CLOSE int silent = stranger(c.settings.relay_port);

	dialling_run(&c.dialling, &c.settings, 5000);
	tls_scene_echoes(&c);
	cr_assert_not_null(strstr(c.dialling.log, "address=127.0.0.1:"), "%s", c.dialling.log);
	tls_scene_end(&c);
	(void)silent;
}

Test(dial, peers_that_are_no_relay_are_named, .timeout = 20)
{
	static const struct {
		const char *says, *reason;
		uint8_t close_class;
	} cases[] = {
	    {"HTTP/1.1 400 Bad Request\r\n\r\n",
	     "does not speak HTTP/2, but HTTP/1 (or it wants TLS: RELAY_TLS=1?)", CHANNEL_CLOSE_NOT_HTTP2},
	    {"\x15\3\1", "the peer answers in TLS: RELAY_TLS=1?", CHANNEL_CLOSE_NOT_HTTP2},
	    {"\x15\3\3\1\2\2\x46", "the peer answers in TLS: RELAY_TLS=1?", CHANNEL_CLOSE_NOT_HTTP2},
	    {"220 mail.example ESMTP\r\n", "the peer does not speak HTTP/2", CHANNEL_CLOSE_NOT_HTTP2},
	    {"", "the peer closed the connection without a word: RELAY_TLS=1?", CHANNEL_CLOSE_EOF},
	    {"\1", "127.0.0.1:", CHANNEL_CLOSE_EOF},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct settings s =
		    settings_for("127.0.0.1", peer_start(answer, (void *)(uintptr_t)cases[i].says));
		struct dialling d;

		dialling_greet(&d, &s, "hello", 5000);
		dialling_failed(&d, cases[i].close_class, cases[i].reason);
		cr_assert(d.end.has_address, "the next attempt begins after it");
		dialling_end(&d);
	}
}

Test(dial, limit_ends_the_wait_for_settings, .timeout = 20)
{
	uint16_t port = 0;
	FD_CLOSE int listener = peer_listen(&port);
	struct settings s = settings_for("127.0.0.1", port);
	struct dialling d;

	dialling_greet(&d, &s, "hello", 300);
	dialling_failed(&d, CHANNEL_CLOSE_HANDSHAKE,
			"300 ms are over, waiting for HTTP/2 (SETTINGS) (127.0.0.1:");
	dialling_end(&d);
}

/* In a child, where nothing may be asserted: 0, or the number of what went wrong. */
static int dial_with_a_silent_name_server(void)
{
	static const struct dns_entry entries[] = {{"relay.test", DNS_A, {"127.0.0.1"}, 0, true, false},
						   {"relay.test", DNS_AAAA, {"::1"}, 0, true, false},
						   {0}};
	struct settings s = settings_for("relay.test", 443);
	struct dialling d;
	int result = 0;

	if (world_enter("127.0.0.1 localhost\n", "nameserver 127.0.0.1\n") < 0)
		return 2;
	dns_start(entries, 53);
	dialling_run(&d, &s, 300);
	if (d.transport || d.end.close_class != CHANNEL_CLOSE_HANDSHAKE)
		result = 3;
	else if (!strstr(d.log, "300 ms are over, waiting for the name server"))
		result = 4;
	dialling_end(&d);
	return result;
}

Test(dial, limit_ends_the_wait_for_a_silent_name_server, .timeout = 20)
{
	int status;
	pid_t pid;

	world_need();
	pid = fork();
	if (pid == 0)
		_exit(dial_with_a_silent_name_server());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "%d", WEXITSTATUS(status));
}
