/* A slot under its commands' policy: what a kill needs goes through with the key, and not without. */
#include "execd/slot/keyed.h"
#include "policy/policy.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(keyed, .timeout = 30);

static pid_t other;

static void start_other(void)
{
	other = fork();
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

/* CHILD */
static int plain_calls(void)
{
	static const struct rlimit none = {0, 0};
	static const struct sched_param param = {0};

	/* The words behind are another key's. */
	if (syscall(SYS_prlimit64, other, RLIMIT_NPROC, &none, NULL, 1, 2) == 0 || errno != EPERM)
		return 1;
	if (syscall(SYS_setpriority, PRIO_PROCESS, other, 19, 0, 1, 2) == 0 || errno != EPERM)
		return 2;
	if (syscall(SYS_sched_setscheduler, other, SCHED_IDLE, &param, 0, 1, 2) == 0 || errno != EPERM)
		return 3;
	return 0;
}

/* CHILD */
static int keyed_calls(void)
{
	static const struct rlimit none = {0, 0};
	struct rlimit is;

	if (keyed_limit(other, RLIMIT_NPROC, &none) != 0 || prlimit(other, RLIMIT_NPROC, NULL, &is) != 0 ||
	    is.rlim_cur != 0)
		return 10;
	return keyed_limit(1 << 30, RLIMIT_NPROC, &none) == -ESRCH ? 0 : 13;
}

/* CHILD */
static int work(const struct seccomp_program *program)
{
	int r;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (program && keyed_load(program) < 0)
		return 100;
	r = program ? plain_calls() : 0;
	return r ? r : keyed_calls();
}

static void check(const struct seccomp_program *program)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		start_other();
		status = work(program);
		kill(other, SIGKILL);
		_exit(status);
	}
	cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "%d", WEXITSTATUS(status));
}

Test(keyed, limits_go_through_the_commands_policy_with_the_key_alone)
{
	check(&policy_commands);
	check(&policy_commands_ptrace);
}

Test(keyed, limits_are_set_without_a_filter)
{
	check(NULL);
}
