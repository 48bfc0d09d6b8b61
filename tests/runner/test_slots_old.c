/* Where the kernel or a container's filter refuses what is new: no Landlock, no pidfds, no close_range. */
#include "tests/lib/shapes.h"
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(slots_old, .timeout = 120, .init = space_need_own);

/* Answers err to each of the calls, in this process and all that it starts. */
static void refuse(const unsigned *calls, unsigned count, unsigned err)
{
	struct sock_filter f[32] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	unsigned n = 1;

	for (unsigned i = 0; i < count; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){(unsigned short)n, f}),
		     0);
}

static void kill_shapes(void)
{
	static const char *const some[] = {"plain",     "daemon",  "stopped", "swarm",
					   "guardians", "threads", "vforks",  NULL};
	struct shapes_result r;

	for (const char *const *shape = some; *shape; shape++) {
		shapes_run(*shape, false, &r);
		cr_expect_eq(r.survivors, 0, "%s", *shape);
		cr_expect_eq(r.marks_after, 0, "%s", *shape);
	}
}

Test(slots_old, work_without_landlock)
{
	static const unsigned calls[] = {SYS_landlock_create_ruleset, SYS_landlock_add_rule,
					 SYS_landlock_restrict_self};
	struct slots_plan plan;
	static struct rig_exec x;

	refuse(calls, 3, ENOSYS);
	rig_prepare();
	rig_config.background_kill = true;
	slots_plan(&rig_config, &plan);
	cr_assert_eq(plan.landlock_abi, 0);
	cr_assert(!plan.landlock_kill && !plan.commands_scoped);
	cr_assert_str_eq(plan.killer, "sweep");
	cr_assert_eq(plan.weak, geteuid() == 0);
	rig_start();
	/* Nothing keeps a tracer to its own exec: no ptrace at all. */
	rig_do("python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); l.ptrace(0, 0, 0, 0); "
	       "print(ctypes.get_errno())' || echo 1",
	       NULL, &x);
	cr_assert_str_eq(x.out, "1\n", "%s", x.err);
	kill_shapes();
	rig_stop();
}

Test(slots_old, work_where_a_filter_refuses_pidfds)
{
	static const unsigned calls[] = {SYS_pidfd_open, SYS_pidfd_send_signal, SYS_close_range, SYS_clone3};

	refuse(calls, 4, EPERM);
	rig_prepare();
	rig_start();
	cr_assert(WEXITSTATUS(rig_do("exit 4", NULL, NULL)) == 4);
	kill_shapes();
	rig_stop();
}

Test(slots_old, die_under_execd_where_a_filter_refuses_pidfds)
{
	static const unsigned calls[] = {SYS_pidfd_open, SYS_pidfd_send_signal, SYS_close_range, SYS_clone3};
	unsigned slot;

	refuse(calls, 4, EPERM);
	rig_prepare();
	rig_start();
	slot = rig_run("setsid sleep 1000 & kill -STOP $PPID; sleep 1000", NULL);
	rig_until(slot, SLOT_EMPTY);
	cr_assert(rig_has(slot, SLOT_DIED));
	rig_release(slot);
	rig_stop();
}

Test(slots_old, use_the_sweep_when_told_to)
{
	struct slots_plan plan;

	rig_prepare();
	rig_config.background_kill = true;
	rig_config.killer = "sweep";
	slots_plan(&rig_config, &plan);
	cr_assert(!plan.landlock_kill);
	cr_assert_str_eq(plan.killer, "sweep");
}
