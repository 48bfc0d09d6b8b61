#include "tests/lib/tls_scene.h"

#include "common/channel.h"
#include "common/fd.h"
#include "tests/lib/peer.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int choose(SSL *ssl, const unsigned char **out, unsigned char *size, const unsigned char *in,
		  unsigned in_size, void *arg)
{
	static const unsigned char other[] = "http/1.1";
	const struct tls_scene_server *server = arg;

	(void)ssl, (void)in_size;
	if (server->alpn == TLS_SCENE_ALPN_REFUSED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = server->alpn == TLS_SCENE_ALPN_WRONG ? other : in + 1;
	*size = server->alpn == TLS_SCENE_ALPN_WRONG ? sizeof other - 1 : in[0];
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *server_context(struct tls_scene_server *server)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	SSL_CTX_use_certificate(ctx, server->id.cert);
	SSL_CTX_use_PrivateKey(ctx, server->id.key);
	if (server->max_version != 0) {
		SSL_CTX_set_security_level(ctx, 0); /* or OpenSSL 3 would not speak the old ones itself */
		SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
		SSL_CTX_set_max_proto_version(ctx, server->max_version);
	}
	if (server->alpn != TLS_SCENE_ALPN_IGNORED)
		SSL_CTX_set_alpn_select_cb(ctx, choose, server);
	if (server->client_root) {
		X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), server->client_root->cert);
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	}
	return ctx;
}

static void echo(SSL *ssl, void *arg)
{
	char bytes[20000];
	int n;

	(void)arg;
	while ((n = SSL_read(ssl, bytes, sizeof bytes)) > 0)
		SSL_write(ssl, bytes, n);
}

void tls_scene_serve(int listener, void *arg)
{
	struct tls_scene_server *server = arg;
	SSL *ssl = SSL_new(server_context(server));
	int fd = accept(listener, NULL, NULL), on = 1;
	char bytes[20000];

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	SSL_set_fd(ssl, fd);
	if (SSL_accept(ssl) == 1) {
		if (server->talk)
			server->talk(ssl, server->arg);
		else
			echo(ssl, NULL);
		if (!server->abrupt)
			SSL_shutdown(ssl);
	}
	/* Let an alert arrive: a close with unread bytes would overtake it. */
	shutdown(fd, SHUT_WR);
	while (read(fd, bytes, sizeof bytes) > 0)
		;
}

void tls_scene_init(struct tls_scene *s, const char *san)
{
	*s = (struct tls_scene){.root = certs_root("test root")};
	s->server.id = certs_issue(&s->root, san, -60, 3600);
	settings_init(&s->settings);
	strcpy(s->settings.relay_host, "localhost");
	s->settings.relay_tls = true;
	s->settings.ca_fd = certs_cert_fd(&s->root);
}

void tls_scene_certify(struct tls_scene *s, const struct certs_identity *issuer, const char *san, long from_s,
		       long until_s)
{
	certs_free(&s->server.id);
	s->server.id = certs_issue(issuer, san, from_s, until_s);
}

void tls_scene_trust(struct tls_scene *s, const struct certs_identity *id)
{
	fd_close(&s->settings.ca_fd);
	s->settings.ca_fd = certs_cert_fd(id);
}

void tls_scene_show(struct tls_scene *s, const struct certs_identity *id)
{
	s->settings.cert_fd = certs_cert_fd(id);
	s->settings.key_fd = certs_key_fd(id, NULL);
}

void tls_scene_dial(struct tls_scene *s)
{
	s->settings.relay_port = peer_start(tls_scene_serve, &s->server);
	dialling_run(&s->dialling, &s->settings, 10000);
}

void tls_scene_reads(struct tls_scene *s, const char *text)
{
	char bytes[256];
	size_t size = strlen(text);

	cr_assert_not_null(s->dialling.transport, "%s", s->dialling.log);
	for (size_t got = 0; got < size;) {
		ssize_t n = dialling_read(s->dialling.transport, bytes + got, size - got);

		cr_assert_gt(n, 0, "%zd after %zu bytes of %s", n, got, text);
		got += (size_t)n;
	}
	cr_assert_arr_eq(bytes, text, size);
}

void tls_scene_echoes(struct tls_scene *s)
{
	cr_assert_not_null(s->dialling.transport, "%s", s->dialling.log);
	cr_assert_eq(dialling_write(s->dialling.transport, "ping", 4), 0);
	tls_scene_reads(s, "ping");
}

void tls_scene_refuses(struct tls_scene *s, const char *reason)
{
	s->settings.relay_port = 1;
	dialling_run(&s->dialling, &s->settings, 10000);
	dialling_failed(&s->dialling, CHANNEL_CLOSE_CREDENTIALS, reason);
	dialling_end(&s->dialling);
}

void tls_scene_end(struct tls_scene *s)
{
	dialling_end(&s->dialling);
	certs_free(&s->root);
	certs_free(&s->server.id);
}
