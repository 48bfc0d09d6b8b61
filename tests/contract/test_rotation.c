/* grpc-client.md 24: what someone else keeps up to date (the token, the roots, the client's certificate and
 * key) is used as it is at each dial, and nothing of before is left. Files are replaced as programs do it, by
 * rename, and as Kubernetes does it, by another target for the symlink ..data.
 * valgrind: not run: nearly thirty dials with TLS, as in test_tls and test_dial_tls, and seconds each */
#include "common/clock.h"
#include "common/fd.h"
#include "tests/lib/certs.h"
#include "tests/lib/memory.h"
#include "tests/lib/slow.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(rotation, .timeout = 90, .fini = stage_fini);

#define FILES 4u

/* What the worker is given. */
struct material {
	const char *token;
	const struct certs_identity *ca, *cert, *key;
};

struct volume {
	bool swaps; /* Kubernetes; else by rename */
	char folder[FOLDER_PATH_MAX];
	char settings[FILES][FOLDER_PATH_MAX + 32];
	unsigned version;
};

static const char *const names[FILES] = {"token", "ca.crt", "tls.crt", "tls.key"};
static const char *const variables[FILES] = {"SANDBOX_TOKEN_FILE", "RELAY_CA_FILE", "RELAY_CERT_FILE",
					     "RELAY_KEY_FILE"};

static void write_file(unsigned which, const char *path, const struct material *m)
{
	if (which == 0)
		folder_write(path, m->token, strlen(m->token));
	else if (which == 3)
		certs_write_key(m->key, path);
	else
		certs_write_cert(which == 1 ? m->ca : m->cert, path);
}

static void version_name(const struct volume *v, unsigned version, char path[FOLDER_PATH_MAX])
{
	char name[32];

	snprintf(name, sizeof name, "..2026_11_30.%u", version);
	folder_join(path, v->folder, name);
}

/* The files of a new version in a folder of their own; then ..data points there, all at once; then the old
 * ones go. */
static void publish_by_swap(struct volume *v, const struct material *m)
{
	char folder[FOLDER_PATH_MAX], path[FOLDER_PATH_MAX], next[FOLDER_PATH_MAX], target[64];

	version_name(v, ++v->version, folder);
	cr_assert_eq(mkdir(folder, 0700), 0);
	for (unsigned i = 0; i < FILES; i++) {
		folder_join(path, folder, names[i]);
		write_file(i, path, m);
		folder_join(path, v->folder, names[i]);
		snprintf(target, sizeof target, "..data/%s", names[i]);
		cr_assert(v->version > 1 || symlink(target, path) == 0);
	}
	folder_join(next, v->folder, "..data_tmp");
	folder_join(path, v->folder, "..data");
	cr_assert_eq(symlink(strrchr(folder, '/') + 1, next), 0);
	cr_assert_eq(rename(next, path), 0);
	version_name(v, v->version - 1, folder);
	if (v->version > 1)
		folder_remove(folder);
}

static void publish(struct volume *v, const struct material *m)
{
	char path[FOLDER_PATH_MAX], next[FOLDER_PATH_MAX];

	if (v->swaps) {
		publish_by_swap(v, m);
		return;
	}
	folder_join(next, v->folder, "next");
	for (unsigned i = 0; i < FILES; i++) {
		folder_join(path, v->folder, names[i]);
		write_file(i, next, m);
		cr_assert_eq(rename(next, path), 0);
	}
}

/* Relay and files; who is who: the relay shows relay, whose root is in ca, and wants clients of clients'
 * root. */
struct scene {
	struct stage *s;
	struct volume volume;
	struct material now;
	struct relay_token token;
	struct certs_identity root, other_root, relay, client;
	char relay_cert[FOLDER_PATH_MAX], relay_key[FOLDER_PATH_MAX], clients[FOLDER_PATH_MAX];
};

static struct scene scene;

static struct certs_identity issue(const struct certs_identity *root)
{
	return certs_issue(root, "DNS:localhost", -60, 3600);
}

static void show_at_relay(struct scene *c, const struct certs_identity *id)
{
	certs_write_cert(id, c->relay_cert);
	certs_write_key(id, c->relay_key);
}

static void start_worker(struct scene *c)
{
	char address[64];

	for (unsigned i = 0; i < FILES; i++)
		snprintf(c->volume.settings[i], sizeof c->volume.settings[i], "%s=%s/%s", variables[i],
			 c->volume.folder, names[i]);
	snprintf(address, sizeof address, "RELAY_ADDR=localhost:%u", relay_port(c->s->relay));
	worker_start(&c->s->worker, c->s->relay,
		     WORKER_SETTINGS(address, "RELAY_TLS=1", "SANDBOX_TOKEN=", c->volume.settings[0],
				     c->volume.settings[1], c->volume.settings[2], c->volume.settings[3]));
}

/* A frame of the relay's brings the backoff down, so that the next dial comes soon. */
static void reattach(struct scene *c)
{
	stage_reattach(c->s);
	stage_expect_end(stage_exec(c->s, "exit 3"), 3);
}

static void redial(struct scene *c)
{
	relay_cut(c->s->attached, RELAY_CUT_CLOSE);
	reattach(c);
}

/* The next dial ends with text in a line of the log. */
static void expect_failed_dial(struct scene *c, const char *text)
{
	relay_cut(c->s->attached, RELAY_CUT_CLOSE);
	cr_assert(worker_wait_said(&c->s->worker, text, STAGE_WAIT_MS), "it did not say %s", text);
	cr_assert(!relay_attached(c->s->relay));
	cr_assert(!c->s->worker.exited);
}

static struct scene *open_scene(bool swaps)
{
	struct scene *c = &scene;
	struct relay_options options;

	c->s = stage_prepare();
	c->root = certs_root("one root");
	c->other_root = certs_root("another root");
	c->relay = issue(&c->root);
	c->client = issue(&c->root);
	folder_join(c->relay_cert, c->s->folder, "relay.crt");
	folder_join(c->relay_key, c->s->folder, "relay.key");
	folder_join(c->clients, c->s->folder, "clients.crt");
	show_at_relay(c, &c->relay);
	certs_write_cert(&c->root, c->clients);
	c->token = (struct relay_token){"sbx", "the-first-token"};
	options = (struct relay_options){.tokens = &c->token,
					 .token_count = 1,
					 .cert_file = c->relay_cert,
					 .key_file = c->relay_key,
					 .client_ca_file = c->clients};
	stage_relay(c->s, &options);
	c->volume.swaps = swaps;
	folder_join(c->volume.folder, c->s->folder, "volume");
	cr_assert_eq(mkdir(c->volume.folder, 0700), 0);
	c->now = (struct material){c->token.token, &c->root, &c->client, &c->client};
	publish(&c->volume, &c->now);
	start_worker(c);
	reattach(c);
	return c;
}

static void close_scene(struct scene *c)
{
	relay_forgive(c->s->relay); /* handshakes that failed, as they were to */
	stage_close(c->s);
	certs_free(&c->root);
	certs_free(&c->other_root);
	certs_free(&c->relay);
	certs_free(&c->client);
}

static void rotate_token(bool swaps)
{
	struct scene *c = open_scene(swaps);
	unsigned uses;

	redial(c);
	uses = relay_token_uses(c->s->relay, "the-first-token");
	cr_assert_geq(uses, 2);
	c->now.token = c->token.token = "token-number-two\n";
	publish(&c->volume, &c->now);
	c->token.token = "token-number-two";
	/* The stream that stands is left alone. */
	stage_expect_end(stage_exec(c->s, "exit 4"), 4);
	redial(c);
	redial(c);
	cr_assert_eq(relay_token_uses(c->s->relay, "the-first-token"), uses, "the old token was shown again");
	cr_assert_geq(relay_token_uses(c->s->relay, "token-number-two"), 2);
	cr_assert_eq(relay_refusals(c->s->relay), 0);
	/* The token of a day long gone is no more than any other word. */
	c->now.token = c->token.token = "3";
	publish(&c->volume, &c->now);
	redial(c);
	cr_assert_eq(relay_refusals(c->s->relay), 0);
	close_scene(c);
}

Test(rotation, of_the_token_by_rename)
{
	rotate_token(false);
}

Test(rotation, of_the_token_by_swap)
{
	rotate_token(true);
}

/* In none of the worker's processes, at no place. */
Test(rotation, leaves_no_copy_of_the_old_token)
{
	static const char old[] = "first-token-that-nobody-should-find-again", next[] = "second-token";
	/* What a shorter one would leave of it. */
	const char *tail = strstr(old, "that-");
	struct scene *c = open_scene(false);
	pid_t pids[64];
	size_t count;
	int copies = 0;

	if (memory_count(c->s->worker.pid, tail) < 0) {
		close_scene(c);
		cr_skip_test("needs root to read a process that is not dumpable");
	}
	c->now.token = c->token.token = old;
	publish(&c->volume, &c->now);
	redial(c);
	cr_assert_gt(memory_count(c->s->worker.pid, tail), 0, "the search finds nothing");
	c->now.token = c->token.token = next;
	publish(&c->volume, &c->now);
	redial(c);
	count = process_descendants(c->s->worker.pid, pids, 63);
	pids[count++] = c->s->worker.pid;
	cr_assert_geq(count, 4);
	for (size_t i = 0; i < count; i++) {
		int found = memory_count(pids[i], tail);

		cr_assert_leq(found, 0, "pid %d holds it", (int)pids[i]);
		copies += memory_count(pids[i], next) > 0;
	}
	cr_assert_geq(copies, 1);
	close_scene(c);
}

/* The relay moves to another root. First only the relay, then the worker's file, then the relay back: a root
 * that was trusted once is not trusted any more. */
static void rotate_roots(bool swaps)
{
	static const char distrust[] = "TLS handshake: ";
	struct scene *c = open_scene(swaps);
	struct certs_identity moved = issue(&c->other_root);
	unsigned said;

	show_at_relay(c, &moved);
	cr_assert_eq(relay_renew_tls(c->s->relay), 0);
	expect_failed_dial(c, distrust);
	c->now.ca = &c->other_root;
	publish(&c->volume, &c->now);
	reattach(c);
	show_at_relay(c, &c->relay);
	cr_assert_eq(relay_renew_tls(c->s->relay), 0);
	said = worker_said_times(&c->s->worker, distrust);
	relay_cut(c->s->attached, RELAY_CUT_CLOSE);
	for (uint64_t end = clock_now_ms() + slow_ms(STAGE_WAIT_MS);
	     worker_said_times(&c->s->worker, distrust) == said;) {
		cr_assert(clock_now_ms() < end && !relay_attached(c->s->relay));
		relay_run(c->s->relay, 10);
	}
	cr_assert_eq(relay_refusals(c->s->relay), 0);
	c->now.ca = &c->root;
	publish(&c->volume, &c->now);
	reattach(c);
	certs_free(&moved);
	close_scene(c);
}

Test(rotation, of_the_roots_by_rename)
{
	rotate_roots(false);
}

Test(rotation, of_the_roots_by_swap)
{
	rotate_roots(true);
}

static void rotate_client(bool swaps)
{
	struct scene *c = open_scene(swaps);
	struct certs_identity renewed = issue(&c->root);

	cr_assert_eq(c->s->attached->client_serial, certs_serial(&c->client));
	c->now.cert = c->now.key = &renewed;
	publish(&c->volume, &c->now);
	redial(c);
	cr_assert_eq(c->s->attached->client_serial, certs_serial(&renewed));
	certs_free(&renewed);
	close_scene(c);
}

Test(rotation, of_the_client_certificate_by_rename)
{
	rotate_client(false);
}

Test(rotation, of_the_client_certificate_by_swap)
{
	rotate_client(true);
}

/* Half done: the key is new, the certificate is not yet. One line a dial says so, and the dial after the
 * other half works. */
Test(rotation, that_is_half_done_is_one_clear_line_and_another_dial)
{
	static const char mismatch[] = "the key does not belong to the certificate of RELAY_CERT_FILE";
	struct scene *c = open_scene(false);
	struct certs_identity renewed = issue(&c->root);

	c->now.key = &renewed;
	publish(&c->volume, &c->now);
	expect_failed_dial(c, mismatch);
	cr_assert(worker_said(&c->s->worker, "msg=\"dial failed\" class=credentials"));
	c->now.cert = &renewed;
	publish(&c->volume, &c->now);
	reattach(c);
	cr_assert_eq(c->s->attached->client_serial, certs_serial(&renewed));
	cr_assert_eq(worker_said_times(&c->s->worker, mismatch),
		     worker_said_times(&c->s->worker, "msg=\"attempt failed\" why=credentials"));
	certs_free(&renewed);
	close_scene(c);
}

/* A file that is gone, empty or not what it should be: the same, whichever it is. At a start it is exit 2
 * (test_settings.c); a running worker waits for it to come back. */
Test(rotation, that_loses_a_file_is_one_clear_line_and_another_dial)
{
	static const struct {
		unsigned which;
		const char *text; /* NULL: no file */
		const char *says;
	} bad[] = {
	    {0, NULL, "setting=SANDBOX_TOKEN_FILE why=\"names "},
	    {0, "", "holds a token that cannot be sent: it is empty"},
	    {0, "two\nlines", "holds a token that cannot be sent: it has"},
	    {1, NULL, "setting=RELAY_CA_FILE why=\"names "},
	    {1, "", "bundle): no certificate in it"},
	    {2, "-----BEGIN CERTIFICATE-----\nMIIB", "RELAY_CERT_FILE: "},
	    {3, "", "RELAY_KEY_FILE: no usable private key in it"},
	};
	struct scene *c = open_scene(false);
	char path[FOLDER_PATH_MAX];

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		folder_join(path, c->volume.folder, names[bad[i].which]);
		if (bad[i].text)
			folder_write(path, bad[i].text, strlen(bad[i].text));
		else
			cr_assert_eq(unlink(path), 0);
		expect_failed_dial(c, bad[i].says);
		publish(&c->volume, &c->now);
		reattach(c);
	}
	cr_assert(!worker_said(&c->s->worker, "level=warn msg=\"netd "), "more than one line about it");
	close_scene(c);
}
