/* The real dialer against TLS peers on loopback: who is taken for the relay, and what is said when it is not.
 */
#include "common/channel.h"
#include "common/fd.h"
#include "tests/lib/peer.h"
#include "tests/lib/tls_scene.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

Test(dial_tls, certificate_for_an_address, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "IP:127.0.0.1");
	strcpy(c.settings.relay_host, "127.0.0.1");
	tls_scene_dial(&c);
	tls_scene_echoes(&c);
	tls_scene_end(&c);
}

Test(dial_tls, version_1_2_still_does, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	c.server.max_version = TLS1_2_VERSION;
	tls_scene_dial(&c);
	tls_scene_echoes(&c);
	cr_assert_not_null(strstr(c.dialling.log, "security=TLSv1.2"));
	tls_scene_end(&c);
}

Test(dial_tls, server_name_overrides_the_host, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "DNS:relay.test");
	strcpy(c.settings.server_name, "relay.test.");
	tls_scene_dial(&c);
	tls_scene_echoes(&c);
	tls_scene_end(&c);
}

Test(dial_tls, wrong_name_is_refused, .timeout = 20)
{
	static const char *const sans[] = {"DNS:other.test", "IP:127.0.0.1", "DNS:*ocalhost"};
	struct tls_scene c;

	for (size_t i = 0; i < sizeof sans / sizeof *sans; i++) {
		tls_scene_init(&c, sans[i]);
		tls_scene_dial(&c);
		dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS,
				"the relay's certificate is for another host, not for localhost");
		tls_scene_end(&c);
	}
}

Test(dial_tls, wrong_address_is_refused, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "IP:127.0.0.2,DNS:127.0.0.1");
	strcpy(c.settings.relay_host, "127.0.0.1");
	tls_scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "another host, not for 127.0.0.1");
	tls_scene_end(&c);
}

Test(dial_tls, common_name_does_not_count, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, NULL);
	strcpy(c.settings.server_name, "relay.test");
	tls_scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "another host, not for relay.test");
	tls_scene_end(&c);
}

Test(dial_tls, expired_or_not_yet_valid_is_refused, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	tls_scene_certify(&c, &c.root, "DNS:localhost", -3600, -60);
	tls_scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "the relay's certificate has expired");
	tls_scene_end(&c);
	tls_scene_init(&c, "DNS:localhost");
	tls_scene_certify(&c, &c.root, "DNS:localhost", 3600, 7200);
	tls_scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "not yet valid");
	tls_scene_end(&c);
}

Test(dial_tls, unknown_root_is_refused, .timeout = 20)
{
	struct certs_identity other = certs_root("other root");
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	tls_scene_trust(&c, &other);
	tls_scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "the relay's certificate is from an unknown CA");
	tls_scene_end(&c);
	certs_free(&other);
}

Test(dial_tls, certificate_itself_may_be_the_trust_anchor, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	tls_scene_trust(&c, &c.server.id);
	tls_scene_dial(&c);
	tls_scene_echoes(&c);
	tls_scene_end(&c);
}

Test(dial_tls, version_1_1_is_refused, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	c.server.max_version = TLS1_1_VERSION;
	tls_scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "TLS handshake: ");
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "protocol version");
	tls_scene_end(&c);
}

Test(dial_tls, peer_without_h2_is_refused, .timeout = 20)
{
	static const enum tls_scene_alpn ways[] = {TLS_SCENE_ALPN_IGNORED, TLS_SCENE_ALPN_WRONG,
						   TLS_SCENE_ALPN_REFUSED};
	struct tls_scene c;

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		tls_scene_init(&c, "DNS:localhost");
		c.server.alpn = ways[i];
		tls_scene_dial(&c);
		dialling_failed(&c.dialling, CHANNEL_CLOSE_NOT_HTTP2,
				"the peer does not speak HTTP/2 (ALPN)");
		tls_scene_end(&c);
	}
}

Test(dial_tls, client_certificate_is_shown, .timeout = 20)
{
	struct tls_scene c;
	struct certs_identity client;

	tls_scene_init(&c, "DNS:localhost");
	client = certs_issue(&c.root, "DNS:worker.test", -60, 3600);
	c.server.client_root = &c.root;
	tls_scene_show(&c, &client);
	tls_scene_dial(&c);
	tls_scene_echoes(&c);
	tls_scene_end(&c);
	certs_free(&client);
}

Test(dial_tls, missing_client_certificate_is_said_in_the_handshake, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	c.server.client_root = &c.root;
	c.server.max_version = TLS1_2_VERSION;
	tls_scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS,
			"the relay wants a client certificate (RELAY_CERT_FILE)");
	tls_scene_end(&c);
}

/* With TLS 1.3 the client is done before the server has looked. */
Test(dial_tls, missing_client_certificate_is_an_error_of_the_first_read, .timeout = 20)
{
	struct tls_scene c;
	char byte;

	tls_scene_init(&c, "DNS:localhost");
	c.server.client_root = &c.root;
	tls_scene_dial(&c);
	cr_assert_not_null(c.dialling.transport, "%s", c.dialling.log);
	cr_assert_eq(dialling_read(c.dialling.transport, &byte, 1), -EPROTO);
	cr_assert_not_null(strstr(transport_why(c.dialling.transport),
				  "the relay wants a client certificate (RELAY_CERT_FILE)"));
	cr_assert_eq(dialling_write(c.dialling.transport, "x", 1), -EPIPE);
	tls_scene_end(&c);
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
	    {"HTTP/1.1 400 Bad Request\r\n\r\n",
	     "the peer does not speak TLS (wrong version number): RELAY_TLS=0?"},
	    {"SSH-2.0-OpenSSH_9.2\r\n", "the peer does not speak TLS (wrong version number): RELAY_TLS=0?"},
	    {"\1\1\6\4\1\1\1\1\1\1\3", "the peer does not speak TLS (wrong version number): RELAY_TLS=0?"},
	    {"", "the peer closed the connection without a word: RELAY_TLS=0?"},
	};
	struct tls_scene c;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		tls_scene_init(&c, "DNS:localhost");
		c.settings.relay_port = peer_start(garbage, (void *)(uintptr_t)cases[i].says);
		dialling_run(&c.dialling, &c.settings, 10000);
		dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, cases[i].reason);
		tls_scene_end(&c);
	}
}

Test(dial_tls, limit_ends_a_handshake_with_a_silent_peer, .timeout = 20)
{
	struct tls_scene c;
	uint16_t port = 0;
	FD_CLOSE int listener = peer_listen(&port);

	tls_scene_init(&c, "DNS:localhost");
	c.settings.relay_port = port;
	dialling_run(&c.dialling, &c.settings, 300);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_HANDSHAKE,
			"300 ms are over, waiting for the TLS handshake");
	tls_scene_end(&c);
}

Test(dial_tls, self_signed_is_refused, .timeout = 20)
{
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	tls_scene_certify(&c, NULL, "DNS:localhost", -60, 3600);
	tls_scene_dial(&c);
	dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS,
			"the relay's certificate is from an unknown CA (self-signed certificate)");
	tls_scene_end(&c);
}

Test(dial_tls, certificate_for_an_ipv6_address, .timeout = 20)
{
	struct tls_scene c;

	for (int wrong = 0; wrong <= 1; wrong++) {
		tls_scene_init(&c, wrong ? "IP:2001:db8::2,DNS:2001:db8::1" : "IP:2001:db8::1");
		strcpy(c.settings.server_name, "2001:db8::1");
		tls_scene_dial(&c);
		if (wrong)
			dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, "another host, not for 2001:db8::1");
		else
			tls_scene_echoes(&c);
		tls_scene_end(&c);
	}
}

/* Says the name that the client asked for. */
static void say_name(SSL *ssl, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)arg;
	if (!name)
		name = "none";
	SSL_write(ssl, name, (int)strlen(name));
	SSL_write(ssl, "!", 1);
}

/* RFC 6066 3: "Literal IPv4 and IPv6 addresses are not permitted", and no dot at the end. */
Test(dial_tls, the_name_is_said_and_an_address_is_not, .timeout = 20)
{
	static const struct {
		const char *host, *server_name, *said;
	} cases[] = {
	    {"localhost", "", "localhost!"}, {"localhost.", "", "localhost!"},
	    {"127.0.0.1", "", "none!"},      {"localhost", "127.0.0.1", "none!"},
	    {"localhost", "::1", "none!"},   {"127.0.0.1", "relay.test", "relay.test!"},
	};
	struct tls_scene c;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		tls_scene_init(&c, "DNS:localhost,DNS:relay.test,IP:127.0.0.1,IP:::1");
		strcpy(c.settings.relay_host, cases[i].host);
		strcpy(c.settings.server_name, cases[i].server_name);
		c.server.talk = say_name;
		tls_scene_dial(&c);
		tls_scene_reads(&c, cases[i].said);
		tls_scene_end(&c);
	}
}

/* A certificate from a CA that the relay does not know, or one that has expired. */
Test(dial_tls, refused_client_certificate_is_said, .timeout = 20)
{
	struct certs_identity other = certs_root("other root"), client[2];
	static const char *const alerts[] = {"unknown ca", "certificate expired"};
	struct tls_scene c;
	char byte;

	for (int i = 0; i < 4; i++) {
		const char *why;

		tls_scene_init(&c, "DNS:localhost");
		client[0] = certs_issue(&other, "DNS:worker.test", -60, 3600);
		client[1] = certs_issue(&c.root, "DNS:worker.test", -3600, -60);
		c.server.client_root = &c.root;
		c.server.max_version = i < 2 ? TLS1_2_VERSION : 0;
		tls_scene_show(&c, &client[i % 2]);
		tls_scene_dial(&c);
		if (i < 2) {
			dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS,
					"the relay refused the client certificate (RELAY_CERT_FILE): ");
			dialling_failed(&c.dialling, CHANNEL_CLOSE_TLS, alerts[i % 2]);
		} else {
			cr_assert_not_null(c.dialling.transport, "%s", c.dialling.log);
			cr_assert_eq(dialling_read(c.dialling.transport, &byte, 1), -EPROTO);
			why = transport_why(c.dialling.transport);
			cr_assert(
			    why &&
				strstr(why, "the relay refused the client certificate (RELAY_CERT_FILE): ") &&
				strstr(why, alerts[i % 2]),
			    "%s", why);
		}
		tls_scene_end(&c);
		certs_free(&client[0]);
		certs_free(&client[1]);
	}
	certs_free(&other);
}
