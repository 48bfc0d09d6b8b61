/* The dialer's files: roots from a file or a folder, the client's certificate and key, and what is said of
 * bad ones. */
#include "common/fd.h"
#include "tests/lib/tls_scene.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Test(dial_tls_files, unusable_roots_are_named, .timeout = 20)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
	    {"", "RELAY_CA_FILE (or SSL_CERT_FILE, or the system's bundle): no certificate in it"},
	    {"no PEM at all\n",
	     "RELAY_CA_FILE (or SSL_CERT_FILE, or the system's bundle): no certificate in it"},
	    {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	     "RELAY_CA_FILE (or SSL_CERT_FILE, or the system's bundle): "},
	    {"-----BEGIN CERTIFICATE-----\nAAAA\n",
	     "RELAY_CA_FILE (or SSL_CERT_FILE, or the system's bundle): "},
	};
	struct tls_scene c;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		tls_scene_init(&c, "DNS:localhost");
		fd_close(&c.settings.ca_fd);
		c.settings.ca_fd = certs_text_fd(cases[i].text);
		tls_scene_refuses(&c, cases[i].reason);
		certs_free(&c.root);
		certs_free(&c.server.id);
	}
	tls_scene_init(&c, "DNS:localhost");
	fd_close(&c.settings.ca_fd);
	tls_scene_refuses(&c, "RELAY_CA_FILE: not set, and no CA bundle was found");
	certs_free(&c.root);
	certs_free(&c.server.id);
}

/* As by openssl x509 -addtrust. */
Test(dial_tls_files, trusted_certificate_is_a_root, .timeout = 20)
{
	struct tls_scene c;
	char *text;
	BIO *out = BIO_new(BIO_s_mem());

	tls_scene_init(&c, "DNS:localhost");
	cr_assert(PEM_write_bio_X509_AUX(out, c.root.cert));
	BIO_write(out, "", 1);
	BIO_get_mem_data(out, &text);
	cr_assert(strstr(text, "-----BEGIN TRUSTED CERTIFICATE-----"), "%s", text);
	fd_close(&c.settings.ca_fd);
	c.settings.ca_fd = certs_text_fd(text);
	tls_scene_dial(&c);
	tls_scene_echoes(&c);
	BIO_free(out);
	tls_scene_end(&c);
}

/* One certificate, then filler up to exactly size bytes. */
static int long_bundle(const struct certs_identity *root, size_t size)
{
	static char text[LIMIT_PEM + 1];
	FD_CLOSE int cert = certs_cert_fd(root);
	ssize_t n = fd_read_full(cert, text, sizeof text);
	int fd;

	memset(text + n, '\n', size - (size_t)n);
	fd = certs_text_fd("");
	cr_assert_eq(fd_write_full(fd, text, size), 0);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

Test(dial_tls_files, roots_below_at_and_above_their_limit, .timeout = 30)
{
	struct tls_scene c;

	for (int below = 1; below >= 0; below--) {
		tls_scene_init(&c, "DNS:localhost");
		fd_close(&c.settings.ca_fd);
		c.settings.ca_fd = long_bundle(&c.root, LIMIT_PEM - (size_t)below);
		tls_scene_dial(&c);
		tls_scene_echoes(&c);
		tls_scene_end(&c);
	}
	tls_scene_init(&c, "DNS:localhost");
	fd_close(&c.settings.ca_fd);
	c.settings.ca_fd = long_bundle(&c.root, LIMIT_PEM + 1);
	tls_scene_refuses(&c, "more than 4 MiB");
	certs_free(&c.root);
	certs_free(&c.server.id);
}

Test(dial_tls_files, unusable_certificate_or_key_is_named, .timeout = 20)
{
	struct tls_scene c;
	struct certs_identity client, other;

	tls_scene_init(&c, "DNS:localhost");
	client = certs_issue(&c.root, NULL, -60, 3600);
	other = certs_issue(&c.root, NULL, -60, 3600);
	c.settings.cert_fd = certs_cert_fd(&client);
	c.settings.key_fd = certs_key_fd(&other, NULL);
	tls_scene_refuses(&c,
			  "RELAY_KEY_FILE: the key does not belong to the certificate of RELAY_CERT_FILE");

	c.settings.ca_fd = certs_cert_fd(&c.root);
	c.settings.cert_fd = certs_cert_fd(&client);
	c.settings.key_fd = certs_key_fd(&client, "secret");
	tls_scene_refuses(&c, "RELAY_KEY_FILE: the key is encrypted");

	c.settings.ca_fd = certs_cert_fd(&c.root);
	c.settings.cert_fd = certs_cert_fd(&client);
	c.settings.key_fd = certs_text_fd("nothing\n");
	tls_scene_refuses(&c, "RELAY_KEY_FILE: no usable private key in it");

	c.settings.ca_fd = certs_cert_fd(&c.root);
	c.settings.cert_fd = certs_key_fd(&client, NULL);
	c.settings.key_fd = certs_key_fd(&client, NULL);
	tls_scene_refuses(&c, "RELAY_CERT_FILE: no certificate in it");

	c.settings.ca_fd = certs_cert_fd(&c.root);
	c.settings.cert_fd = certs_cert_fd(&client);
	tls_scene_refuses(&c, "RELAY_KEY_FILE: the other one is set, this one is not");
	certs_free(&c.root);
	certs_free(&c.server.id);
	certs_free(&client);
	certs_free(&other);
}

static void write_file(const char *dir, const char *name, int from)
{
	char path[256], text[8192];
	FD_CLOSE int pem = from, out = -1;
	ssize_t n = fd_read_full(pem, text, sizeof text);

	snprintf(path, sizeof path, "%s/%s", dir, name);
	out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(fd_write_full(out, text, (size_t)n), 0);
}

static void remove_tree(const char *dir, const char *const *names)
{
	char path[256];

	for (; *names; names++) {
		snprintf(path, sizeof path, "%s/%s", dir, *names);
		unlink(path);
	}
	rmdir(dir);
}

Test(dial_tls_files, roots_from_a_folder, .timeout = 20)
{
	static const char *const names[] = {"a.pem", "readme", "link.0", "fifo", NULL};
	struct certs_identity other = certs_root("other root");
	char dir[] = "/tmp/netd-ca-XXXXXX", path[256];
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	fd_close(&c.settings.ca_fd);
	cr_assert_not_null(mkdtemp(dir));
	strcpy(c.settings.ca_dir, dir);
	tls_scene_refuses(&c, "SSL_CERT_DIR: no certificate in it");

	write_file(dir, "a.pem", certs_cert_fd(&other));
	write_file(dir, "readme", certs_text_fd("not a certificate, no newline at the end"));
	write_file(dir, "z.pem", certs_cert_fd(&c.root));
	snprintf(path, sizeof path, "%s/link.0", dir);
	cr_assert_eq(symlink("a.pem", path), 0);
	snprintf(path, sizeof path, "%s/fifo", dir);
	cr_assert_eq(mkfifo(path, 0600), 0);
	tls_scene_dial(&c);
	tls_scene_echoes(&c);
	dialling_end(&c.dialling);
	snprintf(path, sizeof path, "%s/z.pem", dir);
	unlink(path);
	remove_tree(dir, names);
	tls_scene_refuses(&c, "SSL_CERT_DIR: cannot be opened");
	tls_scene_end(&c);
	certs_free(&other);
}

Test(dial_tls_files, roots_from_a_list_of_folders, .timeout = 20)
{
	static const char *const none[] = {NULL}, *const one[] = {"z.pem", NULL};
	char empty[] = "/tmp/netd-ca-XXXXXX", full[] = "/tmp/netd-ca-XXXXXX";
	struct tls_scene c;

	tls_scene_init(&c, "DNS:localhost");
	fd_close(&c.settings.ca_fd);
	cr_assert_not_null(mkdtemp(empty));
	cr_assert_not_null(mkdtemp(full));
	snprintf(c.settings.ca_dir, sizeof c.settings.ca_dir, "%s:/nonexistent::%s", empty, full);
	tls_scene_refuses(&c, "SSL_CERT_DIR: no certificate in it");
	write_file(full, "z.pem", certs_cert_fd(&c.root));
	tls_scene_dial(&c);
	tls_scene_echoes(&c);
	remove_tree(empty, none);
	remove_tree(full, one);
	tls_scene_end(&c);
}

Test(dial_tls_files, token_is_kept_and_the_rest_is_wiped, .timeout = 20)
{
	struct tls_scene c;
	struct certs_identity client;

	tls_scene_init(&c, "DNS:localhost");
	client = certs_issue(&c.root, NULL, -60, 3600);
	strcpy(c.settings.token, "kept");
	strcpy(c.settings.proxy_password, "wiped");
	tls_scene_show(&c, &client);
	tls_scene_dial(&c);
	cr_assert_str_eq(c.settings.token, "kept");
	cr_assert_str_eq(c.settings.proxy_password, "");
	tls_scene_echoes(&c);
	tls_scene_end(&c);
	certs_free(&client);
}
