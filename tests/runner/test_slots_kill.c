/* Everything an exec started is dead when SLOT_EMPTY comes: each hostile shape, each killer. */
#include "tests/lib/cgroup.h"
#include "tests/lib/shapes.h"
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(slots_kill, .timeout = 240, .init = space_need_own);

/* A killer that does nothing leaves processes that mark the file on. */
static void kill_shape(const char *shape)
{
	struct shapes_result r;

	shapes_run(shape, false, &r);
	cr_log_info("%-10s %7.1f ms, %u marks", shape, (double)r.kill_us / 1000, r.marks);
	cr_expect_eq(r.survivors, 0, "%s: %u survivors", shape, r.survivors);
	cr_expect_eq(r.marks_after, 0, "%s: %u marks after the proof", shape, r.marks_after);
	cr_expect(r.marks > 0, "%s was not alive", shape);
}

static void kill_all_shapes(void)
{
	rig_start();
	for (const char *const *shape = shapes_names; *shape; shape++)
		kill_shape(*shape);
	rig_stop();
}

/* Where nothing more can be forked, a slot kills all the same. */
static void kill_bomb_in_cgroup(void)
{
	struct cgroup few;

	if (geteuid() != 0 || !cgroup_enter_pids(&few, "300"))
		cr_skip_test("no pids cgroup of our own");
	rig_start();
	kill_shape("caged");
	rig_stop();
	cr_expect(cgroup_leave(&few), "something is left in the cgroup");
}

Test(slots_kill, sweep_leaves_nothing_where_commands_share_a_world)
{
	rig_prepare();
	kill_all_shapes();
}

Test(slots_kill, sweep_leaves_nothing_where_each_exec_has_its_own)
{
	rig_prepare();
	rig_config.background_kill = true;
	rig_config.killer = "sweep";
	kill_all_shapes();
}

static void prepare_landlock(void)
{
	struct slots_plan plan;

	rig_prepare();
	rig_config.background_kill = true;
	slots_plan(&rig_config, &plan);
	if (!plan.landlock_kill)
		cr_skip_test("no Landlock scopes here");
}

Test(slots_kill, landlock_leaves_nothing)
{
	prepare_landlock();
	kill_all_shapes();
}

Test(slots_kill, sweep_by_root_leaves_nothing_of_another_user)
{
	rig_prepare();
	if (geteuid() != 0)
		cr_skip_test("not root");
	rig_config.command_user = (struct config_user){.set = true, .uid = 65532, .gid = 65532};
	kill_all_shapes();
}

Test(slots_kill, landlock_by_root_leaves_nothing_of_another_user)
{
	struct slots_plan plan;

	rig_prepare();
	if (geteuid() != 0)
		cr_skip_test("not root");
	rig_config.background_kill = true;
	rig_config.command_user = (struct config_user){.set = true, .uid = 65532, .gid = 65532};
	slots_plan(&rig_config, &plan);
	if (!plan.landlock_kill)
		cr_skip_test("no Landlock scopes here");
	kill_all_shapes();
}

Test(slots_kill, sweep_ends_a_bomb_that_fills_its_cgroup)
{
	rig_prepare();
	kill_bomb_in_cgroup();
}

Test(slots_kill, sweep_ends_another_users_bomb_that_fills_its_cgroup)
{
	rig_prepare();
	rig_config.command_user = (struct config_user){.set = true, .uid = 65532, .gid = 65532};
	kill_bomb_in_cgroup();
}

Test(slots_kill, landlock_ends_a_bomb_that_fills_its_cgroup)
{
	prepare_landlock();
	kill_bomb_in_cgroup();
}
