#include "execd/credentials.h"

#include "common/buf.h"
#include "common/fd.h"
#include "execd/config_parse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *const credentials_bundles[] = {
    "/usr/lib/ssl/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
    NULL,
};

static const char *open_problem(int err)
{
	if (err == -EINVAL)
		return "it is not a regular file";
	if (err == -EFBIG)
		return "it is too large";
	if (err == -EACCES)
		return "execd's user may not read it, without capabilities";
	return log_errno(err);
}

static int open_named(const char *setting, const char *path, size_t max, int *ret_fd, struct config_error *e)
{
	int fd = fd_open_regular(AT_FDCWD, path, max, NULL);

	if (fd < 0)
		return config_refuse(e, setting, "names %s: %s", path, open_problem(fd));
	*ret_fd = fd;
	return 0;
}

int credentials_read_token(const struct config *config, struct config_secrets *secrets,
			   struct config_error *ret_error)
{
	FD_CLOSE int fd = -1;
	const char *why;
	ssize_t n;
	int err;

	if (!config->token_file[0])
		return 0;
	explicit_bzero(secrets->token, sizeof secrets->token);
	err = open_named("SANDBOX_TOKEN_FILE", config->token_file, sizeof secrets->token - 1, &fd, ret_error);
	if (err < 0)
		return err;
	n = fd_read_full(fd, secrets->token, sizeof secrets->token - 1);
	if (n < 0)
		return config_refuse(ret_error, "SANDBOX_TOKEN_FILE", "cannot be read: %s",
				     log_errno((int)n));
	why = config_trim_token(secrets->token, (size_t)n);
	if (!why)
		return 0;
	explicit_bzero(secrets->token, sizeof secrets->token);
	return config_refuse(ret_error, "SANDBOX_TOKEN_FILE", "holds a token that cannot be sent: it %s",
			     why);
}

const char *credentials_ca_folders(const struct config *config)
{
	return config->relay_tls && !config->ca_file[0] ? config->ssl_cert_dir : "";
}

/* The first bundle that can be opened. */
static int open_bundle(const char *const bundles[], int *ret_fd, struct config_error *e)
{
	char tried[384];
	struct buf_text t;

	buf_text_init(&t, tried, sizeof tried);
	for (size_t i = 0; bundles[i]; i++) {
		int fd = fd_open_regular(AT_FDCWD, bundles[i], LIMIT_PEM, NULL);

		if (fd >= 0) {
			*ret_fd = fd;
			return 0;
		}
		buf_text_addf(&t, "%s%s", i > 0 ? " " : "", bundles[i]);
	}
	return config_refuse(e, "RELAY_CA_FILE", "is not set, and no certificates were found; tried %s",
			     tried);
}

static int open_ca(const struct config *config, const char *const bundles[], int *ret_fd,
		   struct config_error *e)
{
	if (config->ca_file[0])
		return open_named("RELAY_CA_FILE", config->ca_file, LIMIT_PEM, ret_fd, e);
	if (config->ssl_cert_file[0])
		return open_named("SSL_CERT_FILE", config->ssl_cert_file, LIMIT_PEM, ret_fd, e);
	return config->ssl_cert_dir[0] ? 0 : open_bundle(bundles, ret_fd, e);
}

int credentials_open(const struct config *config, const char *const bundles[], struct credentials *ret,
		     struct config_error *ret_error)
{
	FD_CLOSE int ca = -1;
	FD_CLOSE int cert = -1;
	FD_CLOSE int key = -1;
	int err = 0;

	if (config->relay_tls)
		err = open_ca(config, bundles, &ca, ret_error);
	if (err == 0 && config->relay_tls && config->cert_file[0])
		err = open_named("RELAY_CERT_FILE", config->cert_file, LIMIT_PEM, &cert, ret_error);
	if (err == 0 && config->relay_tls && config->key_file[0])
		err = open_named("RELAY_KEY_FILE", config->key_file, LIMIT_PEM, &key, ret_error);
	if (err < 0)
		return err;
	*ret = (struct credentials){
	    .ca_fd = fd_steal(&ca), .cert_fd = fd_steal(&cert), .key_fd = fd_steal(&key)};
	return 0;
}

void credentials_close(struct credentials *c)
{
	fd_close(&c->ca_fd);
	fd_close(&c->cert_fd);
	fd_close(&c->key_fd);
}

/* One is enough: those that are not there are skipped at the dial. */
static bool has_folder(const char *list)
{
	char one[PATH_MAX];
	struct stat st;

	while (*list) {
		size_t n = strcspn(list, ":");

		snprintf(one, sizeof one, "%.*s", (int)n, list);
		if (n > 0 && stat(one, &st) == 0 && S_ISDIR(st.st_mode))
			return true;
		list += n + (list[n] == ':');
	}
	return false;
}

int credentials_check(const struct config *config, struct config_secrets *secrets,
		      struct config_error *ret_error)
{
	__attribute__((cleanup(credentials_close))) struct credentials files = {-1, -1, -1};
	const char *folders = credentials_ca_folders(config);
	int err = credentials_read_token(config, secrets, ret_error);

	if (err == 0)
		err = credentials_open(config, credentials_bundles, &files, ret_error);
	if (err == 0 && folders[0] && !has_folder(folders))
		return config_refuse(ret_error, "SSL_CERT_DIR", "names no folder: %s", folders);
	return err;
}
