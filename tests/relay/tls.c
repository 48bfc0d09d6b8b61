/* TLS of the relay's side: 1.2 and up, ALPN h2. */
#include "tests/relay/internal.h"

#include <openssl/err.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_size, const unsigned char *in,
		     unsigned in_size, void *arg)
{
	(void)ssl;
	(void)arg;
	for (unsigned i = 0; i < in_size; i += 1u + in[i]) {
		if (in[i] == 2 && i + 3 <= in_size && memcmp(in + i + 1, "h2", 2) == 0) {
			*out = in + i + 1;
			*out_size = 2;
			return SSL_TLSEXT_ERR_OK;
		}
	}
	return SSL_TLSEXT_ERR_NOACK;
}

SSL_CTX *relay_tls_context(const struct relay_options *o)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	bool ok = ctx && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) &&
		  SSL_CTX_use_certificate_chain_file(ctx, o->cert_file) == 1 &&
		  SSL_CTX_use_PrivateKey_file(ctx, o->key_file, SSL_FILETYPE_PEM) == 1;

	/* OpenSSL writes without MSG_NOSIGNAL. */
	signal(SIGPIPE, SIG_IGN);
	if (ok && o->client_ca_file)
		ok = SSL_CTX_load_verify_file(ctx, o->client_ca_file) == 1;
	if (!ok) {
		fprintf(stderr, "relay: TLS files\n");
		ERR_print_errors_fp(stderr);
		SSL_CTX_free(ctx);
		return NULL;
	}
	if (o->client_ca_file)
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_alpn_select_cb(ctx, choose_h2, NULL);
	return ctx;
}
