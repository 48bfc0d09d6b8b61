#include "tests/lib/certs.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void must(int ok)
{
	if (!ok)
		abort();
}

static void add_extension(X509 *cert, const X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, (X509 *)(uintptr_t)issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	must(e && X509_add_ext(cert, e, -1));
	X509_EXTENSION_free(e);
}

static struct certs_identity make(const struct certs_identity *issuer, EVP_PKEY *key, const char *name,
				  const char *san, long from_s, long until_s)
{
	static long serial;
	struct certs_identity id = {X509_new(), key};
	X509_NAME *subject = X509_get_subject_name(id.cert);

	must(id.cert && id.key);
	if (!issuer)
		issuer = &id;
	X509_set_version(id.cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(id.cert), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(id.cert), from_s);
	X509_gmtime_adj(X509_getm_notAfter(id.cert), until_s);
	must(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0));
	X509_set_issuer_name(id.cert, X509_get_subject_name(issuer->cert));
	X509_set_pubkey(id.cert, id.key);
	add_extension(id.cert, issuer->cert, NID_basic_constraints,
		      issuer == &id ? "critical,CA:TRUE" : "critical,CA:FALSE");
	if (san)
		add_extension(id.cert, issuer->cert, NID_subject_alt_name, san);
	must(X509_sign(id.cert, issuer->key, EVP_sha256()) > 0);
	return id;
}

struct certs_identity certs_root(const char *name)
{
	return certs_root_of(name, EVP_EC_gen("P-256"));
}

struct certs_identity certs_root_of(const char *name, EVP_PKEY *key)
{
	return make(NULL, key, name, NULL, -86400, 86400);
}

struct certs_identity certs_issue(const struct certs_identity *issuer, const char *san, long from_s,
				  long until_s)
{
	return make(issuer, EVP_EC_gen("P-256"), "relay.test", san, from_s, until_s);
}

void certs_free(struct certs_identity *id)
{
	X509_free(id->cert);
	EVP_PKEY_free(id->key);
	*id = (struct certs_identity){0};
}

static int pem_fd(BIO *text)
{
	int fd = memfd_create("pem", MFD_CLOEXEC);
	char *bytes;
	long n = BIO_get_mem_data(text, &bytes);

	must(fd >= 0 && write(fd, bytes, (size_t)n) == n && lseek(fd, 0, SEEK_SET) == 0);
	BIO_free(text);
	return fd;
}

int certs_cert_fd(const struct certs_identity *id)
{
	BIO *out = BIO_new(BIO_s_mem());

	must(out && PEM_write_bio_X509(out, id->cert));
	return pem_fd(out);
}

int certs_key_fd(const struct certs_identity *id, const char *pass)
{
	BIO *out = BIO_new(BIO_s_mem());

	must(out && PEM_write_bio_PKCS8PrivateKey(out, id->key, pass ? EVP_aes_256_cbc() : NULL, pass,
						  pass ? (int)strlen(pass) : 0, NULL, NULL));
	return pem_fd(out);
}

int certs_text_fd(const char *text)
{
	BIO *out = BIO_new(BIO_s_mem());

	must(out && BIO_write(out, text, (int)strlen(text)) == (int)strlen(text));
	return pem_fd(out);
}

void certs_write_cert(const struct certs_identity *id, const char *path)
{
	BIO *out = BIO_new_file(path, "w");

	must(out && PEM_write_bio_X509(out, id->cert));
	BIO_free(out);
}

void certs_write_key(const struct certs_identity *id, const char *path)
{
	BIO *out = BIO_new_file(path, "w");

	must(out && PEM_write_bio_PKCS8PrivateKey(out, id->key, NULL, NULL, 0, NULL, NULL));
	BIO_free(out);
}

long certs_serial(const struct certs_identity *id)
{
	return ASN1_INTEGER_get(X509_get0_serialNumber(id->cert));
}
