/* TLS between the worker and a relay, with and without a client's certificate. */
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(tls, .timeout = 60, .fini = stage_fini);

#define OPENSSL "/usr/bin/openssl"

struct identity {
	char key[FOLDER_PATH_MAX];
	char cert[FOLDER_PATH_MAX];
};

static struct stage *prepare(void)
{
	if (access(OPENSSL, X_OK) < 0)
		cr_skip_test("no " OPENSSL);
	return stage_prepare();
}

/* A key and a certificate for localhost that signs itself. */
static void make_identity(const struct stage *s, const char *name, struct identity *ret)
{
	const char *argv[] = {OPENSSL,
			      "req",
			      "-x509",
			      "-newkey",
			      "ec",
			      "-pkeyopt",
			      "ec_paramgen_curve:prime256v1",
			      "-nodes",
			      "-keyout",
			      ret->key,
			      "-out",
			      ret->cert,
			      "-days",
			      "2",
			      "-subj",
			      "/CN=localhost",
			      "-addext",
			      "subjectAltName=DNS:localhost",
			      NULL};
	char log[4096], file[64];

	snprintf(file, sizeof file, "%s.key", name);
	folder_join(ret->key, s->folder, file);
	snprintf(file, sizeof file, "%s.pem", name);
	folder_join(ret->cert, s->folder, file);
	cr_assert_eq(process_run(argv, WORKER_SETTINGS("PATH=/usr/bin:/bin"), log, sizeof log, 20000), 0,
		     "%s", log);
}

static void begin(struct stage *s, const struct identity *trusted, const struct identity *own)
{
	char address[64], ca[FOLDER_PATH_MAX + 32], cert[FOLDER_PATH_MAX + 32], key[FOLDER_PATH_MAX + 32];

	snprintf(address, sizeof address, "RELAY_ADDR=localhost:%u", relay_port(s->relay));
	snprintf(ca, sizeof ca, "RELAY_CA_FILE=%s", trusted->cert);
	snprintf(cert, sizeof cert, "RELAY_CERT_FILE=%s", own ? own->cert : "");
	snprintf(key, sizeof key, "RELAY_KEY_FILE=%s", own ? own->key : "");
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(address, "RELAY_TLS=1", ca, cert, key));
}

static void exchange(struct stage *s)
{
	struct relay_exec *exec;

	stage_reattach(s);
	exec = stage_exec(s, "head -c 3000000 /dev/zero; exit 3");
	stage_expect_end(exec, 3);
	cr_assert_eq(exec->out_bytes, 3000000);
}

Test(tls, carries_everything)
{
	struct relay_options options = {.token = "token"};
	struct identity server;
	struct stage *s;

	s = prepare();
	make_identity(s, "server", &server);
	options.cert_file = server.cert;
	options.key_file = server.key;
	stage_relay(s, &options);
	begin(s, &server, NULL);
	exchange(s);
	relay_cut(s->attached, RELAY_CUT_CLOSE);
	exchange(s);
	stage_close(s);
}

Test(tls, shows_the_certificate_that_the_relay_asks_for)
{
	struct relay_options options = {.token = "token"};
	struct identity server, client;
	struct stage *s;

	s = prepare();
	make_identity(s, "server", &server);
	make_identity(s, "client", &client);
	options.cert_file = server.cert;
	options.key_file = server.key;
	options.client_ca_file = client.cert;
	stage_relay(s, &options);
	begin(s, &server, &client);
	exchange(s);
	stage_close(s);
}

/* Neither the token nor a Hello goes to a relay that cannot be verified. */
Test(tls, sends_nothing_to_a_relay_that_is_another)
{
	struct relay_options options = {.token = "token"};
	struct identity server, other;
	struct stage *s;

	s = prepare();
	make_identity(s, "server", &server);
	make_identity(s, "other", &other);
	options.cert_file = server.cert;
	options.key_file = server.key;
	stage_relay(s, &options);
	begin(s, &other, NULL);
	cr_assert(worker_wait_said(&s->worker, "backoff_ms=", STAGE_WAIT_MS));
	cr_assert(!relay_attached(s->relay));
	cr_assert_eq(relay_refusals(s->relay), 0);
	cr_assert(worker_stop(&s->worker));
	/* An alert in the handshake, when the relay got to read it. */
	relay_forgive(s->relay);
	stage_close(s);
}
