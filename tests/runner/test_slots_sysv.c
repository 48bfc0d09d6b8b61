/* System V shared memory, queues and semaphores of the commands, which no kill ends. As root only, by a user
 * that nobody else is: those of another are removed where no process of theirs is there. */
#include "tests/lib/bound.h"
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAKE  "ipcmk -p 0 -M 1000000 >/dev/null && ipcmk -p 0 -Q >/dev/null && ipcmk -p 0 -S 3 >/dev/null"
#define COUNT "ipcs -a | grep -c \" $(id -u) \""

TestSuite(slots_sysv, .timeout = 60, .init = space_need_own);

static struct rig_exec x;

/* Each test has its own: they run side by side. */
static void start(uid_t uid)
{
	if (geteuid() != 0)
		cr_skip_test("another user needs root");
	rig_prepare();
	rig_config.background_kill = true;
	rig_config.command_user = (struct config_user){.set = true, .uid = uid, .gid = uid};
	rig_start();
}

static void expect_objects(const char *count)
{
	rig_do(COUNT, NULL, &x);
	cr_assert_str_eq(x.out, count, "%s", x.err);
}

Test(slots_sysv, are_removed_when_nothing_runs)
{
	start(64781);
	cr_assert_eq(rig_do(MAKE, NULL, &x), 0, "%s", x.err);
	expect_objects("0\n");
	rig_stop();
}

Test(slots_sysv, of_a_command_that_runs_are_kept)
{
	unsigned slot;

	start(64782);
	slot = rig_run(MAKE "; echo made; read -r line; " COUNT, NULL);
	rig_until(slot, SLOT_EMPTY);
	cr_assert_str_eq(rig_execs[slot].out, "made\n3\n", "%s", rig_execs[slot].err);
	rig_release(slot);
	expect_objects("0\n");
	rig_stop();
}

/* No child of execd's, as what runs beside it. */
static pid_t begin_other(uid_t uid)
{
	int ends[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(ends), 0);
	pid = bound_fork();
	if (pid == 0) {
		if (bound_fork() == 0) {
			if (setresuid(uid, uid, uid) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
			    write(ends[1], "", 1) != 1)
				_exit(1);
		}
		for (;;)
			pause();
	}
	cr_assert_eq(read(ends[0], &c, 1), 1);
	return pid;
}

/* What is there may be theirs. */
Test(slots_sysv, are_kept_while_another_process_has_the_user)
{
	pid_t other;

	start(64783);
	other = begin_other(64783);
	cr_assert_eq(rig_do(MAKE, NULL, &x), 0, "%s", x.err);
	expect_objects("3\n");
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	rig_do(":", NULL, &x);
	expect_objects("0\n");
	rig_stop();
}

Test(slots_sysv, are_removed_whatever_their_mode_says)
{
	start(64784);
	cr_assert_eq(rig_do("python3 -c 'import ctypes; l = ctypes.CDLL(None); l.shmget(0, 9000, 0o1000); "
			    "l.msgget(0, 0o1000); l.semget(0, 1, 0o1000)'",
			    NULL, &x),
		     0, "%s", x.err);
	expect_objects("0\n");
	rig_stop();
}
