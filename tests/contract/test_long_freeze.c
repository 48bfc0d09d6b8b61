/* Frozen and thawed: docker pause, a cgroup freezer, a suspended VM. The connection stays, nothing is lost.
 */
#include "tests/lib/cgroup.h"
#include "tests/lib/stage.h"

#include "common/limits.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <unistd.h>

#define FREEZE_MS (LIMIT_ALIVE_LOST_MS + 2000u)

TestSuite(freeze, .timeout = 120, .fini = stage_fini);

/* A command that runs over the freeze, one that waits behind it, and later ones. */
static void expect_no_loss(struct stage *s, void (*freeze)(struct stage *s, bool frozen))
{
	pid_t netd = worker_netd(&s->worker);
	struct relay_exec *running, *waiting;

	running = stage_exec(s, "echo up; sleep %u; echo on; exit 3", FREEZE_MS / 1000 + 2);
	stage_wait_out(running, "up\n");
	waiting = stage_exec(s, "exit 4");
	relay_run(s->relay, 100);
	freeze(s, true);
	relay_run(s->relay, FREEZE_MS);
	freeze(s, false);
	stage_expect_end(running, 3);
	stage_expect_out(running, "up\non\n");
	stage_expect_end(waiting, 4);
	/* Longer than it takes to find out that netd is silent. */
	relay_run(s->relay, LIMIT_ALIVE_LOST_MS / 10);
	cr_assert_eq(worker_netd(&s->worker), netd, "the stream was lost");
	cr_assert_not(worker_said(&s->worker, "level=warn msg=\"slot"));
	cr_assert_not(worker_said(&s->worker, "netd broke the rules"));
	stage_expect_end(stage_exec(s, "exit 5"), 5);
}

/* execd must not see its children stopped while it runs. */
static void stop_or_continue(struct stage *s, bool frozen)
{
	static pid_t pids[64];
	static size_t count;

	if (frozen) {
		process_kill(s->worker.pid, SIGSTOP);
		count = process_descendants(s->worker.pid, pids, 64);
		cr_assert(count > 3 && count < 64);
	}
	for (size_t i = 0; i < count; i++)
		process_kill(pids[i], frozen ? SIGSTOP : SIGCONT);
	if (!frozen)
		process_kill(s->worker.pid, SIGCONT);
}

Test(freeze, by_signals_loses_nothing)
{
	struct stage *s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));

	expect_no_loss(s, stop_or_continue);
	stage_close(s);
}

static struct cgroup freezer;

static void enter_freezer(void)
{
	if (!cgroup_enter(&freezer))
		_exit(125);
}

static void freeze_or_thaw(struct stage *s, bool frozen)
{
	(void)s;
	cr_assert(cgroup_freeze(&freezer, frozen));
}

Test(freeze, by_a_cgroup_loses_nothing)
{
	struct stage *s;

	if (!cgroup_make_freezer(&freezer))
		cr_skip_test("no freezer cgroup of our own");
	s = stage_prepare();
	worker_start_prepared(&s->worker, s->relay, WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"),
			      enter_freezer);
	stage_reattach(s);
	expect_no_loss(s, freeze_or_thaw);
	stage_close(s);
	cr_assert(cgroup_remove(&freezer));
}
