/* The real dialer against TLS peers on loopback. */
#include "common/channel.h"
#include "common/fd.h"
#include "tests/lib/certs.h"
#include "tests/lib/dialling.h"
#include "tests/lib/peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum alpn { ALPN_H2, ALPN_IGNORED, ALPN_REFUSED };
enum ending { END_CLOSE_NOTIFY, END_ABRUPT };

struct server {
	struct certs_identity id;
	const struct certs_identity *client_root; /* a client certificate from it is wanted */
	int max_version;                          /* 0: any */
	enum alpn alpn;
	enum ending ending;
	size_t send; /* bytes sent before anything is read, instead of an echo */
};

static int choose(SSL *ssl, const unsigned char **out, unsigned char *size, const unsigned char *in,
		  unsigned in_size, void *arg)
{
	const struct server *server = arg;

	(void)ssl, (void)in_size;
	if (server->alpn == ALPN_REFUSED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = in + 1;
	*size = in[0];
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *server_context(struct server *server)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	SSL_CTX_use_certificate(ctx, server->id.cert);
	SSL_CTX_use_PrivateKey(ctx, server->id.key);
	if (server->max_version != 0) {
		SSL_CTX_set_security_level(ctx, 0); /* or OpenSSL 3 would not speak the old ones itself */
		SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
		SSL_CTX_set_max_proto_version(ctx, server->max_version);
	}
	if (server->alpn != ALPN_IGNORED)
		SSL_CTX_set_alpn_select_cb(ctx, choose, server);
	if (server->client_root) {
		X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), server->client_root->cert);
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	}
	return ctx;
}

static void send_much(SSL *ssl, size_t size)
{
	char bytes[5000];

	memset(bytes, 's', sizeof bytes);
	for (size_t n; size > 0; size -= n) {
		n = size < sizeof bytes ? size : sizeof bytes;
		if (SSL_write(ssl, bytes, (int)n) != (int)n)
			_exit(1);
	}
}

static void serve(int listener, void *arg)
{
	struct server *server = arg;
	SSL *ssl = SSL_new(server_context(server));
	int fd = accept(listener, NULL, NULL), n;
	char bytes[20000];

	SSL_set_fd(ssl, fd);
	if (SSL_accept(ssl) == 1) {
		if (server->send > 0)
			send_much(ssl, server->send);
		while (server->send == 0 && (n = SSL_read(ssl, bytes, sizeof bytes)) > 0)
			SSL_write(ssl, bytes, n);
		if (server->ending == END_CLOSE_NOTIFY)
			SSL_shutdown(ssl);
	}
	/* Let an alert arrive: a close with unread bytes would overtake it. */
	shutdown(fd, SHUT_WR);
	while (read(fd, bytes, sizeof bytes) > 0)
		;
}

/* The usual: a root, a server that it vouches for as san, and a client that trusts it. */
struct scene {
	struct certs_identity root;
	struct server server;
	struct settings settings;
	struct dialling dialling;
};

static void scene_init(struct scene *c, const char *san)
{
	c->root = certs_root("test root");
	c->server = (struct server){.id = certs_issue(&c->root, san, -60, 3600)};
	settings_init(&c->settings);
	strcpy(c->settings.relay_host, "localhost");
	c->settings.relay_tls = true;
	c->settings.ca_fd = certs_cert_fd(&c->root);
}

static void scene_end(struct scene *c)
{
	dialling_end(&c->dialling);
	certs_free(&c->root);
	certs_free(&c->server.id);
}

static void scene_dial(struct scene *c)
{
	c->settings.relay_port = peer_start(serve, &c->server);
	dialling_run(&c->dialling, &c->settings, 10000);
}

static void scene_echoes(struct scene *c)
{
	char bytes[8];

	cr_assert_not_null(c->dialling.transport, "%s", c->dialling.log);
	cr_assert_eq(dialling_write(c->dialling.transport, "ping", 4), 0);
	for (ssize_t got = 0; got < 4;)
		got += dialling_read(c->dialling.transport, bytes + got, sizeof bytes - (size_t)got);
	cr_assert_arr_eq(bytes, "ping", 4);
}

Test(dial_tls, good_certificate_for_a_name, .timeout = 20)
{
	struct scene c;
	char byte;

	scene_init(&c, "DNS:localhost");
	scene_dial(&c);
	scene_echoes(&c);
	cr_assert_not_null(strstr(c.dialling.log, "security=TLSv1.3"));
	transport_shutdown(c.dialling.transport);
	cr_assert_eq(dialling_read(c.dialling.transport, &byte, 1), 0);
	scene_end(&c);
}

Test(dial_tls, certificate_for_an_address, .timeout = 20)
{
	struct scene c;

	scene_init(&c, "IP:127.0.0.1");
	strcpy(c.settings.relay_host, "127.0.0.1");
	scene_dial(&c);
	scene_echoes(&c);
	scene_end(&c);
}

Test(dial_tls, version_1_2_still_does, .timeout = 20)
{
	struct scene c;

	scene_init(&c, "DNS:localhost");
	c.server.max_version = TLS1_2_VERSION;
	scene_dial(&c);
	scene_echoes(&c);
	cr_assert_not_null(strstr(c.dialling.log, "security=TLSv1.2"));
	scene_end(&c);
}

Test(dial_tls, server_name_overrides_the_host, .timeout = 20)
{
	struct scene c;

	scene_init(&c, "DNS:relay.test");
	strcpy(c.settings.server_name, "relay.test.");
	scene_dial(&c);
	scene_echoes(&c);
	scene_end(&c);
}

Test(dial_tls, wrong_name_is_refused, .timeout = 20)
{
	static const char *const sans[] = {"DNS:other.test", "IP:127.0.0.1", "DNS:*ocalhost"};
	struct scene c;

	for (size_t i = 0; i < sizeof sans / sizeof *sans; i++) {
		scene_init(&c, sans[i]);
		scene_dial(&c);
		dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS,
				"the relay's certificate is for another host, not for localhost");
		scene_end(&c);
	}
}

Test(dial_tls, wrong_address_is_refused, .timeout = 20)
{
	struct scene c;

	scene_init(&c, "IP:127.0.0.2,DNS:127.0.0.1");
	strcpy(c.settings.relay_host, "127.0.0.1");
	scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "another host, not for 127.0.0.1");
	scene_end(&c);
}

Test(dial_tls, common_name_does_not_count, .timeout = 20)
{
	struct scene c;

	scene_init(&c, NULL);
	strcpy(c.settings.server_name, "relay.test");
	scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "another host, not for relay.test");
	scene_end(&c);
}

Test(dial_tls, expired_or_not_yet_valid_is_refused, .timeout = 20)
{
	struct scene c;

	scene_init(&c, "DNS:localhost");
	certs_free(&c.server.id);
	c.server.id = certs_issue(&c.root, "DNS:localhost", -3600, -60);
	scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "the relay's certificate has expired");
	scene_end(&c);
	scene_init(&c, "DNS:localhost");
	certs_free(&c.server.id);
	c.server.id = certs_issue(&c.root, "DNS:localhost", 3600, 7200);
	scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "not yet valid");
	scene_end(&c);
}

Test(dial_tls, unknown_root_is_refused, .timeout = 20)
{
	struct certs_identity other = certs_root("other root");
	struct scene c;

	scene_init(&c, "DNS:localhost");
	fd_close(&c.settings.ca_fd);
	c.settings.ca_fd = certs_cert_fd(&other);
	scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "the relay's certificate is from an unknown CA");
	scene_end(&c);
	certs_free(&other);
}

Test(dial_tls, certificate_itself_may_be_the_trust_anchor, .timeout = 20)
{
	struct scene c;

	scene_init(&c, "DNS:localhost");
	fd_close(&c.settings.ca_fd);
	c.settings.ca_fd = certs_cert_fd(&c.server.id);
	scene_dial(&c);
	scene_echoes(&c);
	scene_end(&c);
}

Test(dial_tls, version_1_1_is_refused, .timeout = 20)
{
	struct scene c;

	scene_init(&c, "DNS:localhost");
	c.server.max_version = TLS1_1_VERSION;
	scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "TLS handshake: ");
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "protocol version");
	scene_end(&c);
}

Test(dial_tls, peer_without_h2_is_refused, .timeout = 20)
{
	static const enum alpn ways[] = {ALPN_IGNORED, ALPN_REFUSED};
	struct scene c;

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		scene_init(&c, "DNS:localhost");
		c.server.alpn = ways[i];
		scene_dial(&c);
		dialling_failed(&c.dialling, CHANNEL_CLOSE_NOT_HTTP2,
				"the peer does not speak HTTP/2 (ALPN)");
		scene_end(&c);
	}
}

Test(dial_tls, client_certificate_is_shown, .timeout = 20)
{
	struct scene c;
	struct certs_identity client;

	scene_init(&c, "DNS:localhost");
	client = certs_issue(&c.root, "DNS:worker.test", -60, 3600);
	c.server.client_root = &c.root;
	c.settings.cert_fd = certs_cert_fd(&client);
	c.settings.key_fd = certs_key_fd(&client, NULL);
	scene_dial(&c);
	scene_echoes(&c);
	scene_end(&c);
	certs_free(&client);
}

Test(dial_tls, missing_client_certificate_is_said_in_the_handshake, .timeout = 20)
{
	struct scene c;

	scene_init(&c, "DNS:localhost");
	c.server.client_root = &c.root;
	c.server.max_version = TLS1_2_VERSION;
	scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS,
			"the relay wants a client certificate (RELAY_CERT_FILE)");
	scene_end(&c);
}

/* With TLS 1.3 the client is done before the server has looked. */
Test(dial_tls, missing_client_certificate_is_an_error_of_the_first_read, .timeout = 20)
{
	struct scene c;
	const char *why;
	char byte;

	scene_init(&c, "DNS:localhost");
	c.server.client_root = &c.root;
	scene_dial(&c);
	cr_assert_not_null(c.dialling.transport, "%s", c.dialling.log);
	cr_assert_eq(dialling_read(c.dialling.transport, &byte, 1), -EPROTO);
	why = transport_why(c.dialling.transport);
	cr_assert(why && strstr(why, "the relay wants a client certificate (RELAY_CERT_FILE)"), "%s", why);
	cr_assert_eq(dialling_write(c.dialling.transport, "x", 1), -EPIPE);
	scene_end(&c);
}

static void garbage(int listener, void *arg)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);
	char bytes[1024];

	fd_write_full(fd, arg, strlen(arg));
	shutdown(fd, SHUT_WR);
	while (read(fd, bytes, sizeof bytes) > 0)
		;
}

Test(dial_tls, peer_that_speaks_no_tls, .timeout = 20)
{
	static const struct {
		const char *says, *reason;
	} cases[] = {
	    {"HTTP/1.1 400 Bad Request\r\n\r\n", "the peer does not speak TLS"},
	    {"SSH-2.0-OpenSSH_9.2\r\n", "the peer does not speak TLS"},
	    {"", "the peer closed the connection"},
	};
	struct scene c;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		scene_init(&c, "DNS:localhost");
		c.settings.relay_port = peer_start(garbage, (void *)(uintptr_t)cases[i].says);
		dialling_run(&c.dialling, &c.settings, 10000);
		dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, cases[i].reason);
		scene_end(&c);
	}
}

Test(dial_tls, limit_ends_a_handshake_with_a_silent_peer, .timeout = 20)
{
	struct scene c;
	uint16_t port = 0;
	FD_CLOSE int listener = peer_listen(&port);

	scene_init(&c, "DNS:localhost");
	c.settings.relay_port = port;
	dialling_run(&c.dialling, &c.settings, 300);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_HANDSHAKE,
			"300 ms are over, waiting for the TLS handshake");
	scene_end(&c);
}

Test(dial_tls, end_without_close_notify_is_an_end, .timeout = 20)
{
	static const enum ending ways[] = {END_CLOSE_NOTIFY, END_ABRUPT};
	struct scene c;
	char bytes[100];

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		scene_init(&c, "DNS:localhost");
		c.server.send = 3;
		c.server.ending = ways[i];
		scene_dial(&c);
		cr_assert_eq(dialling_read(c.dialling.transport, bytes, sizeof bytes), 3);
		cr_assert_eq(dialling_read(c.dialling.transport, bytes, sizeof bytes), 0);
		cr_assert_eq(dialling_read(c.dialling.transport, bytes, sizeof bytes), 0);
		scene_end(&c);
	}
}

/* Bytes inside are told by transport_pending: the socket would not say so. */
Test(dial_tls, short_reads_lose_nothing, .timeout = 30)
{
	struct scene c;
	struct transport *t;
	size_t got = 0;
	ssize_t n;
	char bytes[7];

	scene_init(&c, "DNS:localhost");
	c.server.send = 100000;
	scene_dial(&c);
	t = c.dialling.transport;
	while (got < c.server.send) {
		n = transport_read(t, bytes, sizeof bytes);
		cr_assert(n > 0 || n == -EAGAIN, "%zd", n);
		if (n > 0)
			got += (size_t)n;
		if (n == -EAGAIN)
			cr_assert_not(transport_pending(t));
		if (!transport_pending(t) && got < c.server.send)
			peer_wait(transport_fd(t), POLLIN);
	}
	scene_end(&c);
}

static char nth(size_t i)
{
	return (char)('a' + i * 7 % 26 + i / 4096 % 3);
}

/* Writes size bytes as uneven pieces and reads their echo, with the peer's buffers full in between. */
Test(dial_tls, many_pieces_are_joined_and_come_back_in_order, .timeout = 60)
{
	enum { SIZE = 3 * 1024 * 1024 };
	static char sent[SIZE], bytes[65536];
	struct scene c;
	struct transport *t;
	size_t put = 0, got = 0;
	bool refused = false;

	for (size_t i = 0; i < SIZE; i++)
		sent[i] = nth(i);
	scene_init(&c, "DNS:localhost");
	scene_dial(&c);
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
	scene_end(&c);
}

static void scene_refuses(struct scene *c, const char *reason)
{
	c->settings.relay_port = 1;
	dialling_run(&c->dialling, &c->settings, 10000);
	dialling_failed(&c->dialling, CHANNEL_CLOSE_CREDENTIALS, reason);
	dialling_end(&c->dialling);
}

Test(dial_tls, unusable_roots_are_named, .timeout = 20)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
	    {"", "RELAY_CA_FILE (or SSL_CERT_FILE, or the system's bundle): no certificate in it"},
	    {"no PEM at all\n",
	     "RELAY_CA_FILE (or SSL_CERT_FILE, or the system's bundle): no certificate in it"},
	    {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	     "RELAY_CA_FILE (or SSL_CERT_FILE, or the system's bundle): "},
	    {"-----BEGIN CERTIFICATE-----\nAAAA\n",
	     "RELAY_CA_FILE (or SSL_CERT_FILE, or the system's bundle): "},
	};
	struct scene c;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		scene_init(&c, "DNS:localhost");
		fd_close(&c.settings.ca_fd);
		c.settings.ca_fd = certs_text_fd(cases[i].text);
		scene_refuses(&c, cases[i].reason);
		certs_free(&c.root);
		certs_free(&c.server.id);
	}
	scene_init(&c, "DNS:localhost");
	fd_close(&c.settings.ca_fd);
	scene_refuses(&c, "RELAY_CA_FILE: not set, and no CA bundle was found");
	certs_free(&c.root);
	certs_free(&c.server.id);
}

/* One certificate, then filler up to exactly size bytes. */
static int long_bundle(const struct certs_identity *root, size_t size)
{
	static char text[LIMIT_PEM + 1];
	FD_CLOSE int cert = certs_cert_fd(root);
	ssize_t n = fd_read_full(cert, text, sizeof text);
	int fd;

	memset(text + n, '\n', size - (size_t)n);
	fd = certs_text_fd("");
	cr_assert_eq(fd_write_full(fd, text, size), 0);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

Test(dial_tls, roots_below_at_and_above_their_limit, .timeout = 30)
{
	struct scene c;

	for (int below = 1; below >= 0; below--) {
		scene_init(&c, "DNS:localhost");
		fd_close(&c.settings.ca_fd);
		c.settings.ca_fd = long_bundle(&c.root, LIMIT_PEM - (size_t)below);
		scene_dial(&c);
		scene_echoes(&c);
		scene_end(&c);
	}
	scene_init(&c, "DNS:localhost");
	fd_close(&c.settings.ca_fd);
	c.settings.ca_fd = long_bundle(&c.root, LIMIT_PEM + 1);
	scene_refuses(&c, "more than 4 MiB");
	certs_free(&c.root);
	certs_free(&c.server.id);
}

Test(dial_tls, unusable_certificate_or_key_is_named, .timeout = 20)
{
	struct scene c;
	struct certs_identity client, other;

	scene_init(&c, "DNS:localhost");
	client = certs_issue(&c.root, NULL, -60, 3600);
	other = certs_issue(&c.root, NULL, -60, 3600);
	c.settings.cert_fd = certs_cert_fd(&client);
	c.settings.key_fd = certs_key_fd(&other, NULL);
	scene_refuses(&c, "RELAY_KEY_FILE: the key does not belong to the certificate of RELAY_CERT_FILE");

	c.settings.ca_fd = certs_cert_fd(&c.root);
	c.settings.cert_fd = certs_cert_fd(&client);
	c.settings.key_fd = certs_key_fd(&client, "secret");
	scene_refuses(&c, "RELAY_KEY_FILE: the key is encrypted");

	c.settings.ca_fd = certs_cert_fd(&c.root);
	c.settings.cert_fd = certs_cert_fd(&client);
	c.settings.key_fd = certs_text_fd("nothing\n");
	scene_refuses(&c, "RELAY_KEY_FILE: no usable private key in it");

	c.settings.ca_fd = certs_cert_fd(&c.root);
	c.settings.cert_fd = certs_key_fd(&client, NULL);
	c.settings.key_fd = certs_key_fd(&client, NULL);
	scene_refuses(&c, "RELAY_CERT_FILE: no certificate in it");

	c.settings.ca_fd = certs_cert_fd(&c.root);
	c.settings.cert_fd = certs_cert_fd(&client);
	scene_refuses(&c, "RELAY_KEY_FILE: the other one is set, this one is not");
	certs_free(&c.root);
	certs_free(&c.server.id);
	certs_free(&client);
	certs_free(&other);
}

static void write_file(const char *dir, const char *name, int from)
{
	char path[256], text[8192];
	FD_CLOSE int pem = from, out = -1;
	ssize_t n = fd_read_full(pem, text, sizeof text);

	snprintf(path, sizeof path, "%s/%s", dir, name);
	out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(fd_write_full(out, text, (size_t)n), 0);
}

static void remove_tree(const char *dir, const char *const *names)
{
	char path[256];

	for (; *names; names++) {
		snprintf(path, sizeof path, "%s/%s", dir, *names);
		unlink(path);
	}
	rmdir(dir);
}

Test(dial_tls, roots_from_a_folder, .timeout = 20)
{
	static const char *const names[] = {"a.pem", "readme", "link.0", "fifo", NULL};
	struct certs_identity other = certs_root("other root");
	char dir[] = "/tmp/netd-ca-XXXXXX", path[256];
	struct scene c;

	scene_init(&c, "DNS:localhost");
	fd_close(&c.settings.ca_fd);
	cr_assert_not_null(mkdtemp(dir));
	strcpy(c.settings.ca_dir, dir);
	scene_refuses(&c, "SSL_CERT_DIR: no certificate in it");

	write_file(dir, "a.pem", certs_cert_fd(&other));
	write_file(dir, "readme", certs_text_fd("not a certificate, no newline at the end"));
	write_file(dir, "z.pem", certs_cert_fd(&c.root));
	snprintf(path, sizeof path, "%s/link.0", dir);
	cr_assert_eq(symlink("a.pem", path), 0);
	snprintf(path, sizeof path, "%s/fifo", dir);
	cr_assert_eq(mkfifo(path, 0600), 0);
	scene_dial(&c);
	scene_echoes(&c);
	dialling_end(&c.dialling);
	snprintf(path, sizeof path, "%s/z.pem", dir);
	unlink(path);
	remove_tree(dir, names);
	scene_refuses(&c, "SSL_CERT_DIR: cannot be opened");
	scene_end(&c);
	certs_free(&other);
}

Test(dial_tls, token_is_kept_and_the_rest_is_wiped, .timeout = 20)
{
	struct scene c;
	struct certs_identity client;

	scene_init(&c, "DNS:localhost");
	client = certs_issue(&c.root, NULL, -60, 3600);
	strcpy(c.settings.token, "kept");
	strcpy(c.settings.proxy_password, "wiped");
	c.settings.cert_fd = certs_cert_fd(&client);
	c.settings.key_fd = certs_key_fd(&client, NULL);
	scene_dial(&c);
	cr_assert_str_eq(c.settings.token, "kept");
	cr_assert_str_eq(c.settings.proxy_password, "");
	scene_echoes(&c);
	scene_end(&c);
	certs_free(&client);
}
