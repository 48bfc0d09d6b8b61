/* The sweep harms no stranger who takes a number that it has seen: at every system call of it, in turn, a
 * process or thread below it ends and another's process takes its number. The test holds the sweep there by
 * ptrace, and chooses numbers through ns_last_pid, in a pid namespace of its own. suite-timeout: 240 */
#include "common/clock.h"
#include "execd/slot/kill_sweep.h"
#include "tests/lib/bound.h"
#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(sweep_numbers, .timeout = 200, .init = space_need_own);

#define WAIT_MS  10000u
#define LIFE_S   20
#define TICK_MS  20 /* longer than one of a start time's */
#define TRIES    200
#define PIDFS    0x50494446
#define LAST_PID "/proc/sys/kernel/ns_last_pid"
#define STACK    16384

/* Who may end: the sweep's own child does not, it is there until it is reaped. */
enum who {
	CHILD,
	THREAD,
	GRANDCHILD,
	LEAF,
	WHO_COUNT,
};

/* Shared with all of them. */
static struct stage {
	pid_t sweeper;
	pid_t number[WHO_COUNT];
	pid_t strangers_child;
	int end_thread; /* a pipe's ends */
	int wait_thread;
	bool ready;
	bool done; /* the sweep */
} * now;

static cpu_set_t all_cpus;
static char stack[STACK];

static void until(bool (*true_now)(void), const char *what)
{
	for (uint64_t end = clock_now_ms() + WAIT_MS; !true_now(); usleep(100))
		cr_assert(clock_now_ms() < end, "%s", what);
}

/* --- what is swept: child (two threads) → grandchild → leaf; what ends below is reaped by the kernel --- */

/* CHILD */
static _Noreturn void stay(void)
{
	alarm(LIFE_S);
	for (;;)
		pause();
}

/* CHILD */
static int second_thread(void *arg)
{
	char c;

	(void)arg;
	(void)!read(now->wait_thread, &c, 1);
	syscall(SYS_exit, 0);
	return 0;
}

/* CHILD */
static void begin_life(enum who who)
{
	signal(SIGCHLD, SIG_IGN);
	now->number[who] = getpid();
}

/* CHILD */
static _Noreturn void be_tree(void)
{
	begin_life(CHILD);
	now->number[THREAD] =
	    clone(second_thread, stack + STACK,
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, NULL);
	if (fork() == 0) {
		begin_life(GRANDCHILD);
		if (fork() == 0) {
			begin_life(LEAF);
			__atomic_store_n(&now->ready, true, __ATOMIC_SEQ_CST);
			stay();
		}
	}
	stay();
}

/* CHILD. Two passes: as the first is, and with all that is done to a tree that resists. */
static _Noreturn void be_sweeper(void)
{
	struct sweep sweep;

	alarm(LIFE_S);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (fork() == 0)
		be_tree();
	while (!__atomic_load_n(&now->ready, __ATOMIC_SEQ_CST))
		usleep(50);
	raise(SIGSTOP);
	sweep_begin(&sweep, getpid(), NULL);
	sweep.stayed = 100;
	sweep.passes = 1;
	sweep_pass(&sweep, DESCENDANTS_MAX);
	sweep_pass(&sweep, DESCENDANTS_MAX);
	now->done = true;
	for (;;)
		pause();
}

static bool sweeper_is_done(void)
{
	return __atomic_load_n(&now->done, __ATOMIC_SEQ_CST);
}

/* --- the stranger --- */

static bool choose_number(pid_t number)
{
	char text[16];
	int n = snprintf(text, sizeof text, "%d", number - 1), fd = open(LAST_PID, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0)
		close(fd);
	return good;
}

/* A process of that number, which has a child. */
static void be_stranger(pid_t number)
{
	uint64_t end = clock_now_ms() + WAIT_MS;

	now->strangers_child = 0;
	for (;;) {
		pid_t pid;

		cr_assert(clock_now_ms() < end, "no process gets the number %d", number);
		cr_assert(choose_number(number));
		pid = fork();
		cr_assert_geq(pid, 0);
		if (pid == 0 && getpid() == number) {
			pid = fork();
			if (pid != 0)
				now->strangers_child = pid;
			stay();
		}
		if (pid == 0)
			_exit(0);
		if (pid == number)
			return;
		waitpid(pid, NULL, 0);
	}
}

static bool strangers_child_is_there(void)
{
	return __atomic_load_n(&now->strangers_child, __ATOMIC_SEQ_CST) > 0;
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "", *at;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	(void)!read(fd, text, sizeof text - 1);
	close(fd);
	at = strrchr(text, ')');
	return at ? at[2] : 0;
}

static void expect_untouched(pid_t pid, const char *who, enum who number, unsigned call)
{
	struct rlimit limit = {0}, ours;
	char state = state_of(pid);
	cpu_set_t cpus;

	getrlimit(RLIMIT_NPROC, &ours);
	cr_expect(state == 'S' || state == 'R', "%s of %d, call %u: its state is %c", who, number, call,
		  state);
	cr_expect_eq(prlimit(pid, RLIMIT_NPROC, NULL, &limit), 0);
	cr_expect_eq(limit.rlim_max, ours.rlim_max, "%s of %d, call %u: it cannot fork", who, number, call);
	cr_expect_eq(sched_getscheduler(pid), SCHED_OTHER, "%s of %d, call %u: it is idle", who, number,
		     call);
	cr_expect_eq(sched_getaffinity(pid, sizeof cpus, &cpus), 0);
	cr_expect(CPU_EQUAL(&cpus, &all_cpus), "%s of %d, call %u: it is bound", who, number, call);
}

/* --- the swap --- */

static bool number_is_free(pid_t number)
{
	return syscall(SYS_tkill, number, 0) < 0 && errno == ESRCH;
}

/* Ends what has the number. False when that cannot be now: the sweep's own child keeps it until it is reaped,
 * and a stopped process ends no thread. */
static bool free_number(enum who who)
{
	pid_t number = now->number[who];

	if (number_is_free(number))
		return true;
	if (who == THREAD)
		(void)!write(now->end_thread, "", 1);
	else
		syscall(SYS_tkill, number, SIGKILL);
	for (int i = 0; i < 200 && !number_is_free(number); i++) {
		char state = who == THREAD ? state_of(now->number[CHILD]) : state_of(number);

		if (state == 'T' || (state == 'Z' && who != THREAD))
			return false;
		usleep(50);
	}
	return number_is_free(number);
}

/* Runs the sweeper up to the entry of its next system call. False when it has none any more. */
static bool go_to_next_call(pid_t sweeper, bool *entry)
{
	int status;

	do {
		if (sweeper_is_done() || ptrace(PTRACE_SYSCALL, sweeper, NULL, NULL) < 0)
			return false;
		if (waitpid(sweeper, &status, 0) != sweeper || !WIFSTOPPED(status))
			return false;
		*entry = !*entry;
	} while (!*entry);
	return !sweeper_is_done();
}

static void start_sweeper(void)
{
	int status, p[2];
	pid_t pid;

	memset(now, 0, sizeof *now);
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	now->wait_thread = p[0];
	now->end_thread = p[1];
	pid = bound_fork();
	if (pid == 0)
		be_sweeper();
	cr_assert_gt(pid, 0);
	now->sweeper = pid;
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
}

static void end_all(void)
{
	kill(now->sweeper, SIGKILL);
	for (;;) {
		char text[512];
		int n, fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
		pid_t pid;

		cr_assert_geq(fd, 0);
		n = (int)read(fd, text, sizeof text - 1);
		close(fd);
		if (n <= 0)
			break;
		text[n] = '\0';
		pid = (pid_t)strtol(text, NULL, 10);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, __WALL);
	}
	close(now->wait_thread);
	close(now->end_thread);
}

/* One sweep with the swap at its call-th system call. False when it has not so many. */
static bool swap_at(enum who who, unsigned call, bool unique, unsigned *ret_swaps)
{
	bool entry = false, more = true;
	pid_t number;

	start_sweeper();
	number = now->number[who];
	cr_assert_eq(ptrace(PTRACE_SEIZE, now->sweeper, NULL, NULL), 0, "%s", strerror(errno));
	kill(now->sweeper, SIGCONT);
	waitpid(now->sweeper, NULL, 0);
	for (unsigned i = 0; more && i <= call; i++)
		more = go_to_next_call(now->sweeper, &entry);
	if (more && free_number(who)) {
		if (!unique)
			usleep(TICK_MS * 1000);
		be_stranger(number);
		until(strangers_child_is_there, "the stranger has no child");
		++*ret_swaps;
		ptrace(PTRACE_DETACH, now->sweeper, NULL, NULL);
		until(sweeper_is_done, "the sweep does not end");
		expect_untouched(number, "the stranger", who, call);
		expect_untouched(now->strangers_child, "the stranger's child", who, call);
	}
	end_all();
	return more;
}

static bool has_unique_pidfds(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct statfs fs = {0};
	bool unique = fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PIDFS;

	if (fd >= 0)
		close(fd);
	return unique;
}

/* One test, for another beside it would take the numbers that this one chooses. */
Test(sweep_numbers, given_to_a_stranger_at_any_moment_are_his)
{
	static const enum who ends[] = {THREAD, GRANDCHILD, LEAF};
	bool unique = has_unique_pidfds();

	if (access(LAST_PID, W_OK) < 0 || !choose_number(getpid() + 100))
		cr_skip_test("the numbers of processes cannot be chosen");
	now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(now, MAP_FAILED);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	sched_getaffinity(0, sizeof all_cpus, &all_cpus);
	if (CPU_COUNT(&all_cpus) < 2)
		cr_log_info("one CPU: nothing can be seen of a binding");
	for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++) {
		unsigned call = 0, swaps = 0;

		while (swap_at(ends[i], call, unique, &swaps))
			call++;
		cr_log_info("%u: %u system calls, %u swaps", ends[i], call, swaps);
		cr_expect_gt(swaps, 20, "%u: %u of %u", ends[i], swaps, call);
	}
}
