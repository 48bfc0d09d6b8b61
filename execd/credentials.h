/* What netd gets after it has jailed itself, read anew at each dial: tokens and certificates rotate. */
#ifndef EXECD_CREDENTIALS_H
#define EXECD_CREDENTIALS_H

#include "execd/config.h"

/* Open files for netd; -1 where there is none. */
struct credentials {
	int ca_fd;
	int cert_fd;
	int key_fd;
};

/* Where systems keep their certificates, in the order tried: OpenSSL, Debian, Fedora and UBI, Alpine.
 * NULL-ended. */
extern const char *const credentials_bundles[];

/* Reads SANDBOX_TOKEN_FILE into secrets->token, one newline at its end trimmed. Without that setting the
 * token is there already. 0, or -EINVAL with *ret_error set and no token. */
int credentials_read_token(const struct config *config, struct config_secrets *secrets,
			   struct config_error *ret_error);

/* Opens what RELAY_TLS needs, and nothing without it. bundles: credentials_bundles. 0, or -EINVAL with
 * *ret_error set. */
int credentials_open(const struct config *config, const char *const bundles[], struct credentials *ret,
		     struct config_error *ret_error);

void credentials_close(struct credentials *c);

/* Reads all of it once and keeps nothing but the token, so that a mistake is found at the start and not in
 * the log of a night. With the privileges that a dial will have. 0, or -EINVAL with *ret_error set. */
int credentials_check(const struct config *config, struct config_secrets *secrets,
		      struct config_error *ret_error);

/* The folders of certificates that netd is told of (SSL_CERT_DIR, a list with colons); empty where a file was
 * named. */
const char *credentials_ca_folders(const struct config *config);

#endif
