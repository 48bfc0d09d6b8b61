/* What an exec gets and what comes back, with real processes. */
#include "tests/lib/slot_rig.h"

#include "common/outcome.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(slots, .timeout = 60);

static struct rig_exec x;

static void start(void)
{
	rig_prepare();
	rig_start();
}

Test(slots, report_exit_codes_and_signals)
{
	start();
	cr_assert(WEXITSTATUS(rig_do("exit 0", NULL, &x)) == 0);
	cr_assert_str_eq(x.order, "sxE");
	cr_assert(WEXITSTATUS(rig_do("exit 7", NULL, NULL)) == 7);
	cr_assert(WEXITSTATUS(rig_do("exit 255", NULL, NULL)) == 255);
	cr_assert(WEXITSTATUS(rig_do("nosuchcommand_x", NULL, NULL)) == 127);
	cr_assert(WTERMSIG(rig_do("kill -9 $$", NULL, &x)) == SIGKILL);
	cr_assert(!x.by_kill);
	cr_assert(WTERMSIG(rig_do("kill -TERM $$", NULL, NULL)) == SIGTERM);
	rig_stop();
}

Test(slots, carry_stdin_to_its_end_and_both_outputs)
{
	start();
	rig_do("cat; echo done; echo other >&2", "some input\n", &x);
	cr_assert_str_eq(x.out, "some input\ndone\n");
	cr_assert_str_eq(x.err, "other\n");
	rig_do("wc -c", NULL, &x);
	cr_assert_str_eq(x.out, "0\n");
	rig_stop();
}

Test(slots, kill_what_runs)
{
	unsigned slot;

	start();
	slot = rig_run("sleep 1000 & sleep 1000", NULL);
	rig_until(slot, SLOT_STARTED);
	slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	cr_assert(rig_execs[slot].by_kill);
	cr_assert(WIFSIGNALED(rig_execs[slot].wait_status));
	cr_assert_str_eq(rig_execs[slot].order, "sxE");
	rig_release(slot);
	rig_stop();
}
