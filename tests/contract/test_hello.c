/* contract.md 1 and "Configuration": what the worker says of itself, and that it goes on saying it is there.
 */
#include "tests/lib/stage.h"

#include "proto/sandbox/v1/sandbox.pb-c.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

TestSuite(hello, .timeout = 60, .fini = stage_fini);

static const char *arch(void)
{
	struct utsname u;

	cr_assert(uname(&u) == 0);
	return strcmp(u.machine, "aarch64") == 0 ? "arm64" : "amd64";
}

Test(hello, tells_the_defaults)
{
	const Sandbox__V1__Hello *hello;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=", "SANDBOX_IMAGE=", "SANDBOX_TRUST="));
	hello = s->attached->hello;
	cr_assert_str_eq(hello->sandbox_id, "sbx");
	cr_assert_str_eq(hello->arch, arch());
	cr_assert_eq(hello->capacity_max, 4);
	cr_assert_str_eq(hello->trust, "untrusted");
	cr_assert_str_eq(hello->image, "");
	cr_assert_eq(hello->n_labels, 1);
	cr_assert_str_eq(hello->labels[0]->key, "moca.dev/tier");
	cr_assert_str_eq(hello->labels[0]->value, "container");
	cr_assert_geq(hello->n_capabilities, 1);
	cr_assert_str_eq(hello->capabilities[0], "bash");
	stage_close(s);
}

Test(hello, tells_what_is_set_and_what_is_on_the_path)
{
	char bash[FOLDER_PATH_MAX], python[FOLDER_PATH_MAX], git[FOLDER_PATH_MAX], file[FOLDER_PATH_MAX];
	char path[FOLDER_PATH_MAX + 8];
	const Sandbox__V1__Hello *hello;
	struct stage *s;

	s = stage_prepare();
	folder_join(bash, s->folder, "bash");
	folder_join(python, s->folder, "python3");
	folder_join(git, s->folder, "git");
	folder_join(file, s->folder, "file");
	folder_copy("/bin/bash", bash, 0700);
	folder_copy("/bin/true", python, 0700);
	folder_copy("/bin/true", git, 0600); /* there, but not to be executed */
	cr_assert(mkdir(file, 0700) == 0);
	snprintf(path, sizeof path, "PATH=%s", s->folder);
	worker_start(&s->worker, s->relay,
		     WORKER_SETTINGS(path, "WORKER_MAX_CONCURRENT=7", "SANDBOX_IMAGE=registry/\xc3\xa9:1",
				     "SANDBOX_TRUST=trusted", "SANDBOX_TIER=gvisor"));
	stage_reattach(s);
	hello = s->attached->hello;
	cr_assert_eq(hello->capacity_max, 7);
	cr_assert_str_eq(hello->trust, "trusted");
	cr_assert_str_eq(hello->image, "registry/\xc3\xa9:1");
	cr_assert_eq(hello->n_labels, 1);
	cr_assert_str_eq(hello->labels[0]->value, "gvisor");
	cr_assert_eq(hello->n_capabilities, 2);
	cr_assert_str_eq(hello->capabilities[0], "bash");
	cr_assert_str_eq(hello->capabilities[1], "python3");
	stage_close(s);
}

/* So that a harness that picks by tier never picks it. */
Test(hello, has_no_label_for_a_blank_tier)
{
	struct stage *s = stage_open(WORKER_SETTINGS("SANDBOX_TIER="));

	cr_assert_eq(s->attached->hello->n_labels, 0);
	stage_close(s);
}

static bool has_three(const void *arg)
{
	return ((const struct relay_worker *)arg)->heartbeats >= 3;
}

Test(hello, is_followed_by_heartbeats)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("HEARTBEAT_S=1"));
	cr_assert(relay_wait(s->relay, has_three, s->attached, STAGE_WAIT_MS));
	stage_close(s);
}

/* The real relay sends no headers before its first message; others send them at once. Both are fine. */
Test(hello, needs_no_response_headers)
{
	struct stage *s;

	s = stage_prepare();
	relay_manners(s->relay)->early_headers = true;
	worker_start(&s->worker, s->relay, WORKER_SETTINGS("HEARTBEAT_S=1"));
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 3"), 3);
	stage_close(s);
}

/* Its windows are then what they are without our SETTINGS. */
Test(hello, needs_no_answer_to_its_settings)
{
	struct relay_exec *exec;
	char *input = calloc(1, 300000);
	struct stage *s;

	cr_assert(input);
	s = stage_prepare();
	relay_manners(s->relay)->no_settings_ack = true;
	worker_start(&s->worker, s->relay, WORKER_SETTINGS());
	stage_reattach(s);
	exec =
	    stage_send(s, &(struct relay_request){.command = "wc -c", .input = input, .input_size = 300000});
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "300000\n");
	free(input);
	stage_close(s);
}

Test(hello, comes_with_the_token_of_the_file)
{
	static const struct relay_token own = {"sbx", "from-the-file"};
	char token[FOLDER_PATH_MAX], setting[FOLDER_PATH_MAX + 32];
	struct stage *s;

	s = stage_prepare();
	stage_relay(s, &(struct relay_options){.tokens = &own, .token_count = 1});
	folder_join(token, s->folder, "token");
	folder_write(token, "from-the-file\n", 14);
	snprintf(setting, sizeof setting, "SANDBOX_TOKEN_FILE=%s", token);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting, "SANDBOX_TOKEN="));
	stage_reattach(s);
	cr_assert_eq(relay_refusals(s->relay), 0);
	stage_close(s);
}

/* The command looks at its own environment and at that of every process it may look at. */
Test(hello, keeps_the_token_from_the_commands)
{
	struct relay_exec *exec;
	char setting[64];
	struct stage *s;

	s = stage_prepare();
	stage_relay(s, &(struct relay_options){.token = s->mark});
	snprintf(setting, sizeof setting, "SANDBOX_TOKEN=%s", s->mark);
	worker_start(&s->worker, s->relay,
		     WORKER_SETTINGS(setting, "HTTPS_PROXY=http://user:hush-hush@127.0.0.1:1",
				     "NO_PROXY=127.0.0.1", "MINE=yes"));
	stage_reattach(s);
	exec = stage_exec(s, "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; env");
	stage_expect_end(exec, 0);
	relay_bytes_add(&exec->out, "", 1);
	cr_assert(strstr((char *)exec->out.at, "MINE=yes"));
	cr_assert(strstr((char *)exec->out.at, "PATH="));
	cr_assert(strstr((char *)exec->out.at, "HOME="));
	cr_assert(!strstr((char *)exec->out.at, s->mark), "the token can be read");
	cr_assert(!strstr((char *)exec->out.at, "hush-hush"), "the proxy's password can be read");
	exec = stage_exec(s, "env | grep -E 'RELAY_|SANDBOX_TOKEN'");
	stage_expect_end(exec, 1);
	stage_close(s);
}
