/* A TLS server on loopback in a child of its own, and netd's dialer against it. */
#ifndef TESTS_LIB_TLS_SCENE_H
#define TESTS_LIB_TLS_SCENE_H

#include "netd/settings.h"
#include "tests/lib/certs.h"
#include "tests/lib/dialling.h"

#include <openssl/ssl.h>
#include <stdbool.h>

enum tls_scene_alpn {
	TLS_SCENE_ALPN_H2,
	TLS_SCENE_ALPN_IGNORED, /* as by a server that knows no ALPN */
	TLS_SCENE_ALPN_WRONG,   /* http/1.1, which was not offered */
	TLS_SCENE_ALPN_REFUSED,
};

struct tls_scene_server {
	struct certs_identity id;
	const struct certs_identity *client_root; /* a client certificate from it is wanted */
	int max_version;                          /* 0: any */
	enum tls_scene_alpn alpn;
	/* What it does after the handshake; NULL: it echoes. Returns when it is done. */
	void (*talk)(SSL *ssl, void *arg);
	void *arg;
	bool abrupt; /* ends without close_notify */
};

/* The usual: a root, a server that it vouches for, and a client that trusts it. */
struct tls_scene {
	struct certs_identity root;
	struct tls_scene_server server;
	struct settings settings;
	struct dialling dialling;
};

/* san: what the server's certificate is for, NULL: nothing. A test may change the scene before it dials. */
void tls_scene_init(struct tls_scene *s, const char *san);
/* The server's certificate anew, from another issuer or for another time. */
void tls_scene_certify(struct tls_scene *s, const struct certs_identity *issuer, const char *san, long from_s,
		       long until_s);
/* The client trusts this one in place of the root. */
void tls_scene_trust(struct tls_scene *s, const struct certs_identity *id);
/* The client shows this one. */
void tls_scene_show(struct tls_scene *s, const struct certs_identity *id);
/* The server, for peer_start; arg: a struct tls_scene_server. */
void tls_scene_serve(int listener, void *arg);
void tls_scene_dial(struct tls_scene *s);
/* Connected, and "ping" comes back. */
void tls_scene_echoes(struct tls_scene *s);
/* Nothing is dialled, for the files are no good: the reason. */
void tls_scene_refuses(struct tls_scene *s, const char *reason);
/* Reads exactly this. */
void tls_scene_reads(struct tls_scene *s, const char *text);
void tls_scene_end(struct tls_scene *s);

#endif
