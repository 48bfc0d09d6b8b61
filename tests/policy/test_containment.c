/* The worker as one of its commands sees it: who can do what to whom. */
#include "common/landlock.h"
#include "policy/emit.h"
#include "tests/lib/outer.h"
#include "tests/lib/program.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(containment, .timeout = 60, .fini = stage_fini);

/* None of these commands succeeds for a process of the worker, whose number is $p. */
static void refused_for_ours(struct stage *s, const char *const *commands)
{
	const pid_t ours[] = {s->worker.pid, worker_netd(&s->worker)};

	for (; *commands; commands++) {
		for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
			struct relay_exec *exec =
			    stage_exec(s, "p=%d; [ -d /proc/$p ] && ! %s", ours[i], *commands);

			const struct relay_terminal *end = relay_wait_end(exec, STAGE_WAIT_MS);

			cr_assert(end && end->kind == RELAY_END && end->exit_code == 0, "%s", *commands);
		}
	}
}

#define COMMANDS(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(containment, a_command_has_no_privilege_left)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(
	    s, "grep -E '^(NoNewPrivs|Seccomp|Cap(Inh|Prm|Eff|Amb)):' /proc/self/status | tr -d '\\n\\t'; "
	       "ulimit -c");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "CapInh:0000000000000000CapPrm:0000000000000000CapEff:0000000000000000"
			       "CapAmb:0000000000000000NoNewPrivs:1Seccomp:20\n");
	stage_close(s);
}

Test(containment, a_command_cannot_look_into_the_worker)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	refused_for_ours(s, COMMANDS("cat /proc/$p/environ", "cat /proc/$p/maps", "readlink /proc/$p/fd/0",
				     "readlink /proc/$p/exe", "exec 3</proc/$p/mem"));
	stage_close(s);
}

Test(containment, a_command_cannot_signal_the_worker)
{
	struct stage *s;

	if (landlock_abi() < LANDLOCK_ABI_SCOPE)
		cr_skip("no Landlock with scopes");
	s = stage_open(WORKER_SETTINGS());
	refused_for_ours(s, COMMANDS("kill -0 $p", "kill -KILL $p", "kill -STOP $p"));
	stage_close(s);
}

Test(containment, a_command_cannot_starve_the_worker)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	refused_for_ours(s, COMMANDS("prlimit --pid $p --nofile=3", "prlimit --pid $p --cpu=1",
				     "renice -n 19 -p $p", "chrt --idle -p 0 $p", "ionice -c 3 -p $p"));
	stage_close(s);
}

/* What commands leave is theirs together: a later one finds who holds a port, looks into it, traces it, ends
 * it.
 */
Test(containment, a_command_can_find_trace_and_end_what_another_left)
{
	struct relay_exec *exec;
	struct stage *s;

	if (landlock_abi() < LANDLOCK_ABI_SCOPE)
		cr_skip("no Landlock with scopes");
	s = stage_open(WORKER_SETTINGS());
	stage_expect_end(
	    stage_exec(s, "sleep %s >/dev/null 2>&1 </dev/null & echo $! >%s/pid", s->mark, s->folder), 0);
	exec = stage_exec(s,
			  "p=$(cat %s/pid); readlink /proc/$p/fd/0 && cat /proc/$p/maps >/dev/null && %s "
			  "left=$p && kill $p",
			  s->folder, program_built("tests/tenant"));
	stage_expect_end(exec, 0);
	cr_assert(exec->out.size > 0 && memmem(exec->out.at, exec->out.size, "left stl", 8));
	stage_close(s);
}

Test(containment, with_kill_a_command_reaches_no_other)
{
	struct relay_exec *first, *second;
	struct stage *s;

	if (landlock_abi() < LANDLOCK_ABI_SCOPE)
		cr_skip("no Landlock with scopes");
	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));
	first = stage_exec(s, "echo ready; until [ -e %s/go ]; do sleep 0.05; done", s->folder);
	stage_wait_out(first, "ready\n");
	second = stage_exec(
	    s,
	    "for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = $$ ] || ! kill -0 $p || echo $p; done; "
	    "touch %s/go",
	    s->folder);
	stage_expect_end(second, 0);
	stage_expect_out(second, "");
	stage_expect_end(first, 0);
	stage_close(s);
}

Test(containment, a_debugger_works_within_one_command)
{
	struct relay_exec *exec;
	struct stage *s;

	if (landlock_abi() < LANDLOCK_ABI_REFER)
		cr_skip("no Landlock");
	if (access("/usr/bin/strace", X_OK) < 0)
		cr_skip("no strace");
	s = stage_open(WORKER_SETTINGS());
	exec =
	    stage_exec(s, "strace -o %s/t -e trace=execve true && grep -c execve %s/t", s->folder, s->folder);
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "1\n");
	/* What is outside stays outside, whoever asks. */
	stage_expect_end(stage_exec(s, "! timeout 5 strace -p %d", worker_netd(&s->worker)), 0);
	stage_close(s);
}

/* --- below somebody else's filter --- */

Test(containment, the_worker_works_below_a_container_runtimes_filter)
{
	struct stage *s;

	outer_container();
	s = stage_open(WORKER_SETTINGS());
	stage_expect_end(stage_exec(s, "(exit 3) | true; exit 4"), 4);
	stage_close(s);
}

Test(containment, without_landlock_nothing_is_traced)
{
	struct relay_exec *exec;
	struct stage *s;

	if (access("/usr/bin/strace", X_OK) < 0)
		cr_skip("no strace");
	outer_no_landlock();
	s = stage_open(WORKER_SETTINGS());
	cr_assert(worker_wait_said(&s->worker, "landlock_abi=0", STAGE_WAIT_MS));
	exec = stage_exec(s, "LC_ALL=C strace true 2>&1 | grep -o 'Operation not permitted' | head -n 1");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "Operation not permitted\n");
	stage_close(s);
}

Test(containment, without_landlock_the_log_says_what_is_not_protected)
{
	static const char *const always[] = {"slots from signals of commands that started before them",
					     "commands from each other; they get no ptrace"};
	struct stage *s;

	outer_no_landlock();
	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));
	cr_assert(!worker_said(&s->worker, "execd from signals of commands"));
	cr_assert_eq(worker_said(&s->worker, "netd from signals of commands"), geteuid() != 0);
	for (int i = 0; i < 2; i++)
		cr_assert(worker_said(&s->worker, always[i]), "%s", always[i]);
	stage_expect_end(stage_exec(s, "(exit 3) | true; exit 4"), 4);
	stage_close(s);
	if (geteuid() != 0)
		return;
	s = stage_open(WORKER_SETTINGS("SANDBOX_USER=65532:65532"));
	cr_assert(!worker_said(&s->worker, "execd from signals of commands"));
	cr_assert(!worker_said(&s->worker, "netd from signals of commands"));
	stage_close(s);
}

Test(containment, with_landlock_signals_are_not_among_what_is_not_protected)
{
	struct stage *s;

	if (landlock_abi() < LANDLOCK_ABI_SCOPE)
		cr_skip("no Landlock with scopes");
	s = stage_open(WORKER_SETTINGS());
	cr_assert(!worker_said(&s->worker, "from signals of commands"));
	stage_close(s);
}

/* --- SANDBOX_SECCOMP_BPF --- */

static void write_policy(struct stage *s, const char *text)
{
	static struct policy policy;
	static struct sock_filter insns[BPF_MAXINSNS];
	struct policy_error error;
	char path[FOLDER_PATH_MAX + 16];
	int count, fd;
	FILE *f;

	snprintf(path, sizeof path, "%s/policy", s->folder);
	f = fopen(path, "w");
	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
	cr_assert(policy_parse(path, &policy, &error) == 0, "%s", error.text);
#if defined(__x86_64__)
	count = policy_emit(&policy, POLICY_X86_64, insns, BPF_MAXINSNS, &error);
#else
	count = policy_emit(&policy, POLICY_AARCH64, insns, BPF_MAXINSNS, &error);
#endif
	cr_assert(count > 0, "%s", error.text);
	snprintf(path, sizeof path, "%s/policy.bpf", s->folder);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	cr_assert(fd >= 0 && write(fd, insns, (size_t)count * sizeof *insns) ==
				 (ssize_t)((size_t)count * sizeof *insns));
	close(fd);
}

Test(containment, a_policy_of_ones_own_replaces_the_commands)
{
	struct relay_exec *exec;
	char setting[FOLDER_PATH_MAX + 40];
	struct stage *s = stage_prepare();

	write_policy(s, "default allow\nbadarch kill\ndeny EACCES unlink\ndeny EACCES unlinkat\n");
	snprintf(setting, sizeof setting, "SANDBOX_SECCOMP_BPF=%s/policy.bpf", s->folder);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
	stage_reattach(s);
	exec = stage_exec(s, "touch %s/f; LC_ALL=C rm %s/f", s->folder, s->folder);
	stage_expect_end(exec, 1);
	/* execd's own refusals stay. */
	stage_expect_end(stage_exec(s, "! unshare -U true"), 0);
	stage_close(s);
}

Test(containment, a_policy_that_cannot_work_is_told_at_start)
{
	char setting[FOLDER_PATH_MAX + 40];
	struct stage *s = stage_prepare();

	write_policy(s, "default allow\nbadarch kill\nkill execve\n");
	snprintf(setting, sizeof setting, "SANDBOX_SECCOMP_BPF=%s/policy.bpf", s->folder);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
	cr_assert(worker_wait_exit(&s->worker, STAGE_WAIT_MS));
	cr_assert(WIFEXITED(s->worker.wait_status) && WEXITSTATUS(s->worker.wait_status) == 2);
	cr_assert(worker_said(&s->worker, "SANDBOX_SECCOMP_BPF"));
	cr_assert(worker_said(&s->worker, "bash is killed by SIGSYS under it"));
	stage_leave(s);
}
