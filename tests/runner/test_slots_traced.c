/* A process that asks its parent to trace it (PTRACE_TRACEME) asks the slot, which traces nobody: each of its
 * signals would stop it for good, and such a stop is no exit. */
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define TRACED "import ctypes,os,signal,sys,time; ctypes.CDLL(None).ptrace(0,0,0,0); "

TestSuite(slots_traced, .timeout = 60, .init = space_need_own);

static struct rig_exec x;

static void start(bool background_kill)
{
	struct slots_plan plan;

	rig_prepare();
	rig_config.background_kill = background_kill;
	slots_plan(&rig_config, &plan);
	if (plan.landlock_abi == 0)
		cr_skip_test("commands have no ptrace here");
	rig_start();
}

static int traced(const char *program)
{
	char command[512];

	snprintf(command, sizeof command, "exec python3 -c '" TRACED "%s'", program);
	return rig_do(command, NULL, &x);
}

static void leader_ends_by_its_exit(void)
{
	int status = traced("os.kill(os.getpid(), signal.SIGCHLD); time.sleep(0.2); print(1); sys.exit(7)");

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x %s", (unsigned)status, x.err);
	cr_assert_str_eq(x.out, "1\n");
}

Test(slots_traced, leader_ends_by_its_exit_where_the_rest_lives_on)
{
	start(false);
	leader_ends_by_its_exit();
	rig_stop();
}

Test(slots_traced, leader_ends_by_its_exit_where_the_rest_is_killed)
{
	start(true);
	leader_ends_by_its_exit();
	rig_stop();
}

Test(slots_traced, leader_gets_its_signals)
{
	int status;

	start(false);
	status = traced("signal.signal(10, lambda *a: print(10)); os.kill(os.getpid(), 10); sys.exit(3)");
	cr_assert_eq(WEXITSTATUS(status), 3);
	cr_assert_str_eq(x.out, "10\n", "%s", x.err);
	status = traced("os.kill(os.getpid(), signal.SIGTERM)");
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "%x", (unsigned)status);
	rig_stop();
}

/* The kernel sends a tracee SIGTRAP at its execve: nobody would have without a tracer. */
Test(slots_traced, leader_executes_another_program)
{
	int status;

	start(false);
	status = traced("os.execv(\"/bin/sh\", [\"sh\", \"-c\", \"echo on; exit 4\"])");
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 4, "%x", (unsigned)status);
	cr_assert_str_eq(x.out, "on\n");
	rig_stop();
}

Test(slots_traced, leader_can_be_stopped_and_killed)
{
	unsigned slot;

	start(false);
	slot = rig_run("exec python3 -uc '" TRACED "print(1); os.kill(os.getpid(), signal.SIGSTOP)'", NULL);
	rig_until_output(slot, "1\n");
	rig_for(100);
	cr_assert(!rig_has(slot, SLOT_LEADER_EXITED));
	slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	cr_assert(rig_execs[slot].by_kill);
	rig_release(slot);
	rig_stop();
}

/* Who is left behind becomes the slot's child, too. */
Test(slots_traced, orphan_goes_on)
{
	unsigned slot;

	start(false);
	slot =
	    rig_run("(p=$BASHPID; setsid python3 -uc 'import os,time\nwhile os.getppid() == int(\"'$p'\"): "
		    "time.sleep(0.01)\n" TRACED "os.kill(os.getpid(), signal.SIGCHLD); print(2)' &)",
		    NULL);
	rig_until_output(slot, "2\n");
	rig_until(slot, SLOT_EMPTY);
	rig_release(slot);
	rig_stop();
}
