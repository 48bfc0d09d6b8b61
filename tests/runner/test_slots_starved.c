/* What was killed needs the processor to give its memory back, and a command can see to it that it gets none:
 * the lowest nice value, beside many busy loops of another command. suite-timeout: 200 */
#include "tests/lib/cgroup.h"
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(slots_starved, .timeout = 90, .init = space_need_own);

#define USER 65532
/* Longer than this it dies by itself in no case; with help it takes a second and little more. */
#define HELPED_MS 5000u

static const char heavy[] = "exec python3 -c 'import os, time; x = b\"x\" * (300 << 20); os.nice(19); "
			    "print(\"full\", flush=True); time.sleep(1000)'";
static const char busy[] = "for i in {1..48}; do while :; do :; done & done; echo busy; wait";

/* A cpu cgroup has no autogroups, which would keep the two apart. */
static void start(bool user)
{
	static struct cgroup shared;
	static const struct cgroup *const cgroups[] = {&shared, NULL};

	if (geteuid() != 0 || !cgroup_enter_cpu(&shared))
		cr_skip_test("no cpu cgroup of our own");
	cr_assert(cgroup_keep_clean(cgroups));
	if (user) {
		cr_assert_eq(setgroups(0, NULL), 0);
		cr_assert_eq(setresgid(USER, USER, USER), 0);
		cr_assert_eq(setresuid(USER, USER, USER), 0);
	}
	rig_prepare();
	rig_start();
}

static unsigned run_until(const char *command, const char *says)
{
	unsigned slot = rig_run(command, NULL);

	rig_until_output(slot, says);
	return slot;
}

Test(slots_starved, what_dies_is_lifted_where_execd_may)
{
	unsigned dies, runs;
	uint64_t from;

	start(false);
	dies = run_until(heavy, "full");
	runs = run_until(busy, "busy");
	from = clock_now_ms();
	slots_kill(dies);
	rig_until(dies, SLOT_EMPTY);
	cr_log_info("%lu ms", (unsigned long)(clock_now_ms() - from));
	cr_expect_lt(clock_now_ms() - from, HELPED_MS);
	slots_kill(runs);
	rig_until(runs, SLOT_EMPTY);
	rig_release(runs);
	rig_release(dies);
	rig_stop();
}

Test(slots_starved, what_only_dies_is_not_counted_against_the_capacity)
{
	unsigned dies, runs;

	start(true);
	dies = run_until(heavy, "full");
	runs = run_until(busy, "busy");
	slots_kill(dies);
	rig_until(dies, SLOT_STILL_ALIVE);
	slots_abandon(dies);
	cr_expect(slots_replaced(dies));
	cr_expect_eq(slots_capacity(), 2);
	cr_expect(WEXITSTATUS(rig_do("exit 4", NULL, NULL)) == 4);
	cr_expect(!rig_has(dies, SLOT_EMPTY));
	slots_kill(runs);
	rig_until(runs, SLOT_EMPTY);
	rig_until(dies, SLOT_EMPTY);
	rig_release(runs);
	rig_release(dies);
	rig_for(50);
	cr_expect_eq(slots_idle(), 2);
	cr_expect_eq(slots_capacity(), 2);
	rig_stop();
}

/* Nothing of it is dying: the slot is gone until the proof. */
Test(slots_starved, what_lives_is_counted)
{
	unsigned slot;

	start(false);
	slot = run_until("setsid sleep 1000 & echo up; wait", "up");
	slots_abandon(slot);
	cr_expect(!slots_replaced(slot));
	cr_expect_eq(slots_capacity(), 1);
	slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	rig_release(slot);
	cr_expect_eq(slots_capacity(), 2);
	rig_stop();
}
