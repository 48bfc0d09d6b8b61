/* The token never reaches a command. */
#include "tests/policy/hammer.h"

#include <sys/stat.h>

TestSuite(token, .timeout = 90, .fini = stage_fini);

#define RESTARTS 6

Test(token, of_the_environment_is_found_nowhere)
{
	struct stage *s = prepare();
	char setting[96];

	snprintf(setting, sizeof setting, "SANDBOX_TOKEN=%s", token);
	begin(s, setting, "SANDBOX_BACKGROUND=keep");
	search(s);
	expect_not_logged(s);
	stage_close(s);
}

/* The relay ends the call for another token than its own. What went wrong is logged, at every level and in
 * both formats, and not with what. */
static void fail_to_attach(const char *format)
{
	struct stage *s = prepare();
	char setting[96];

	snprintf(setting, sizeof setting, "SANDBOX_TOKEN=%s", token);
	stage_relay(s, &(struct relay_options){.token = "another"});
	worker_start(&s->worker, s->relay,
		     WORKER_SETTINGS(setting, format, "LOG_LEVEL=debug", "SANDBOX_AUDIT=log"));
	cr_assert(worker_wait_said(&s->worker, "netd closed", STAGE_WAIT_MS));
	cr_assert(worker_wait_said(&s->worker, "backoff_ms", STAGE_WAIT_MS));
	expect_not_logged(s);
	stage_close(s);
}

Test(token, that_the_relay_refuses_is_not_logged)
{
	fail_to_attach("LOG_FORMAT=text");
	fail_to_attach("LOG_FORMAT=json");
}

Test(token, is_not_in_a_log_of_json)
{
	struct stage *s = prepare();
	char setting[96];

	snprintf(setting, sizeof setting, "SANDBOX_TOKEN=%s", token);
	begin(s, setting, "LOG_FORMAT=json");
	stage_expect_end(stage_exec(s, "echo ${SANDBOX_TOKEN-none}; exit 4"), 4);
	process_kill(worker_netd(&s->worker), SIGKILL);
	stage_reattach(s);
	search(s);
	expect_not_logged(s);
	stage_close(s);
}

static void put_token(struct stage *s, char path[FOLDER_PATH_MAX + 16])
{
	int fd;

	snprintf(path, FOLDER_PATH_MAX + 16, "%s/token", s->folder);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && write(fd, token, strlen(token)) == (ssize_t)strlen(token));
	close(fd);
}

Test(token, of_a_file_is_hidden_by_another_user)
{
	struct stage *s = prepare();
	char path[FOLDER_PATH_MAX + 16], setting[FOLDER_PATH_MAX + 48];

	if (geteuid() != 0)
		cr_skip_test("not root");
	put_token(s, path);
	snprintf(setting, sizeof setting, "SANDBOX_TOKEN_FILE=%s", path);
	worker_start(
	    &s->worker, s->relay,
	    WORKER_SETTINGS(setting, "SANDBOX_TOKEN=", "SANDBOX_USER=65532:65532", "LOG_LEVEL=debug"));
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "cat %s", path), 1);
	search(s);
	cr_assert(!worker_said(&s->worker, "can be read by commands"));
	expect_not_logged(s);
	stage_close(s);
}

Test(token, of_a_file_that_cannot_be_hidden_is_warned_of_by_name)
{
	struct stage *s = prepare();
	char path[FOLDER_PATH_MAX + 16], setting[FOLDER_PATH_MAX + 48];

	put_token(s, path);
	snprintf(setting, sizeof setting, "SANDBOX_TOKEN_FILE=%s", path);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting, "SANDBOX_TOKEN=", "LOG_LEVEL=debug"));
	stage_reattach(s);
	cr_assert(worker_said(&s->worker, "SANDBOX_TOKEN_FILE can be read by commands"));
	cr_assert(worker_said(&s->worker, path));
	expect_not_logged(s);
	stage_close(s);
}

Test(token, is_safe_while_netd_starts_beside_what_was_kept)
{
	if (access("/usr/bin/python3", X_OK) < 0)
		cr_skip_test("no python3");
	restart_beside_a_hammer(RESTARTS, true);
}

/* Only their being non-dumpable keeps them shut here. */
Test(token, is_safe_while_netd_starts_without_landlock)
{
	if (access("/usr/bin/python3", X_OK) < 0)
		cr_skip_test("no python3");
	restart_beside_a_hammer(RESTARTS, false);
}
