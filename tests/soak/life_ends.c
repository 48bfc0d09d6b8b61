/* How a worker's life begins and ends. */
#include "tests/soak/soak.h"

#include "common/clock.h"
#include "tests/lib/certs.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void empty_file(char path[FOLDER_PATH_MAX], const char *name)
{
	folder_join(path, soak.stage->folder, name);
	folder_write(path, "", 0);
	cr_assert_eq(chmod(path, 0666), 0);
}

static void start_worker(void)
{
	static char setting[3][FOLDER_PATH_MAX + 32];
	static const char *const concurrent[] = {"WORKER_MAX_CONCURRENT=1", "WORKER_MAX_CONCURRENT=2",
						 "WORKER_MAX_CONCURRENT=4", "WORKER_MAX_CONCURRENT=8"};
	uint32_t which = dice(4);
	const char *settings[16];
	size_t n = 0;

	soak.slots = 1u << which;
	soak.keep = dice_chance(50);
	snprintf(setting[0], sizeof setting[0], "STATUS_FILE=%s", soak.status);
	snprintf(setting[1], sizeof setting[1], "SANDBOX_AUDIT=%s/audit", soak.stage->folder);
	settings[n++] = concurrent[which];
	settings[n++] = soak.keep ? "SANDBOX_BACKGROUND=keep" : "SANDBOX_BACKGROUND=kill";
	settings[n++] = setting[0];
	settings[n++] = setting[1];
	if (dice_chance(50))
		settings[n++] = "SANDBOX_KILLER=sweep";
	if (dice_chance(50))
		settings[n++] = "HEARTBEAT_S=1";
	if (dice_chance(30))
		settings[n++] = "LOG_FORMAT=json";
	if (dice_chance(30) && geteuid() == 0)
		settings[n++] = "SANDBOX_USER=65532:65532";
	soak.drain_s = dice_chance(30) ? 2 : 0;
	if (soak.drain_s > 0)
		settings[n++] = "WORKER_DRAIN_S=2";
	if (soak.tls) {
		snprintf(setting[2], sizeof setting[2], "RELAY_CA_FILE=%s/ca", soak.stage->folder);
		settings[n++] = setting[2];
		settings[n++] = "RELAY_TLS=1";
	}
	settings[n] = NULL;
	for (size_t i = 0; i < n; i++)
		soak_note("%s", settings[i]);
	worker_start(&soak.stage->worker, soak.stage->relay, settings);
	stage_reattach(soak.stage);
}

/* The root's certificate goes into the folder, the relay's own is read through our descriptors. */
static void use_tls(struct relay_options *options)
{
	static char paths[2][64];
	struct certs_identity root = certs_root("root"), own = certs_issue(&root, "IP:127.0.0.1", -60, 86400);
	int ca = certs_cert_fd(&root), cert = certs_cert_fd(&own), key = certs_key_fd(&own, NULL);
	char pem[8192], path[FOLDER_PATH_MAX];
	ssize_t n = read(ca, pem, sizeof pem);

	cr_assert_gt(n, 0);
	folder_join(path, soak.stage->folder, "ca");
	folder_write(path, pem, (size_t)n);
	snprintf(paths[0], sizeof paths[0], "/proc/self/fd/%d", cert);
	snprintf(paths[1], sizeof paths[1], "/proc/self/fd/%d", key);
	options->cert_file = paths[0];
	options->key_file = paths[1];
	stage_relay(soak.stage, options);
	close(ca);
	close(cert);
	close(key);
	certs_free(&own);
	certs_free(&root);
}

void life_begin(uint64_t seed, struct soak_totals *totals)
{
	static struct relay_options options;

	options = (struct relay_options){.token = "token", .observer = model_observer()};
	soak = (struct soak){.seed = seed, .totals = totals};
	dice_begin(seed, 0);
	soak.stage = stage_prepare();
	soak.tls = dice_chance(30);
	if (soak.tls)
		use_tls(&options);
	else
		stage_relay(soak.stage, &options);
	cr_assert_eq(chmod(soak.stage->folder, 0777), 0);
	empty_file(soak.ran, "ran");
	empty_file(soak.kept, "kept");
	folder_join(soak.status, soak.stage->folder, "status");
	/* Ids reach 2^53 in the field, and 2^64 on the wire. */
	soak.stage->last_id = (uint64_t[]){0, (1ull << 53) - 100, UINT64_MAX - 100000}[dice(3)];
	soak.first_id = soak.stage->last_id + 1;
	start_worker();
	census_begin();
}

/* A file says nothing when it is written: it is asked. */
static void wait_quiet(void)
{
	uint64_t start = clock_now_ms();

	while (census_status("running") != 0 || census_status("waiting") != 0) {
		if (clock_now_ms() - start > SOAK_PROOF_MS)
			soak_blame("status: work where there is none");
		soak_run(50);
	}
}

static void judge_status(void)
{
	static const char *const never[] = {"unproven", "violations", "log_dropped", "audit_dropped"};

	wait_quiet();
	for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
		if (census_status(never[i]) != 0)
			soak_blame("status: %s=%" PRIu64, never[i], census_status(never[i]));
	}
	if (census_status("capacity") != soak.slots)
		soak_blame("status: capacity=%" PRIu64, census_status("capacity"));
	soak_check();
}

static unsigned lines_with(const char *path, const char *text)
{
	char line[1024];
	unsigned count = 0;
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof line, f))
		count += strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return count;
}

/* What ran was told of. A slot that dies with its command may not have said that it started it. */
static void judge_audit(void)
{
	char audit[FOLDER_PATH_MAX];
	unsigned started, ran = lines_with(soak.ran, " ");

	folder_join(audit, soak.stage->folder, "audit");
	started = lines_with(audit, "\"event\":\"start\"");
	if (started == 0 || (ran > started && !soak.slots_hit))
		soak_blame("%u commands ran, the audit tells of %u", ran, started);
	soak_check();
}

static void judge_log(void)
{
	static const char *const never[] = {"violation",
					    "broke",
					    "not proven",
					    "could not be killed",
					    "does not end",
					    "SIGSYS",
					    "refused by the seccomp",
					    "runtime error",
					    "AddressSanitizer"};

	for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
		if (worker_said(&soak.stage->worker, never[i]))
			soak_blame("the log says \"%s\"", never[i]);
	}
	soak.totals->minders_evicted +=
	    worker_said_times(&soak.stage->worker, "too many background processes");
	soak_check();
}

static bool is_answered(const void *arg)
{
	return ((const struct soak_exec *)arg)->pending == 0;
}

/* SIGTERM with work under way: each is answered, and nothing is left. */
static void leave(bool twice)
{
	soak_note("SIGTERM");
	process_kill(soak.stage->worker.pid, SIGTERM);
	if (twice) {
		relay_run(soak.stage->relay, dice(300));
		process_kill(soak.stage->worker.pid, SIGTERM);
	}
	if (!worker_wait_exit(&soak.stage->worker, 5000 + 1000u * soak.drain_s))
		soak_blame("the worker does not leave in 5 s");
	soak_check();
	if (model_owed() > 0)
		soak_blame("%u answers are missing after SIGTERM", model_owed());
	cr_assert_eq(soak.stage->worker.wait_status, 0, "SOAK_SEED=%" PRIu64 ": wait status %x", soak.seed,
		     (unsigned)soak.stage->worker.wait_status);
}

void life_end(void)
{
	uint32_t count, how;

	judge_status();
	life_next_step();
	how = dice(8);
	count = dice(3 * soak.slots + 5);
	while (count-- > 0)
		model_send();
	/* Refused at once: what was sent before it has come, too. */
	soak_wait(is_answered, model_send_refused(), SOAK_PROOF_MS, "a refusal");
	soak.stopping = true;
	if (how > 0) {
		leave(how == 1);
	} else {
		soak_note("SIGKILL for execd");
		worker_kill(&soak.stage->worker);
		cr_assert(process_wait_no_children(soak.stage->relay, SOAK_PROOF_MS),
			  "SOAK_SEED=%" PRIu64 ": processes outlive execd", soak.seed);
		model_lost();
		soak_forgive();
	}
	model_judge();
	judge_log();
	judge_audit();
	model_forget();
	stage_leave(soak.stage);
	soak.stage = NULL;
}
