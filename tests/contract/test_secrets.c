/* What netd's memory still holds of the token, the client's private key and the proxy's password while it
 * serves: nothing, in no form. */
#include "common/fd.h"
#include "tests/lib/certs.h"
#include "tests/lib/memory.h"
#include "tests/lib/peer.h"
#include "tests/lib/stage.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <nghttp2/nghttp2.h>
#include <openssl/core_names.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(secrets, .timeout = 90, .fini = stage_fini);

static struct memory_search search;

/* In HPACK a string is Huffman-coded where that makes it shorter: one token of each kind. */
static const char *const tokens[] = {
    "the-secret-of-a-relay-in-lower-case-letters-0123456789",
    "~{THE|SECRET}<OF>[A]\\RELAY^{IN}~|CHARACTERS|~THAT`ARE~RARE{}",
};

/* --- the forms ---------------------------------------------------------------------------------------- */

static void seek_token(const char *token)
{
	char bearer[256];
	nghttp2_nv field = {(uint8_t *)(uintptr_t) "authorization", (uint8_t *)bearer, 13, 0,
			    NGHTTP2_NV_FLAG_NO_INDEX};
	nghttp2_hd_deflater *deflater;
	uint8_t block[512];
	ssize_t n;

	field.valuelen = (size_t)snprintf(bearer, sizeof bearer, "Bearer %s", token);
	memory_seek(&search, "the token's text", token, strlen(token));
	cr_assert_eq(nghttp2_hd_deflate_new(&deflater, 4096), 0);
	n = nghttp2_hd_deflate_hd(deflater, block, sizeof block, &field, 1);
	nghttp2_hd_deflate_del(deflater);
	cr_assert_gt(n, 40);
	/* its first bytes are "Bearer ", which is no secret */
	memory_seek(&search, "the token in HPACK", block + 12, (size_t)n - 12);
}

static size_t number_of(const EVP_PKEY *key, const char *name, uint8_t bytes[1024])
{
	BIGNUM *n = NULL;
	size_t size;

	if (!EVP_PKEY_get_bn_param(key, name, &n))
		return 0;
	size = (size_t)BN_num_bytes(n);
	cr_assert_leq(size, 1024);
	BN_bn2bin(n, bytes);
	BN_free(n);
	return size;
}

/* The lines of the base64 that are all of this number. */
static void seek_base64(const char *pem, size_t der_at, size_t der_size)
{
	size_t from = (der_at + 2) / 3 * 4, to = (der_at + der_size) / 3 * 4, at = 0;

	for (const char *line = strchr(pem, '\n') + 1; *line != '-'; line = strchr(line, '\n') + 1) {
		size_t n = strcspn(line, "\n");
		size_t first = from > at ? from - at : 0, end = to > at ? to - at : 0;

		if (end > n)
			end = n;
		if (first < end)
			memory_seek(&search, "the key in base64", line + first, end - first);
		at += n;
	}
}

static void seek_pem(char *pem, const uint8_t *number, size_t size)
{
	BIO *in = BIO_new_mem_buf(pem, -1);
	char *name, *header;
	uint8_t *der;
	const uint8_t *at;
	long n;

	cr_assert(PEM_read_bio(in, &name, &header, &der, &n));
	at = memmem(der, (size_t)n, number, size);
	cr_assert_not_null(at);
	seek_base64(pem, (size_t)(at - der), size);
	OPENSSL_free(name);
	OPENSSL_free(header);
	OPENSSL_free(der);
	BIO_free(in);
}

static void seek_key(const EVP_PKEY *key, char *pem)
{
	static const char *const numbers[] = {
	    OSSL_PKEY_PARAM_RSA_D,         OSSL_PKEY_PARAM_RSA_FACTOR1,   OSSL_PKEY_PARAM_RSA_FACTOR2,
	    OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2, OSSL_PKEY_PARAM_RSA_COEFFICIENT1,
	    OSSL_PKEY_PARAM_PRIV_KEY,
	};
	uint8_t bytes[1024];

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		size_t n = number_of(key, numbers[i], bytes);

		if (n == 0)
			continue;
		memory_seek_number(&search, numbers[i], bytes, n);
		seek_pem(pem, bytes, n);
	}
}

/* --- the scene ---------------------------------------------------------------------------------------- */

static struct stage *stage;
static char ca[FOLDER_PATH_MAX], cert[FOLDER_PATH_MAX], key[FOLDER_PATH_MAX];

static void serve(const char *token)
{
	struct relay_options options = {.token = token, .cert_file = cert, .key_file = key};
	struct certs_identity root = certs_root("root"),
			      server = certs_issue(&root, "DNS:localhost", -1, 3600);
	char client[FOLDER_PATH_MAX];

	folder_join(ca, stage->folder, "root.pem");
	folder_join(cert, stage->folder, "server.pem");
	folder_join(key, stage->folder, "server.key");
	folder_join(client, stage->folder, "client.pem");
	certs_write_cert(&root, ca);
	certs_write_cert(&server, cert);
	certs_write_key(&server, key);
	if (folder_size(client) > 0)
		options.client_ca_file = client;
	stage_relay(stage, &options);
	certs_free(&root);
	certs_free(&server);
}

static void start(const char *token, bool tls, bool with_key)
{
	static char setting[6][FOLDER_PATH_MAX + 32];

	snprintf(setting[0], sizeof *setting, "RELAY_ADDR=localhost:%u", relay_port(stage->relay));
	snprintf(setting[1], sizeof *setting, "SANDBOX_TOKEN=%s", token);
	snprintf(setting[2], sizeof *setting, "RELAY_CA_FILE=%s", tls ? ca : "");
	snprintf(setting[3], sizeof *setting, "RELAY_CERT_FILE=%s/client.pem", stage->folder);
	snprintf(setting[4], sizeof *setting, "RELAY_KEY_FILE=%s/client.key", stage->folder);
	if (!with_key)
		setting[3][0] = setting[4][0] = '\0';
	worker_start(&stage->worker, stage->relay,
		     WORKER_SETTINGS(setting[0], setting[1], setting[2], tls ? "RELAY_TLS=1" : "RELAY_TLS=0",
				     with_key ? setting[3] : "RELAY_CERT_FILE=",
				     with_key ? setting[4] : "RELAY_KEY_FILE="));
}

/* After an exec, so that the first messages have long left. */
static void expect_nothing(const char *what)
{
	const char *found;

	stage_reattach(stage);
	stage_expect_end(stage_exec(stage, "exit 3"), 3);
	found = memory_find(worker_netd(&stage->worker), &search);
	if (!found)
		cr_skip_test("needs root to read a process that is not dumpable");
	cr_expect_str_eq(found, "", "%s: %s", what, found);
}

static void forget(void)
{
	search.count = 0;
}

Test(secrets, the_token_is_gone_once_hello_has_left)
{
	for (size_t i = 0; i < 2 * sizeof tokens / sizeof *tokens; i++) {
		const char *token = tokens[i / 2];
		bool tls = i % 2 == 1;

		forget();
		seek_token(token);
		stage = stage_prepare();
		if (tls)
			serve(token);
		else
			stage_relay(stage, &(struct relay_options){.token = token});
		start(token, tls, false);
		expect_nothing(tls ? "in TLS" : "in the clear");
		if (geteuid() == 0)
			cr_assert_str_eq(memory_find(stage->worker.pid, &search), "the token's text",
					 "the search finds nothing");
		stage_close(stage);
	}
}

static void try_key(EVP_PKEY *pkey, bool traditional, const char *what)
{
	struct certs_identity id = certs_root_of("client", pkey);
	BIO *text = BIO_new(BIO_s_mem());
	char file[FOLDER_PATH_MAX], *pem;

	stage = stage_prepare();
	cr_assert(traditional ? PEM_write_bio_PrivateKey_traditional(text, pkey, NULL, NULL, 0, NULL, NULL)
			      : PEM_write_bio_PKCS8PrivateKey(text, pkey, NULL, NULL, 0, NULL, NULL));
	BIO_write(text, "", 1);
	BIO_get_mem_data(text, &pem);
	forget();
	seek_key(pkey, pem);
	folder_join(file, stage->folder, "client.key");
	folder_write(file, pem, strlen(pem));
	folder_join(file, stage->folder, "client.pem");
	certs_write_cert(&id, file);
	serve("token");
	start("token", true, true);
	expect_nothing(what);
	stage_close(stage);
	BIO_free(text);
	certs_free(&id);
}

Test(secrets, an_rsa_key_is_gone_once_connected)
{
	try_key(EVP_RSA_gen(2048), true, "RSA, PKCS#1");
	try_key(EVP_RSA_gen(2048), false, "RSA, PKCS#8");
}

Test(secrets, an_ec_key_is_gone_once_connected)
{
	try_key(EVP_EC_gen("P-256"), true, "EC, SEC1");
	try_key(EVP_EC_gen("P-256"), false, "EC, PKCS#8");
	try_key(EVP_EC_gen("P-384"), false, "P-384");
}

/* --- the proxy's password ------------------------------------------------------------------------------- */

#define PASSWORD "the-password-of-a-proxy-which-stays-secret"

static void pass_on(int from, int to)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(from, bytes, sizeof bytes)) > 0) {
		if (fd_write_full(to, bytes, (size_t)n) < 0)
			break;
	}
	shutdown(to, SHUT_WR);
}

/* One tunnel to 127.0.0.1, whatever is asked for. */
static void tunnel(int listener, void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(*(uint16_t *)arg)};
	int near = accept(listener, NULL, NULL), far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char bytes[4096];

	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	if (read(near, bytes, sizeof bytes) <= 0 || connect(far, (struct sockaddr *)&to, sizeof to) < 0)
		return;
	fd_write_full(near, "HTTP/1.1 200 OK\r\n\r\n", 19);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pass_on(near, far);
		_exit(0);
	}
	pass_on(far, near);
}

Test(secrets, the_password_of_a_proxy_is_gone_once_connected)
{
	static char proxy[256], base64[128];
	uint16_t port;

	forget();
	memory_seek(&search, "the password's text", PASSWORD, strlen(PASSWORD));
	EVP_EncodeBlock((unsigned char *)base64, (const unsigned char *)"user:" PASSWORD,
			5 + sizeof PASSWORD - 1);
	/* its first bytes are "user:" */
	memory_seek(&search, "the password in base64", base64 + 8, strlen(base64) - 8);
	stage = stage_prepare();
	port = relay_port(stage->relay);
	snprintf(proxy, sizeof proxy, "HTTPS_PROXY=http://user:" PASSWORD "@127.0.0.1:%u",
		 peer_start(tunnel, &port));
	worker_start(&stage->worker, stage->relay, WORKER_SETTINGS("RELAY_ADDR=relay.invalid:443", proxy));
	expect_nothing("through a proxy");
	stage_close(stage);
}
