/* What a TLS client needs before there is a connection: OpenSSL itself, the roots, the client's certificate.
 */
#include "netd/tls.h"

#include "common/address.h"
#include "common/fd.h"
#include "common/limits.h"
#include "netd/tls_client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tls_setup {
	SSL_CTX *ctx;
	/* the client's own, NULL where it has none; the chain leads from it to its root */
	X509 *cert;
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
	char *dir_pem; /* what the files of ca_dirs hold, one after the other */
	size_t dir_size;
	const char *dir_failed;
};

struct pem {
	char *at;
	size_t size;
};

static void pem_free(struct pem *pem)
{
	if (pem->at)
		explicit_bzero(pem->at, pem->size);
	free(pem->at);
}

#define PEM_FREE __attribute__((cleanup(pem_free)))

/* Room for some more; what was there is wiped, for it may be a key. */
static int pem_grow(struct pem *pem, size_t used, size_t size)
{
	char *bigger;

	if (size <= pem->size)
		return 0;
	bigger = malloc(size);
	if (!bigger)
		return -ENOMEM;
	if (pem->at)
		memcpy(bigger, pem->at, used);
	pem_free(pem);
	pem->at = bigger;
	pem->size = size;
	return 0;
}

/* All of a descriptor, at most LIMIT_PEM. The count, -EFBIG or -errno. */
static ssize_t pem_read(int fd, struct pem *ret)
{
	size_t used = 0;

	for (;;) {
		int err = pem_grow(ret, used, used < 64 * LIMIT_KIB / 2 ? 64 * LIMIT_KIB : 2 * used);
		ssize_t n = err < 0 ? err : fd_read_full(fd, ret->at + used, ret->size - used);

		if (n < 0)
			return n;
		used += (size_t)n;
		if (used > LIMIT_PEM)
			return -EFBIG;
		if (used < ret->size)
			return (ssize_t)used;
	}
}

/* c_rehash's links lead to their neighbours: each certificate would come twice. */
static bool is_link_to_neighbour(int dirfd, const char *name)
{
	char target[256];
	ssize_t n = readlinkat(dirfd, name, target, sizeof target);

	return n > 0 && !memchr(target, '/', (size_t)n);
}

static const char *add_file(struct tls_setup *setup, int dirfd, const char *name)
{
	size_t size;
	FD_CLOSE int fd = -1;
	char *bigger;
	ssize_t n;

	if (is_link_to_neighbour(dirfd, name))
		return NULL;
	fd = fd_open_regular(dirfd, name, LIMIT_PEM, &size);
	if (fd < 0)
		return NULL;
	if (setup->dir_size + size + 1 > LIMIT_PEM)
		return "holds too much";
	bigger = realloc(setup->dir_pem, setup->dir_size + size + 1);
	if (!bigger)
		return "out of memory";
	setup->dir_pem = bigger;
	n = fd_read_full(fd, bigger + setup->dir_size, size);
	if (n <= 0)
		return NULL;
	bigger[setup->dir_size + (size_t)n] = '\n';
	setup->dir_size += (size_t)n + 1;
	return NULL;
}

static const char *read_dir(struct tls_setup *setup, DIR *dir)
{
	const struct dirent *e;
	const char *failed = NULL;

	while (!failed && (e = readdir(dir))) {
		if (e->d_name[0] != '.')
			failed = add_file(setup, dirfd(dir), e->d_name);
	}
	return failed;
}

/* A list as OpenSSL takes it. What is not there is skipped, unless it is all. */
static const char *read_dirs(struct tls_setup *setup, const char *list)
{
	const char *failed = "cannot be opened";
	bool opened = false;

	while (*list && (!opened || !failed)) {
		size_t n = strcspn(list, ":");
		char *path = strndup(list, n);
		DIR *dir = path && n > 0 ? opendir(path) : NULL;

		free(path);
		list += n + (list[n] == ':');
		if (!dir)
			continue;
		opened = true;
		failed = read_dir(setup, dir);
		closedir(dir);
	}
	return failed;
}

int tls_setup_new(const char *ca_dirs, struct tls_setup **ret)
{
	struct tls_setup *setup = calloc(1, sizeof *setup);

	if (!setup)
		return -ENOMEM;
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS, NULL);
	RAND_status();
	setup->ctx = SSL_CTX_new(TLS_client_method());
	if (!setup->ctx) {
		free(setup);
		return -ENOMEM;
	}
	if (ca_dirs[0] != '\0')
		setup->dir_failed = read_dirs(setup, ca_dirs);
	*ret = setup;
	return 0;
}

void tls_setup_free(struct tls_setup *setup)
{
	if (!setup)
		return;
	/* A connection may still hold the context. */
	SSL_CTX_set_cert_store(setup->ctx, X509_STORE_new());
	SSL_CTX_free(setup->ctx);
	X509_free(setup->cert);
	sk_X509_pop_free(setup->chain, X509_free);
	EVP_PKEY_free(setup->key);
	free(setup->dir_pem);
	free(setup);
}

static const char *queued_reason(void)
{
	unsigned long e = ERR_peek_last_error();
	const char *s = e ? ERR_reason_error_string(e) : NULL;

	return s ? s : "unknown error";
}

static int complain(struct buf_text *why, const char *what, const char *reason)
{
	buf_text_addf(why, "%s: %s", what, reason);
	return -EINVAL;
}

/* Certificates of a PEM text (OpenSSL's TRUSTED CERTIFICATE too, with what it says it is trusted for), handed
 * one by one to take. How many, or -EINVAL for one that cannot be read. */
static int each_certificate(const char *pem, size_t size, int (*take)(void *owner, X509 *x, int nth),
			    void *owner)
{
	BIO *in = BIO_new_mem_buf(pem, (int)size);
	int count = 0;
	X509 *x;

	ERR_clear_error();
	while (in && (x = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL))) {
		int ok = take(owner, x, count);

		X509_free(x);
		if (!ok)
			break;
		count++;
	}
	BIO_free(in);
	/* Its way to say that the text is over. */
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return -EINVAL;
	ERR_clear_error();
	return count;
}

static int take_root(void *owner, X509 *x, int nth)
{
	(void)nth;
	return X509_STORE_add_cert(owner, x);
}

static int add_roots(X509_STORE *store, const char *pem, size_t size, const char *what, struct buf_text *why)
{
	int n = each_certificate(pem, size, take_root, store);

	if (n > 0)
		return 0;
	return complain(why, what, n < 0 ? queued_reason() : "no certificate in it");
}

static int read_setting(int fd, const char *what, struct pem *ret, size_t *ret_size, struct buf_text *why)
{
	ssize_t n = pem_read(fd, ret);

	if (n == -EFBIG)
		return complain(why, what, "more than 4 MiB");
	if (n < 0)
		return complain(why, what, strerrordesc_np((int)-n));
	*ret_size = (size_t)n;
	return 0;
}

static int take_roots(struct tls_setup *setup, const struct settings *s, struct buf_text *why)
{
	static const char file[] = "RELAY_CA_FILE (or SSL_CERT_FILE, or the system's bundle)",
			  dir[] = "SSL_CERT_DIR";
	X509_STORE *store = SSL_CTX_get_cert_store(setup->ctx);
	PEM_FREE struct pem pem = {0};
	size_t size;
	int err;

	if (s->ca_fd < 0 && s->ca_dir[0] == '\0')
		return complain(why, "RELAY_CA_FILE", "not set, and no CA bundle was found");
	if (s->ca_fd >= 0) {
		err = read_setting(s->ca_fd, file, &pem, &size, why);
		return err < 0 ? err : add_roots(store, pem.at, size, file, why);
	}
	if (setup->dir_failed)
		return complain(why, dir, setup->dir_failed);
	return add_roots(store, setup->dir_pem ? setup->dir_pem : "", setup->dir_size, dir, why);
}

/* The first is ours, the others lead to its root. */
static int take_own(void *owner, X509 *x, int nth)
{
	struct tls_setup *setup = owner;

	if (!X509_up_ref(x))
		return 0;
	if (nth == 0) {
		setup->cert = x;
		return 1;
	}
	if (sk_X509_push(setup->chain, x) > 0)
		return 1;
	X509_free(x);
	return 0;
}

/* An encrypted key is refused: nobody is there to be asked. */
static int no_pass_phrase(char *buf, int size, int writing, void *asked)
{
	(void)buf, (void)size, (void)writing;
	*(bool *)asked = true;
	return -1;
}

static int take_key(struct tls_setup *setup, const char *pem, size_t size, struct buf_text *why)
{
	static const char what[] = "RELAY_KEY_FILE";
	BIO *in = BIO_new_mem_buf(pem, (int)size);
	bool asked = false;

	setup->key = in ? PEM_read_bio_PrivateKey(in, NULL, no_pass_phrase, &asked) : NULL;
	BIO_free(in);
	if (!setup->key)
		return complain(why, what, asked ? "the key is encrypted" : "no usable private key in it");
	if (!X509_check_private_key(setup->cert, setup->key))
		return complain(why, what, "the key does not belong to the certificate of RELAY_CERT_FILE");
	return 0;
}

/* On a connection's own object, where it can be cleared after the handshake. */
static bool show(const struct tls_setup *setup, SSL *ssl)
{
	if (!setup->cert)
		return true;
	if (!SSL_use_certificate(ssl, setup->cert) || !SSL_use_PrivateKey(ssl, setup->key))
		return false;
	return sk_X509_num(setup->chain) == 0 || SSL_set1_chain(ssl, setup->chain);
}

/* One that OpenSSL would not show (a key too short) is told now. */
static int try_to_show(const struct tls_setup *setup, const char *what, struct buf_text *why)
{
	SSL *ssl = SSL_new(setup->ctx);
	bool shown = ssl && show(setup, ssl);

	SSL_free(ssl);
	return shown ? 0 : complain(why, what, queued_reason());
}

static int take_certificate(struct tls_setup *setup, const struct settings *s, struct buf_text *why)
{
	static const char what[] = "RELAY_CERT_FILE";
	PEM_FREE struct pem cert = {0};
	PEM_FREE struct pem key = {0};
	size_t cert_size, key_size;
	int n;

	if (s->cert_fd < 0 && s->key_fd < 0)
		return 0;
	if (s->cert_fd < 0 || s->key_fd < 0)
		return complain(why, s->cert_fd < 0 ? what : "RELAY_KEY_FILE",
				"the other one is set, this one is not");
	if (read_setting(s->cert_fd, what, &cert, &cert_size, why) < 0 ||
	    read_setting(s->key_fd, "RELAY_KEY_FILE", &key, &key_size, why) < 0)
		return -EINVAL;
	setup->chain = sk_X509_new_null();
	n = setup->chain ? each_certificate(cert.at, cert_size, take_own, setup) : -ENOMEM;
	if (n <= 0)
		return complain(why, what, n < 0 ? queued_reason() : "no certificate in it");
	n = take_key(setup, key.at, key_size, why);
	return n < 0 ? n : try_to_show(setup, what, why);
}

/* RFC 6066 3: a name without a dot at its end, never an address. */
static int set_name(struct tls *tls, const struct settings *s)
{
	const char *name = s->server_name[0] != '\0' ? s->server_name : s->relay_host;
	X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);
	struct address a;
	size_t n = strlen(name);

	n -= n > 0 && name[n - 1] == '.';
	memcpy(tls->name, name, n);
	tls->name[n] = '\0';
	if (address_parse(name, &a) == 0) {
		bool v4 = a.any.sa_family == AF_INET;

		return X509_VERIFY_PARAM_set1_ip(
		    param, v4 ? (const uint8_t *)&a.in4.sin_addr : a.in6.sin6_addr.s6_addr, v4 ? 4 : 16);
	}
	/* Names count only as subjectAltName (RFC 9525 2), as for the clients of other languages. */
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
						   X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return X509_VERIFY_PARAM_set1_host(param, tls->name, n) &&
	       SSL_set_tlsext_host_name(tls->ssl, tls->name);
}

static int configure(SSL_CTX *ctx)
{
	static const unsigned char h2[] = {2, 'h', '2'};

	SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_security_level(ctx, 2);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	/* Whatever the operator put into the CA file is trusted, be it a root or not. */
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) &&
	       SSL_CTX_set_alpn_protos(ctx, h2, sizeof h2) == 0;
}

static int note_wanted(SSL *ssl, void *arg)
{
	struct tls *tls = arg;

	(void)ssl;
	tls->certificate_wanted = true;
	return 1;
}

int tls_setup_load(struct tls_setup *setup, const struct settings *settings, struct buf_text *why)
{
	int err = take_roots(setup, settings, why);

	if (err == 0 && !configure(setup->ctx)) {
		buf_text_addf(why, "OpenSSL: %s", queued_reason());
		err = -ENOMEM;
	}
	if (err == 0)
		err = take_certificate(setup, settings, why);
	ERR_clear_error();
	return err;
}

int tls_open(struct tls_setup *setup, const struct settings *settings, int fd, struct tls **ret)
{
	struct tls *tls = calloc(1, sizeof *tls);

	if (!tls)
		return -ENOMEM;
	tls->ssl = SSL_new(setup->ctx);
	tls->has_certificate = setup->cert != NULL;
	if (!tls->ssl || !set_name(tls, settings) || !show(setup, tls->ssl) || !SSL_set_fd(tls->ssl, fd)) {
		ERR_clear_error();
		tls_free(tls);
		return -ENOMEM;
	}
	SSL_set_cert_cb(tls->ssl, note_wanted, tls);
	SSL_set_connect_state(tls->ssl);
	*ret = tls;
	return 0;
}
