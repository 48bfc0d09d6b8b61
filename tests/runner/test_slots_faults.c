/* Slots that die, stop or fall silent under their exec, and execd's own death. */
#include "tests/lib/bound.h"
#include "tests/lib/cgroup.h"
#include "tests/lib/process.h"
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include "common/clock.h"
#include "common/limits.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(slots_faults, .timeout = 60, .init = space_need_own);

static struct rig_exec x;

static void start(bool background_kill)
{
	rig_prepare();
	rig_config.background_kill = background_kill;
	rig_start();
}

static bool named(pid_t pid, const char *name)
{
	char path[64], comm[32] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(comm, sizeof comm, f))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(f);
	return strcmp(comm, name) == 0;
}

static void send_signal(pid_t pid, int sig)
{
	cr_assert_gt(pid, 1);
	cr_assert_eq(kill(pid, sig), 0);
}

static bool lives(pid_t pid)
{
	return kill(pid, 0) == 0;
}

/* Runs a command that says the pids of itself, its slot and an escapee, then does what it is told. */
static unsigned run_with_escapee(const char *then, pid_t *ret_leader, pid_t *ret_slot, pid_t *ret_escapee)
{
	char command[256];
	unsigned slot;

	snprintf(command, sizeof command, "setsid sleep 1000 & echo $$ $PPID $!; read x; %s", then);
	slot = rig_run_open(command);
	rig_until_output(slot, "\n");
	cr_assert_eq(sscanf(rig_execs[slot].out, "%d %d %d", ret_leader, ret_slot, ret_escapee), 3);
	return slot;
}

static void go_on(unsigned slot)
{
	cr_assert_eq(write(rig_execs[slot].ours[0], "\n", 1), 1);
}

/* Whatever happened to the slot: its exec is over, nothing of it lives, and there is another slot. */
static void until_replaced(unsigned slot, pid_t leader, pid_t escapee)
{
	rig_until(slot, SLOT_EMPTY);
	cr_assert(!lives(leader));
	cr_assert(!lives(escapee));
	rig_release(slot);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; slots_idle() < 2; rig_pass())
		cr_assert(clock_now_ms() < end, "no new slot");
	cr_assert(WEXITSTATUS(rig_do("exit 9", NULL, NULL)) == 9);
	rig_stop();
}

Test(slots_faults, a_slot_that_is_killed_takes_its_exec_with_it)
{
	pid_t leader, pid, escapee;
	unsigned slot;

	start(true);
	slot = run_with_escapee("sleep 1000", &leader, &pid, &escapee);
	send_signal(pid, SIGKILL);
	rig_until(slot, SLOT_DIED);
	until_replaced(slot, leader, escapee);
}

Test(slots_faults, a_slot_that_is_stopped_counts_as_dead)
{
	pid_t leader, pid, escapee;
	unsigned slot;

	start(true);
	slot = run_with_escapee("sleep 1000", &leader, &pid, &escapee);
	send_signal(pid, SIGSTOP);
	rig_until(slot, SLOT_DIED);
	until_replaced(slot, leader, escapee);
}

/* What a tenant can do where execs share a world. */
Test(slots_faults, a_command_that_kills_its_slot_ends_itself)
{
	pid_t leader, pid, escapee;
	unsigned slot;

	start(false);
	slot = run_with_escapee("kill -KILL $PPID; sleep 1000", &leader, &pid, &escapee);
	go_on(slot);
	rig_until(slot, SLOT_DIED);
	until_replaced(slot, leader, escapee);
}

Test(slots_faults, a_command_that_stops_its_slot_ends_itself)
{
	pid_t leader, pid, escapee;
	unsigned slot;

	start(false);
	slot = run_with_escapee("kill -STOP $PPID; sleep 1000", &leader, &pid, &escapee);
	go_on(slot);
	rig_until(slot, SLOT_DIED);
	until_replaced(slot, leader, escapee);
}

Test(slots_faults, other_signals_do_not_reach_a_slot)
{
	start(false);
	rig_do("for s in HUP INT QUIT TERM USR1 PIPE ALRM SEGV TSTP TTIN 34 64; do kill -$s $PPID "
	       "2>/dev/null; done; exit 2",
	       NULL, &x);
	cr_assert_str_eq(x.order, "sxE");
	cr_assert(WEXITSTATUS(x.wait_status) == 2);
	rig_stop();
}

Test(slots_faults, the_exit_of_a_leader_outlives_its_slot)
{
	unsigned slot;

	start(false);
	slot = rig_run("sleep 1000 & echo $PPID; exit 3", NULL);
	rig_until(slot, SLOT_MINDING);
	rig_until_output(slot, "\n");
	send_signal(atoi(rig_execs[slot].out), SIGKILL);
	rig_until(slot, SLOT_EMPTY);
	cr_assert_str_eq(rig_execs[slot].order, "sxmdE");
	cr_assert(WEXITSTATUS(rig_execs[slot].wait_status) == 3);
	rig_release(slot);
	rig_stop();
}

Test(slots_faults, slots_that_die_idle_are_replaced)
{
	start(false);
	rig_do("true", NULL, NULL);
	rig_kill_idle(2);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; rig_ready < 4; rig_pass())
		cr_assert(clock_now_ms() < end, "no new slot");
	cr_assert(WEXITSTATUS(rig_do("exit 9", NULL, NULL)) == 9);
	rig_stop();
}

/* A process of the kernel's in a system call that does not end cannot be made here: the slot is told to give
 * up. */
Test(slots_faults, an_abandoned_slot_counts_again_once_it_is_proven_empty)
{
	unsigned slot;

	start(false);
	slot = rig_run("sleep 1000", NULL);
	rig_until(slot, SLOT_STARTED);
	slots_abandon(slot);
	cr_assert_eq(slots_capacity(), 1);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; slots_idle() == 0; rig_pass())
		cr_assert(clock_now_ms() < end, "the other slot does not come");
	rig_for(20);
	cr_assert_eq(slots_idle(), 1);
	slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	rig_release(slot);
	cr_assert_eq(slots_capacity(), 2);
	rig_stop();
}

/* A command that was left CAP_SETUID can step out of its slot's reach, not out of execd's. */
Test(slots_faults, execd_helps_where_a_slot_may_not_kill)
{
	pid_t pid;
	unsigned slot;

	if (geteuid() != 0)
		cr_skip_test("not root");
	rig_prepare();
	rig_config.keep_caps = 1u << 6 | 1u << 7; /* CAP_SETGID, CAP_SETUID */
	rig_start();
	slot = rig_run("setpriv --reuid=65531 --regid=65531 --clear-groups sleep 1000 & echo $!; sleep 1000",
		       NULL);
	rig_until_output(slot, "\n");
	pid = atoi(rig_execs[slot].out);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; !named(pid, "sleep"); rig_pass())
		cr_assert(clock_now_ms() < end, "%s", rig_execs[slot].err);
	slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	cr_assert(rig_has(slot, SLOT_STILL_ALIVE), "its slot could kill it after all");
	cr_assert(!lives(pid));
	rig_release(slot);
	rig_stop();
}

/* A spared child of ours is left alone by the sweep for orphans; the escapee is not. */
Test(slots_faults, the_sweep_spares_netd)
{
	pid_t leader, pid, escapee, netd;
	unsigned slot;

	start(false);
	netd = bound_fork();
	cr_assert_geq(netd, 0);
	if (netd == 0) {
		for (;;)
			pause();
	}
	slots_spare(netd);
	slot = run_with_escapee("sleep 1000", &leader, &pid, &escapee);
	send_signal(pid, SIGKILL);
	rig_until(slot, SLOT_EMPTY);
	cr_assert(!lives(escapee));
	cr_assert(lives(netd));
	rig_release(slot);
	kill(netd, SIGKILL);
	waitpid(netd, NULL, 0);
	slots_spare(0);
	rig_stop();
}

/* What execd cannot read is no proof that there is nothing. */
Test(slots_faults, orphans_are_not_told_dead_while_they_cannot_be_read)
{
	pid_t leader, pid, escapee;
	struct rlimit files, one_more;
	unsigned slot;
	int lowest;

	start(true);
	slot = run_with_escapee("sleep 1000", &leader, &pid, &escapee);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	send_signal(pid, SIGKILL);
	rig_until(slot, SLOT_DIED);
	lowest = dup(0);
	close(lowest);
	one_more = (struct rlimit){(rlim_t)lowest + 1, files.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &one_more), 0);
	rig_until(slot, SLOT_STILL_ALIVE);
	cr_expect(!rig_has(slot, SLOT_EMPTY));
	cr_expect(lives(escapee));
	cr_expect_eq(rig_execs[slot].count, SLOT_COUNT_UNKNOWN);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	until_replaced(slot, leader, escapee);
}

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : st.st_size;
}

/* Half of our descriptors is a command's limit: what it has in flight leaves us the other half. */
Test(slots_faults, descriptors_in_flight_do_not_stop_other_execs)
{
	char path[] = "/tmp/hostile.XXXXXX", command[256];
	const char *build = getenv("BUILD");
	struct rlimit files;
	unsigned slot;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_max = files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	cr_assert(mkstemp(path) >= 0);
	start(false);
	snprintf(command, sizeof command, "ulimit -Sn hard; exec %s/tests/hostile flights %s",
		 build ? build : "build", path);
	slot = rig_run(command, NULL);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; size_of(path) == 0; rig_pass())
		cr_assert(clock_now_ms() < end, "%s", rig_execs[slot].err);
	for (int i = 0; i < 3; i++)
		cr_assert(WEXITSTATUS(rig_do("exit 4", NULL, NULL)) == 4);
	slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	rig_release(slot);
	unlink(path);
	rig_stop();
}

/* row 19 of "right in the field" (tests/contract/test_field.c), in a smaller cgroup */
Test(slots_faults, a_leader_that_the_kernel_killed_for_memory_is_told)
{
	struct cgroup small;

	if (geteuid() != 0 || !cgroup_enter_memory(&small, "67108864"))
		cr_skip_test("no memory cgroup of our own");
	start(false);
	rig_do("exec tail /dev/zero", NULL, &x);
	cr_assert(WIFSIGNALED(x.wait_status) && WTERMSIG(x.wait_status) == SIGKILL);
	cr_assert(!x.by_kill);
	cr_assert(x.oom);
	rig_do("kill -KILL $$", NULL, &x);
	cr_assert(!x.oom);
	rig_stop();
	cr_assert(cgroup_leave(&small));
}

static _Noreturn void be_execd(const char *path)
{
	static const char *const shapes[] = {"plain", "swarm", "immune", "guardians"};
	char command[4][256];
	const char *build = getenv("BUILD");

	rig_config.max_concurrent = 4;
	rig_start();
	for (int i = 0; i < 4; i++) {
		snprintf(command[i], sizeof command[i], "%s/tests/hostile %s %s; sleep 1000",
			 build ? build : "build", shapes[i], path);
		rig_run(command[i], NULL);
	}
	for (;;)
		rig_pass();
}

/* Nobody is left to ask: the shapes' marks must end. The promise is 2 s on a machine that is not overloaded.
 */
static void kill_execd(bool background_kill)
{
	char path[] = "/tmp/hostile.XXXXXX";
	uint64_t killed;
	off_t size;
	pid_t execd;

	cr_assert(mkstemp(path) >= 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	rig_prepare();
	rig_config.background_kill = background_kill;
	execd = bound_fork();
	if (execd == 0)
		be_execd(path);
	cr_assert_gt(execd, 0);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; size_of(path) < 1000; usleep(1000))
		cr_assert(clock_now_ms() < end, "the shapes do not start");
	killed = clock_now_ms();
	send_signal(execd, SIGKILL);
	/* All come to us: when we have no child any more, nothing is left. */
	while (waitpid(-1, NULL, WNOHANG | __WALL) >= 0 || errno != ECHILD) {
		cr_assert(clock_now_ms() < killed + RIG_WAIT_MS, "something lives on");
		usleep(1000);
	}
	size = size_of(path);
	usleep(50000);
	cr_assert_eq(size_of(path), size);
	unlink(path);
}

Test(slots_faults, all_ends_when_execd_is_killed)
{
	kill_execd(false);
}

Test(slots_faults, all_ends_when_execd_is_killed_where_each_exec_has_its_own_world)
{
	kill_execd(true);
}
