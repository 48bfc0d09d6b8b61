/* What a finished exec leaves behind. */
#include "tests/lib/shapes.h"
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include "common/clock.h"
#include "common/drop.h"
#include "common/limits.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(slots_background, .timeout = 60, .init = space_need_own);

static void start(bool background_kill)
{
	rig_prepare();
	rig_config.background_kill = background_kill;
	rig_start();
}

static bool lives(int pid)
{
	return kill(pid, 0) == 0;
}

static void until_gone(int pid)
{
	uint64_t end = clock_now_ms() + RIG_WAIT_MS;

	while (lives(pid)) {
		cr_assert(clock_now_ms() < end, "%d does not go", pid);
		rig_pass();
	}
}

/* The exec is over for its owner, its slot minds what it left. */
static unsigned run_and_mind(const char *command)
{
	unsigned slot = rig_run(command, NULL);

	rig_until(slot, SLOT_MINDING);
	rig_close(slot);
	slots_mind(slot);
	return slot;
}

Test(slots_background, keep_tells_what_lives_on)
{
	unsigned slot;

	start(false);
	slot = rig_run("sleep 1000 & sleep 1000 & exit 6", NULL);
	rig_until(slot, SLOT_MINDING);
	cr_assert_str_eq(rig_execs[slot].order, "sxm");
	cr_assert_eq(rig_execs[slot].count, 2);
	cr_assert(WEXITSTATUS(rig_execs[slot].wait_status) == 6);
	slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	cr_assert_str_eq(rig_execs[slot].order, "sxmE");
	cr_assert(!rig_execs[slot].by_kill);
	rig_release(slot);
	rig_stop();
}

Test(slots_background, keep_tells_when_the_last_has_gone_by_itself)
{
	unsigned slot;

	start(false);
	slot = rig_run("sleep 0.2 & exit 0", NULL);
	rig_until(slot, SLOT_EMPTY);
	cr_assert_str_eq(rig_execs[slot].order, "sxmE");
	rig_release(slot);
	rig_do("true", NULL, NULL);
	cr_assert_eq(rig_ready, 2, "the slot is used again");
	rig_stop();
}

Test(slots_background, keep_replaces_a_slot_that_minds)
{
	unsigned slot;

	start(false);
	slot = rig_run("sleep 1000 & echo $!", NULL);
	rig_until(slot, SLOT_MINDING);
	rig_until_output(slot, "\n");
	int pid = atoi(rig_execs[slot].out);
	rig_close(slot);
	slots_mind(slot);
	cr_assert_eq(slots_minders(), 1);
	cr_assert_eq(slots_capacity(), 2);
	rig_for(100);
	cr_assert_eq(slots_idle(), 2);
	cr_assert_eq(rig_ready, 3);
	cr_assert(lives(pid));
	slots_kill_all();
	until_gone(pid);
	rig_stop();
}

Test(slots_background, a_minder_ends_with_what_it_minds)
{
	unsigned children = 0;

	start(false);
	run_and_mind("sleep 0.3 &");
	cr_assert_eq(slots_minders(), 1);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; slots_minders() > 0; children++) {
		cr_assert(clock_now_ms() < end);
		rig_pass();
	}
	rig_stop();
}

/* It writes more than a pipe holds, long after the End; without a reader it would block or die of SIGPIPE. */
Test(slots_background, a_server_neither_blocks_nor_dies_for_its_output)
{
	char path[] = "/tmp/minded.XXXXXX", command[256];
	uint64_t end = clock_now_ms() + RIG_WAIT_MS;

	cr_assert(mkstemp(path) >= 0);
	start(false);
	snprintf(
	    command, sizeof command,
	    "(sleep 0.3; head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; echo survived >%s) & exit 0",
	    path);
	run_and_mind(command);
	while (access(path, F_OK) == 0) {
		char text[16] = "";
		FILE *f = fopen(path, "re");

		cr_assert(f);
		if (fgets(text, sizeof text, f))
			cr_assert_eq(unlink(path), 0);
		fclose(f);
		cr_assert(clock_now_ms() < end, "it does not finish");
		rig_pass();
	}
	rig_stop();
}

static uint64_t cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000u +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000u;
}

/* yes would fill gigabytes in that time. */
Test(slots_background, a_minder_reads_at_a_capped_rate)
{
	uint64_t before;

	start(false);
	run_and_mind("yes & exit 0");
	rig_for(1000);
	before = cpu_ms();
	rig_stop();
	cr_assert_lt(cpu_ms() - before, 500, "%llu ms", (unsigned long long)(cpu_ms() - before));
}

Test(slots_background, the_oldest_minder_goes_above_the_limit)
{
	int pids[LIMIT_MINDERS + 1];

	start(false);
	for (unsigned i = 0; i <= LIMIT_MINDERS; i++) {
		unsigned slot = rig_run("sleep 1000 & echo $!", NULL);

		rig_until(slot, SLOT_MINDING);
		rig_until_output(slot, "\n");
		pids[i] = atoi(rig_execs[slot].out);
		rig_close(slot);
		slots_mind(slot);
		if (i + 1 == LIMIT_MINDERS)
			cr_assert(lives(pids[0]), "at the limit");
	}
	until_gone(pids[0]);
	cr_assert_eq(slots_minders(), LIMIT_MINDERS);
	for (unsigned i = 1; i <= LIMIT_MINDERS; i++)
		cr_assert(lives(pids[i]));
	rig_stop();
	for (unsigned i = 1; i <= LIMIT_MINDERS; i++)
		cr_assert(!lives(pids[i]));
}

Test(slots_background, kill_ends_all_that_the_leader_left)
{
	unsigned slot;

	start(true);
	for (int i = 0; i < 20; i++) {
		slot = rig_run("sleep 1000 & setsid sleep 1000 & exit 5", NULL);
		rig_until(slot, SLOT_EMPTY);
		cr_assert_str_eq(rig_execs[slot].order, "sxmE");
		cr_assert(WIFEXITED(rig_execs[slot].wait_status) &&
			  WEXITSTATUS(rig_execs[slot].wait_status) == 5);
		cr_assert(!rig_execs[slot].by_kill);
		rig_release(slot);
	}
	rig_stop();
}

/* Nobody is told, and nobody waits. */
static void leave_nobody(bool background_kill)
{
	struct rig_exec x;

	start(background_kill);
	rig_do("true | cat; true", NULL, &x);
	cr_assert_str_eq(x.order, "sxE");
	rig_stop();
}

Test(slots_background, keep_proves_a_leader_that_leaves_nobody_at_once)
{
	leave_nobody(false);
}

Test(slots_background, kill_proves_a_leader_that_leaves_nobody_at_once)
{
	leave_nobody(true);
}

Test(slots_background, kill_leaves_nothing_of_any_shape)
{
	struct shapes_result r;

	start(true);
	for (const char *const *shape = shapes_names; *shape; shape++) {
		shapes_run(*shape, true, &r);
		cr_expect_eq(r.survivors, 0, "%s", *shape);
		cr_expect_eq(r.marks_after, 0, "%s", *shape);
		cr_expect(WIFEXITED(r.wait_status) && WEXITSTATUS(r.wait_status) == 3, "%s: %x", *shape,
			  (unsigned)r.wait_status);
	}
	rig_stop();
}

#define OTHER_USER                                                                                           \
	"python3 -uc 'import os,time; os.setuid(64123); print(os.getpid()); time.sleep(1000)' & exit 0"

/* What its slot may not signal any more, and execd may. */
static int mind_another_user(void)
{
	unsigned slot;

	rig_prepare();
	if (geteuid() != 0 || !drop_holds(CAP_SETUID) || !drop_holds(CAP_KILL))
		cr_skip_test("not root");
	rig_config.keep_caps = DROP_CAP(CAP_SETUID);
	rig_start();
	slot = rig_run(OTHER_USER, NULL);
	rig_until(slot, SLOT_MINDING);
	rig_until_output(slot, "\n");
	rig_close(slot);
	slots_mind(slot);
	return atoi(rig_execs[slot].out);
}

Test(slots_background, keep_ends_another_user_at_shutdown)
{
	int other = mind_another_user();

	cr_assert(lives(other));
	rig_stop();
	cr_assert_not(lives(other));
}

Test(slots_background, keep_ends_another_user_when_it_is_the_oldest)
{
	int other = mind_another_user();

	for (unsigned i = 1; i < LIMIT_MINDERS; i++)
		run_and_mind("sleep 1000 & exit 0");
	cr_assert(lives(other));
	run_and_mind("sleep 1000 & exit 0");
	until_gone(other);
	rig_stop();
}
