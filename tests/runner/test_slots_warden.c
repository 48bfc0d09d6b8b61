/* A warden that goes, or keeps execd waiting. */
#include "tests/lib/bound.h"
#include "tests/lib/process.h"
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include "common/clock.h"
#include "execd/slots_pool.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(slots_warden, .timeout = 60, .init = space_need_own);

#define HELD_MS 1000 /* by the one who looks on */

static void start(bool background_kill)
{
	rig_prepare();
	rig_config.background_kill = background_kill;
	rig_start();
}

static void go_on(unsigned slot)
{
	cr_assert_eq(write(rig_execs[slot].ours[0], "\n", 1), 1);
}

static void until_ready(unsigned count, const char *what)
{
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; rig_ready < count; rig_pass())
		cr_assert(clock_now_ms() < end, "%s", what);
}

static void replace_warden(int sig)
{
	unsigned slot;
	pid_t first;

	start(false);
	slot = rig_run_open("read x; exit 4");
	rig_until(slot, SLOT_STARTED);
	first = warden_pid();
	process_kill(first, sig);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; !warden_is_up() || warden_pid() == first;
	     rig_pass())
		cr_assert(clock_now_ms() < end, "no new warden");
	go_on(slot);
	rig_until(slot, SLOT_EMPTY);
	cr_assert(WEXITSTATUS(rig_execs[slot].wait_status) == 4, "its slots are untouched");
	rig_release(slot);
	rig_kill_idle(2);
	until_ready(4, "they are not replaced");
	rig_until_idle(2);
	cr_assert(WEXITSTATUS(rig_do("exit 9", NULL, NULL)) == 9);
	rig_stop();
}

Test(slots_warden, that_is_killed_is_replaced)
{
	replace_warden(SIGKILL);
}

Test(slots_warden, that_is_stopped_is_replaced)
{
	replace_warden(SIGSTOP);
}

/* Without their witness they would kill by the weaker sweep. */
Test(slots_warden, that_is_new_renews_the_idle_slots)
{
	struct slots_plan plan;
	unsigned busy;

	start(true);
	slots_plan(&rig_config, &plan);
	if (!plan.landlock_kill)
		cr_skip_test("no Landlock scopes here");
	busy = rig_run_open("read x; exit 4");
	rig_until(busy, SLOT_STARTED);
	rig_until_idle(1);
	process_kill(warden_pid(), SIGKILL);
	until_ready(3, "the idle one is not renewed");
	go_on(busy);
	rig_until(busy, SLOT_EMPTY);
	cr_assert(WEXITSTATUS(rig_execs[busy].wait_status) == 4);
	rig_release(busy);
	until_ready(5, "the busy one is not renewed"); /* one comes when System V IPC is cleared */
	rig_until_idle(2);
	rig_stop();
}

/* It is the landlock killer's witness: without it the slot sweeps. */
Test(slots_warden, that_is_gone_leaves_a_kill_complete)
{
	int leader, pid, escapee;
	pid_t first;
	unsigned slot;

	start(true);
	slot = rig_run_open("setsid sleep 1000 & echo $$ $PPID $!; sleep 1000");
	rig_until_output(slot, "\n");
	cr_assert_eq(sscanf(rig_execs[slot].out, "%d %d %d", &leader, &pid, &escapee), 3);
	first = warden_pid();
	process_kill(first, SIGKILL);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; warden_pid() == first; rig_pass())
		cr_assert(clock_now_ms() < end, "the warden lives");
	slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	cr_assert(!process_lives(leader) && !process_lives(escapee));
	cr_assert(process_lives(pid), "the slot goes on");
	rig_release(slot);
	rig_stop();
}

struct look {
	pid_t pid; /* of the clone */
	bool ready;
};

/* CHILD. Holds the process between its next clone and whatever it says of it; for_ever: until it is killed,
 * instead of HELD_MS. */
static _Noreturn void hold_after_clone(pid_t pid, bool for_ever, struct look *look)
{
	struct __ptrace_syscall_info info;
	bool cloning = false;

	if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD) < 0 ||
	    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
		_exit(1);
	waitpid(pid, NULL, __WALL);
	__atomic_store_n(&look->ready, true, __ATOMIC_SEQ_CST);
	do {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0 || waitpid(pid, NULL, __WALL) < 0 ||
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) < 0)
			_exit(1);
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
			cloning = info.entry.nr == SYS_clone;
	} while (!cloning || info.op != PTRACE_SYSCALL_INFO_EXIT);
	__atomic_store_n(&look->pid, (pid_t)info.exit.rval, __ATOMIC_SEQ_CST);
	if (for_ever)
		waitpid(pid, NULL, __WALL);
	else
		usleep(HELD_MS * 1000);
	_exit(0);
}

/* The warden does not answer for the slot that takes the place of one that dies. */
static struct look *hold_warden(bool for_ever)
{
	struct look *look =
	    mmap(NULL, sizeof *look, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid, held;

	if (geteuid() != 0)
		cr_skip_test("only root may trace the warden");
	cr_assert_neq(look, MAP_FAILED);
	start(false);
	rig_until_idle(2);
	held = warden_pid();
	pid = bound_fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		hold_after_clone(held, for_ever, look);
	slots_spare(pid);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; !__atomic_load_n(&look->ready, __ATOMIC_SEQ_CST);) {
		cr_assert(clock_now_ms() < end && waitpid(pid, NULL, WNOHANG) == 0, "no trace");
		usleep(1000);
	}
	rig_kill_idle(1);
	until_ready(3, "no new slot");
	return look;
}

/* It is a child of execd that execd does not know yet, while orphans are swept. */
Test(slots_warden, that_is_slow_does_not_cost_the_slot_that_it_makes)
{
	const struct look *look = hold_warden(false);

	rig_until_idle(2);
	cr_assert(process_lives(look->pid));
	cr_assert_eq(rig_ready, 3);
	slots_spare(0);
	rig_stop();
}

Test(slots_warden, that_answers_no_more_is_replaced)
{
	const struct look *look = hold_warden(true);

	rig_until_idle(2);
	cr_assert(!process_lives(look->pid));
	cr_assert(WEXITSTATUS(rig_do("exit 9", NULL, NULL)) == 9);
	slots_spare(0);
	rig_stop();
}
