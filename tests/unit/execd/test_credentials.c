/* The files that are read at each dial. */
#include "execd/credentials.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/credentials-XXXXXX";
static char path[64], other[64];
static struct config config;
static struct config_secrets secrets;
static struct config_error error;
static struct credentials files;

static void put(const char *to, const char *bytes, size_t size)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
	close(fd);
}

static void setup(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/a", folder);
	snprintf(other, sizeof other, "%s/b", folder);
	files = (struct credentials){-1, -1, -1};
}

static void teardown(void)
{
	credentials_close(&files);
	unlink(path);
	unlink(other);
	rmdir(folder);
}

TestSuite(credentials, .init = setup, .fini = teardown);

static int read_token(const char *bytes, size_t size)
{
	put(path, bytes, size);
	memcpy(config.token_file, path, sizeof path);
	memcpy(secrets.token, "old", 4);
	return credentials_read_token(&config, &secrets, &error);
}

static void expect_token(const char *bytes, const char *token)
{
	cr_assert_eq(read_token(bytes, strlen(bytes)), 0, "%s", error.why);
	cr_assert_str_eq(secrets.token, token);
}

static void expect_no_token(const char *bytes, size_t size)
{
	cr_assert_lt(read_token(bytes, size), 0);
	cr_assert_str_eq(error.setting, "SANDBOX_TOKEN_FILE");
	cr_assert_null(strstr(error.why, "s3cr3t"));
	cr_assert_str_eq(secrets.token, "");
}

Test(credentials, trims_one_newline_of_a_token)
{
	expect_token("tok", "tok");
	expect_token("tok\n", "tok");
	expect_token("tok\r\n", "tok");
	expect_token(" tok ~", " tok ~");
}

Test(credentials, refuses_other_tokens)
{
	expect_no_token("s3cr3t\n\n", 8);
	expect_no_token("s3cr3t\nx", 8);
	expect_no_token("\ns3cr3t", 7);
	expect_no_token("", 0);
	expect_no_token("\n", 1);
	expect_no_token("s3cr3t\0x", 8);
	expect_no_token("s3cr3t\xc3\xa9", 8);
	expect_no_token("s3cr3t\t", 7);
}

Test(credentials, bounds_a_token)
{
	static char big[LIMIT_TOKEN + 4];

	memset(big, 'x', sizeof big);
	cr_assert_eq(read_token(big, LIMIT_TOKEN - 1), 0);
	cr_assert_eq(read_token(big, LIMIT_TOKEN), 0);
	cr_assert_eq(strlen(secrets.token), LIMIT_TOKEN);
	expect_no_token(big, LIMIT_TOKEN + 1);
	expect_no_token(big, LIMIT_TOKEN + 2);
	expect_no_token(big, LIMIT_TOKEN + 3);
	big[LIMIT_TOKEN] = '\r';
	big[LIMIT_TOKEN + 1] = '\n';
	cr_assert_eq(read_token(big, LIMIT_TOKEN + 2), 0);
	cr_assert_eq(strlen(secrets.token), LIMIT_TOKEN);
}

Test(credentials, reads_a_token_anew)
{
	expect_token("one", "one");
	expect_token("two\n", "two");
}

Test(credentials, never_waits_for_a_fifo)
{
	cr_assert_eq(mkfifo(path, 0600), 0);
	memcpy(config.token_file, path, sizeof path);
	cr_assert_lt(credentials_read_token(&config, &secrets, &error), 0);
	cr_assert(strstr(error.why, "regular"));
}

Test(credentials, opens_nothing_for_plaintext)
{
	memcpy(config.ca_file, "/nonexistent", 13);
	cr_assert_eq(credentials_open(&config, credentials_bundles, &files, &error), 0);
	cr_assert(files.ca_fd == -1 && files.cert_fd == -1 && files.key_fd == -1);
}

Test(credentials, opens_what_is_named)
{
	put(path, "ca", 2);
	put(other, "key", 3);
	config.relay_tls = true;
	memcpy(config.ca_file, path, sizeof path);
	memcpy(config.ssl_cert_file, "/nonexistent", 13);
	memcpy(config.cert_file, path, sizeof path);
	memcpy(config.key_file, other, sizeof other);
	cr_assert_eq(credentials_open(&config, credentials_bundles, &files, &error), 0, "%s", error.why);
	cr_assert(files.ca_fd >= 0 && files.cert_fd >= 0 && files.key_fd >= 0);
	cr_assert(fcntl(files.key_fd, F_GETFD) & FD_CLOEXEC);
}

Test(credentials, names_the_setting_that_is_wrong)
{
	put(path, "x", 1);
	config.relay_tls = true;
	memcpy(config.ca_file, "/nonexistent", 13);
	cr_assert_lt(credentials_open(&config, credentials_bundles, &files, &error), 0);
	cr_assert_str_eq(error.setting, "RELAY_CA_FILE");
	memcpy(config.ca_file, path, sizeof path);
	memcpy(config.cert_file, "/tmp", 5);
	memcpy(config.key_file, path, sizeof path);
	cr_assert_lt(credentials_open(&config, credentials_bundles, &files, &error), 0);
	cr_assert_str_eq(error.setting, "RELAY_CERT_FILE");
	memcpy(config.cert_file, path, sizeof path);
	memcpy(config.key_file, "/nonexistent", 13);
	cr_assert_lt(credentials_open(&config, credentials_bundles, &files, &error), 0);
	cr_assert_str_eq(error.setting, "RELAY_KEY_FILE");
	config.ca_file[0] = '\0';
	memcpy(config.ssl_cert_file, "/nonexistent", 13);
	cr_assert_lt(credentials_open(&config, credentials_bundles, &files, &error), 0);
	cr_assert_str_eq(error.setting, "SSL_CERT_FILE");
}

Test(credentials, bounds_a_pem_file)
{
	put(path, "x", 1);
	config.relay_tls = true;
	memcpy(config.ca_file, path, sizeof path);
	cr_assert_eq(truncate(path, LIMIT_PEM), 0);
	cr_assert_eq(credentials_open(&config, credentials_bundles, &files, &error), 0);
	credentials_close(&files);
	cr_assert_eq(truncate(path, LIMIT_PEM + 1), 0);
	cr_assert_lt(credentials_open(&config, credentials_bundles, &files, &error), 0);
	cr_assert_str_eq(error.setting, "RELAY_CA_FILE");
}

Test(credentials, takes_the_first_bundle_that_exists)
{
	const char *const bundles[] = {"/nonexistent/1", path, other, NULL};
	struct stat a, b;

	put(path, "1", 1);
	put(other, "2", 1);
	config.relay_tls = true;
	cr_assert_eq(credentials_open(&config, bundles, &files, &error), 0);
	cr_assert(fstat(files.ca_fd, &a) == 0 && stat(path, &b) == 0);
	cr_assert_eq(a.st_ino, b.st_ino);
}

Test(credentials, says_which_bundles_were_tried)
{
	const char *const bundles[] = {"/nonexistent/1", "/nonexistent/2", NULL};

	config.relay_tls = true;
	cr_assert_lt(credentials_open(&config, bundles, &files, &error), 0);
	cr_assert_str_eq(error.setting, "RELAY_CA_FILE");
	cr_assert(strstr(error.why, "/nonexistent/1") && strstr(error.why, "/nonexistent/2"));
	for (size_t i = 0; credentials_bundles[i]; i++)
		cr_assert_lt(strlen(credentials_bundles[i]), 60);
}

/* A static OpenSSL finds none by itself: its own place, Debian's, Fedora's and UBI's, Alpine's. */
Test(credentials, knows_where_distributions_keep_their_bundle)
{
	static const char *const known[] = {
	    "/etc/ssl/cert.pem",
	    "/etc/ssl/certs/ca-certificates.crt",
	    "/etc/pki/tls/certs/ca-bundle.crt",
	    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	};

	for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
		bool found = false;

		for (size_t i = 0; credentials_bundles[i]; i++)
			found |= strcmp(credentials_bundles[i], known[k]) == 0;
		cr_assert(found, "%s", known[k]);
	}
}

Test(credentials, leaves_a_folder_of_certificates_to_netd)
{
	const char *const none[] = {NULL};

	config.relay_tls = true;
	memcpy(config.ssl_cert_dir, "/etc/ssl/certs", 15);
	cr_assert_eq(credentials_open(&config, none, &files, &error), 0);
	cr_assert_eq(files.ca_fd, -1);
	cr_assert_str_eq(credentials_ca_folders(&config), "/etc/ssl/certs");
	memcpy(config.ca_file, "/x", 3);
	cr_assert_str_eq(credentials_ca_folders(&config), "");
	config.ca_file[0] = '\0';
	config.relay_tls = false;
	cr_assert_str_eq(credentials_ca_folders(&config), "");
}
