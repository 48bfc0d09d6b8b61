/* Certificates for tests, made on the spot. */
#ifndef TESTS_LIB_CERTS_H
#define TESTS_LIB_CERTS_H

#include <openssl/ssl.h>

struct certs_identity {
	X509 *cert;
	EVP_PKEY *key;
};

/* A root that signs others, valid from yesterday until tomorrow. */
struct certs_identity certs_root(const char *name);

/* The same with a key of the caller's (taken over). */
struct certs_identity certs_root_of(const char *name, EVP_PKEY *key);

/* Signed by issuer for subjectAltName san ("DNS:relay.test", "IP:127.0.0.1"; NULL: none, and the name only as
 * CN), valid from and until so many seconds from now. */
struct certs_identity certs_issue(const struct certs_identity *issuer, const char *san, long from_s,
				  long until_s);

void certs_free(struct certs_identity *id);

/* Open descriptors to their PEM texts, at the beginning; the caller's. pass encrypts the key (NULL: not). */
int certs_cert_fd(const struct certs_identity *id);
int certs_key_fd(const struct certs_identity *id, const char *pass);

/* The same for a text. */
int certs_text_fd(const char *text);

/* The PEM texts as files. */
void certs_write_cert(const struct certs_identity *id, const char *path);
void certs_write_key(const struct certs_identity *id, const char *path);

/* The certificate's. */
long certs_serial(const struct certs_identity *id);

#endif
