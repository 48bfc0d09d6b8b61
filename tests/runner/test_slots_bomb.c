/* A fork bomb that fills a small pids cgroup and never rests is proven dead within a second, whoever runs it,
 * and whether or not the scheduler keeps sessions apart (autogroups). suite-timeout: 240 */
#include "tests/lib/cgroup.h"
#include "tests/lib/shapes.h"
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <grp.h>
#include <unistd.h>

TestSuite(slots_bomb, .timeout = 100, .init = space_need_own);

#define USER  65532
#define TIMES 3

static void become_user(void)
{
	cr_assert_eq(setgroups(0, NULL), 0);
	cr_assert_eq(setresgid(USER, USER, USER), 0);
	cr_assert_eq(setresuid(USER, USER, USER), 0);
}

static void kill_bomb(const char *shape)
{
	struct shapes_result r;

	for (int i = 0; i < TIMES; i++) {
		shapes_run(shape, false, &r);
		cr_log_info("%-14s %7.1f ms, %u marks, %u told", shape, (double)r.kill_us / 1000, r.marks,
			    r.still_alive);
		cr_expect_eq(r.survivors, 0, "%s: %u survivors", shape, r.survivors);
		cr_expect_eq(r.marks_after, 0, "%s: %u marks after the proof", shape, r.marks_after);
		cr_expect_eq(r.still_alive, 0, "%s: %.1f ms", shape, (double)r.kill_us / 1000);
	}
}

static void kill_bombs(bool autogroup, uid_t worker, uid_t commands)
{
	struct cgroup few, shared;
	const struct cgroup *const cgroups[] = {&few, autogroup ? NULL : &shared, NULL};

	if (geteuid() != 0 || !cgroup_enter_pids(&few, "100"))
		cr_skip_test("no pids cgroup of our own");
	if (!autogroup && !cgroup_enter_cpu(&shared)) {
		cgroup_leave(&few);
		cr_skip_test("no cpu cgroup of our own");
	}
	cr_assert(cgroup_keep_clean(cgroups));
	if (worker != 0)
		become_user();
	rig_prepare();
	if (commands != worker)
		rig_config.command_user = (struct config_user){.set = true, .uid = commands, .gid = commands};
	rig_start();
	kill_bomb("tireless");
	kill_bomb("tireless-alone");
	rig_stop();
}

Test(slots_bomb, of_root_dies_within_a_second)
{
	kill_bombs(true, 0, 0);
}

Test(slots_bomb, of_an_ordinary_user_dies_within_a_second)
{
	kill_bombs(true, USER, USER);
}

Test(slots_bomb, of_another_user_dies_within_a_second)
{
	kill_bombs(true, 0, USER);
}

Test(slots_bomb, of_root_dies_within_a_second_without_autogroups)
{
	kill_bombs(false, 0, 0);
}

Test(slots_bomb, of_an_ordinary_user_dies_within_a_second_without_autogroups)
{
	kill_bombs(false, USER, USER);
}

Test(slots_bomb, of_another_user_dies_within_a_second_without_autogroups)
{
	kill_bombs(false, 0, USER);
}
