/* kill(-1, SIGKILL) is sent from within a domain that keeps signals inside, and from nowhere else.
 *
 * A killer that is wrong here kills all that this user has in this pid namespace: tests/run gives the suite
 * its own. */
#include "execd/slot/kill_landlock.h"

#include "common/landlock.h"
#include "tests/lib/bound.h"
#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(interlock, .timeout = 30, .init = space_need_own);

#define BYSTANDER_LIVES 1
#define BYSTANDER_DIED  2
#define NOT_IN_FORCE    4
#define NO_WITNESS      8
#define BROKEN          16

/* CHILD */
static pid_t fork_bystander(void)
{
	pid_t pid = bound_fork();

	if (pid != 0)
		return pid;
	for (;;)
		pause();
}

/* CHILD */
static void enter_domain(void)
{
	const struct landlock_world scoped = {.scoped = LANDLOCK_SCOPED_SIGNAL};
	int abi = landlock_abi(), ruleset = landlock_create(abi, &scoped, true);

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (ruleset < 0 || landlock_enter(ruleset, abi, true) < 0)
		_exit(BROKEN);
}

/* CHILD. What became of a process below the killer. */
static int outcome(int sent, pid_t bystander)
{
	int status, said = sent == 0 ? 0 : NOT_IN_FORCE;

	if (sent == 0)
		return waitpid(bystander, &status, 0) == bystander ? BYSTANDER_DIED : BROKEN;
	if (sent != -EPERM || waitpid(bystander, &status, WNOHANG) != 0)
		return BROKEN;
	kill(bystander, SIGKILL);
	return said | BYSTANDER_LIVES;
}

static int exit_code(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "%x", (unsigned)status);
	return WEXITSTATUS(status);
}

static void need_scopes(void)
{
	if (landlock_abi() < LANDLOCK_ABI_SCOPE)
		cr_skip_test("no Landlock scopes here");
}

/* The witness is this process, which is still here to tell. */
Test(interlock, kills_what_is_in_its_domain_and_nothing_else)
{
	pid_t child, us = getpid();

	need_scopes();
	child = fork();
	if (child == 0) {
		int witness = kill_landlock_witness(us);

		enter_domain();
		_exit(outcome(kill_landlock(witness), fork_bystander()));
	}
	cr_assert_eq(exit_code(child), BYSTANDER_DIED);
}

Test(interlock, sends_nothing_outside_of_a_domain)
{
	pid_t us = getpid(), child = fork();

	if (child == 0) {
		pid_t bystander = fork_bystander();

		_exit(outcome(kill_landlock(kill_landlock_witness(us)), bystander));
	}
	cr_assert_eq(exit_code(child), NOT_IN_FORCE | BYSTANDER_LIVES);
}

/* Where execd is root and the commands are not, execd is out of reach with and without a domain. */
Test(interlock, takes_no_other_users_process_for_a_witness)
{
	pid_t us = getpid(), child;

	if (geteuid() != 0)
		cr_skip_test("not root");
	child = fork();
	if (child == 0) {
		pid_t bystander;
		int witness;

		if (setresgid(65532, 65532, 65532) < 0 || setresuid(65532, 65532, 65532) < 0)
			_exit(BROKEN);
		bystander = fork_bystander();
		witness = kill_landlock_witness(us);
		_exit(outcome(kill_landlock(witness), bystander) | (witness == -EPERM ? NO_WITNESS : 0));
	}
	cr_assert_eq(exit_code(child), NOT_IN_FORCE | BYSTANDER_LIVES | NO_WITNESS);
}

/* Its number may be another user's by now. */
Test(interlock, sends_nothing_once_the_witness_is_gone)
{
	pid_t child;

	need_scopes();
	child = fork();
	if (child == 0) {
		pid_t outsider = fork_bystander(), bystander;
		int witness = kill_landlock_witness(outsider);

		kill(outsider, SIGKILL);
		if (waitpid(outsider, NULL, 0) != outsider)
			_exit(BROKEN);
		enter_domain();
		bystander = fork_bystander();
		_exit(outcome(kill_landlock(witness), bystander));
	}
	cr_assert_eq(exit_code(child), NOT_IN_FORCE | BYSTANDER_LIVES);
}
