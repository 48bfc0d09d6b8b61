/* Settings of ours, seen from a command and in the files that the worker writes. */
#include "common/clock.h"
#include "common/drop.h"
#include "tests/lib/program.h"
#include "tests/lib/slow.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

TestSuite(settings_in_force, .timeout = 60, .fini = stage_fini);

static void need_root(void)
{
	if (!drop_holds(CAP_SETUID) || !drop_holds(CAP_SETPCAP))
		cr_skip_test("needs root");
}

static void expect(struct stage *s, const char *command, const char *out)
{
	struct relay_exec *exec = stage_exec(s, "%s", command);

	stage_expect_end(exec, 0);
	stage_expect_out(exec, out);
}

/* Without stdin there is no pipe at 0 but /dev/null. */
static void expect_with_stdin(struct stage *s, const char *command, const char *out)
{
	struct relay_exec *exec = stage_send(
	    s, &(struct relay_request){.command = command, .input = "x", .input_size = 1, .streaming = true});

	stage_expect_end(exec, 0);
	stage_expect_out(exec, out);
}

Test(settings_in_force, give_commands_a_user)
{
	struct stage *s;

	need_root();
	s = stage_open(WORKER_SETTINGS("SANDBOX_USER=64123:64124"));
	expect(s, "id -u; id -g; id -G", "64123\n64124\n64124\n");
	expect(s, "echo $HOME $USER $LOGNAME $SHELL", "/ 64123 64123 /bin/sh\n");
	expect(s, "grep CapPrm /proc/self/status", "CapPrm:\t0000000000000000\n");
	expect_with_stdin(s, "stat -L -c %u /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2",
			  "64123\n64123\n64123\n");
	expect(s, "cat /dev/stdin", "");
	expect(s, "echo through >/dev/stdout", "through\n");
	stage_close(s);
}

Test(settings_in_force, give_commands_the_start_folder_or_the_root)
{
	struct stage *s;

	need_root();
	cr_assert_eq(chdir("/root"), 0);
	s = stage_open(WORKER_SETTINGS("SANDBOX_USER=64123:64124"));
	expect(s, "pwd", access("/root", X_OK) == 0 && (getuid() == 0) ? "/\n" : "/root\n");
	cr_assert(worker_said(&s->worker, "commands start in /"));
	stage_close(s);
}

Test(settings_in_force, keep_capabilities_for_commands)
{
	struct stage *s;

	need_root();
	s = stage_open(WORKER_SETTINGS("SANDBOX_USER=64123:64124", "SANDBOX_KEEP_CAPS=net_raw,CAP_CHOWN"));
	expect(s, "grep -E 'Cap(Prm|Eff|Bnd)' /proc/self/status",
	       "CapPrm:\t0000000000002001\nCapEff:\t0000000000002001\nCapBnd:\t0000000000002001\n");
	stage_close(s);
}

/* Root of a container that dropped all capabilities: one uid, and it works. */
Test(settings_in_force, do_without_any_capability)
{
	const char *environment[WORKER_ENVIRONMENT_MAX];
	static struct program p;

	need_root();
	worker_environment(environment, 9, WORKER_SETTINGS());
	program_start(&p,
		      (const char *const[]){"setpriv", "--bounding-set=-all", "--no-new-privs",
					    program_built("execd"), NULL},
		      environment, NULL);
	cr_assert(program_wait_said(&p, "backoff_ms=", PROGRAM_WAIT_MS), "%s", p.said);
	cr_assert(strstr(p.said, "netd runs as uid 0"));
	kill(p.pid, SIGTERM);
	cr_assert_eq(program_wait_exit(&p, 5000), 0);
}

Test(settings_in_force, leave_an_audit_trail_in_a_file)
{
	char path[FOLDER_PATH_MAX], setting[FOLDER_PATH_MAX + 16], text[8192];
	struct stage *s = stage_prepare();

	folder_join(path, s->folder, "trail");
	snprintf(setting, sizeof setting, "SANDBOX_AUDIT=%s", path);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "echo s3cr3t-word; exit 7"), 7);
	cr_assert(worker_stop(&s->worker));
	cr_assert_gt(folder_read(path, text, sizeof text), 0);
	cr_assert(strstr(text, "\"event\":\"start\""), "%s", text);
	cr_assert(strstr(text, "\"event\":\"end\""), "%s", text);
	cr_assert(strstr(text, "\"outcome\":\"exit\",\"value\":7"), "%s", text);
	cr_assert(strstr(text, "\"fingerprint\":\""), "%s", text);
	cr_assert_null(strstr(text, "s3cr3t-word"));
	stage_close(s);
}

Test(settings_in_force, leave_an_audit_trail_in_the_log)
{
	struct stage *s = stage_open(WORKER_SETTINGS("SANDBOX_AUDIT=log"));

	stage_expect_end(stage_exec(s, "exit 7"), 7);
	cr_assert(worker_wait_said(&s->worker, "msg=audit event=end", STAGE_WAIT_MS));
	stage_close(s);
}

/* The file is written after the log, and in place: what is read in between is old, or not all of it. */
static void await_in_file(const char *path, const char *text)
{
	uint64_t end = clock_now_ms() + slow_ms(STAGE_WAIT_MS);
	char is[4096] = "";

	do {
		if (folder_read(path, is, sizeof is) > 0 && strstr(is, text))
			return;
		usleep(10000);
	} while (clock_now_ms() < end);
	cr_assert(false, "%s", is);
}

Test(settings_in_force, show_the_stream_in_the_status_file)
{
	char path[FOLDER_PATH_MAX], setting[FOLDER_PATH_MAX + 16], text[4096];
	struct stage *s = stage_prepare();

	folder_join(path, s->folder, "status");
	snprintf(setting, sizeof setting, "STATUS_FILE=%s", path);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
	cr_assert(worker_wait_said(&s->worker, "execd level=info msg=attached", STAGE_WAIT_MS));
	await_in_file(path, "state=attached\nattached=1\n");
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 0"), 0);
	cr_assert(worker_stop(&s->worker));
	cr_assert_gt(folder_read(path, text, sizeof text), 0);
	cr_assert(strstr(text, "state=stopped\nattached=0\n"), "%s", text);
	cr_assert(strstr(text, "\nstarted=1\n"), "%s", text);
	stage_close(s);
}

/* Each line of the log is a JSON object, netd's too. */
Test(settings_in_force, write_the_log_as_json)
{
	struct stage *s = stage_open(WORKER_SETTINGS("LOG_FORMAT=json", "LOG_LEVEL=debug"));
	const char *at, *end;

	stage_expect_end(stage_exec(s, "exit 0"), 0);
	cr_assert(worker_stop(&s->worker));
	at = (const char *)s->worker.log.at;
	end = at + s->worker.log.size;
	cr_assert_gt(end - at, 100);
	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));

		cr_assert(line_end && *at == '{' && line_end[-1] == '}', "%.*s", (int)(end - at), at);
		at = line_end + 1;
	}
	cr_assert(worker_said(&s->worker, "\"process\":\"netd\""));
	stage_close(s);
}

/* The worker starts, is refused, and gets in once the file holds the right token: no restart. */
Test(settings_in_force, read_the_token_anew_at_each_dial)
{
	static const struct relay_token own = {"sbx", "the-new-one"};
	char path[FOLDER_PATH_MAX], next[FOLDER_PATH_MAX], setting[FOLDER_PATH_MAX + 32];
	struct stage *s = stage_prepare();

	stage_relay(s, &(struct relay_options){.tokens = &own, .token_count = 1});
	folder_join(path, s->folder, "token");
	folder_join(next, s->folder, "next");
	folder_write(path, "the-old-one\n", 12);
	snprintf(setting, sizeof setting, "SANDBOX_TOKEN_FILE=%s", path);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting, "SANDBOX_TOKEN="));
	cr_assert(relay_wait_refusals(s->relay, 1, STAGE_WAIT_MS));
	folder_write(next, "the-new-one\n", 12);
	cr_assert_eq(rename(next, path), 0);
	s->attached = relay_wait_attached(s->relay, 0, 20000);
	cr_assert(s->attached);
	stage_expect_end(stage_exec(s, "exit 4"), 4);
	stage_close(s);
}

Test(settings_in_force, put_a_policy_of_a_file_over_commands)
{
	/* mkdir is refused with an errno that no policy of ours gives, all else is allowed. */
	const struct sock_filter insns[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 83 /* mkdir on x86-64 */, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 28 /* ENOSPC */),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	char path[FOLDER_PATH_MAX], setting[FOLDER_PATH_MAX + 32];
	struct relay_exec *exec;
	struct stage *s = stage_prepare();

#ifndef __x86_64__
	cr_skip_test("knows the number of mkdir on x86-64 only");
#endif
	folder_join(path, s->folder, "policy");
	folder_write(path, insns, sizeof insns);
	snprintf(setting, sizeof setting, "SANDBOX_SECCOMP_BPF=%s", path);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
	stage_reattach(s);
	exec = stage_exec(s, "mkdir %s/folder", s->folder);
	stage_expect_end(exec, 1);
	relay_bytes_add(&exec->err, "", 1);
	cr_assert(strstr((const char *)exec->err.at, "No space left"), "%s", (const char *)exec->err.at);
	stage_close(s);
}
