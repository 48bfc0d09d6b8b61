#include "execd/slot/slot.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/landlock.h"
#include "common/outcome.h"
#include "execd/config.h"
#include "execd/reap.h"
#include "execd/slot/child.h"
#include "execd/slot/command.h"
#include "execd/slot/guard.h"
#include "execd/slot/kill_landlock.h"
#include "execd/slot/kill_sweep.h"
#include "execd/slot/mind.h"
#include "execd/slot/proc.h"
#include "execd/slot/protocol.h"
#include "execd/slot/world.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define STILL_ALIVE_MS 1000u
#define REAP_BATCH     65536 /* between two looks at the socket: execd's death must be noticed */
#define KILL_AGAIN_MS  10u

enum slot_state {
	IDLE,
	LOADING, /* the command is not whole yet */
	RUNNING, /* the leader has not exited */
	LEFT,    /* it has; others live, or have to be shown dead */
};

static struct slot {
	const struct slot_world *world;
	int fd;
	int signals;
	int witness; /* of the landlock killer; -1: only the sweep is used */
	enum slot_state state;
	bool killing;
	bool by_kill; /* the leader was alive when the kill came */
	bool minding;
	bool orphaned; /* execd is gone */
	bool told_minding;
	pid_t leader; /* 0: reaped, and its number no longer its own */
	int theirs[3];
	int readers[2];
	uint64_t alive_at_ms;
	uint64_t kill_at_ms;
	struct sweep sweep;
	struct mind mind;
	struct command command;
	uint8_t order[SLOT_ORDER_MAX];
} slot;

static void report(enum slot_report_type type, uint32_t value)
{
	bool repeated = type == SLOT_REPORT_STILL_ALIVE || type == SLOT_REPORT_PONG;

	slot_report_send(slot.fd, &(struct slot_report){.type = type, .value = value}, !repeated);
}

static void close_theirs(void)
{
	for (int i = 0; i < 3; i++)
		fd_close(&slot.theirs[i]);
}

static void become_idle(void)
{
	close_theirs();
	fd_close(&slot.readers[0]);
	fd_close(&slot.readers[1]);
	command_forget(&slot.command);
	slot.state = IDLE;
	slot.leader = 0;
	slot.killing = slot.by_kill = slot.told_minding = false;
}

static void begin_kill(void)
{
	uint64_t now = clock_now_ms();

	if (slot.killing)
		return;
	slot.killing = true;
	/* All of its group in one pass of the kernel, which no fork outruns. */
	if (slot.leader > 0)
		kill(-slot.leader, SIGKILL);
	slot.kill_at_ms = now;
	slot.alive_at_ms = now + STILL_ALIVE_MS;
	sweep_begin(&slot.sweep, getpid(), NULL);
}

/* Whether the leader has exited, without taking its status: it is reported before anything below it is
 * touched. */
static bool leader_exited(int *ret_status)
{
	siginfo_t info = {0};

	if (slot.state != RUNNING)
		return false;
	if (waitid(P_PID, (id_t)slot.leader, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 ||
	    info.si_pid == 0 || info.si_code == CLD_TRAPPED)
		return false;
	if (info.si_code == CLD_EXITED)
		*ret_status = (info.si_status & 0xff) << 8;
	else
		*ret_status = info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
	return true;
}

static void on_leader_exit(int status)
{
	slot.state = LEFT;
	slot_report_send(slot.fd,
			 &(struct slot_report){
			     .type = SLOT_REPORT_EXITED, .by_kill = slot.by_kill, .value = (uint32_t)status},
			 true);
}

static void look_at_leader(void)
{
	int status;

	if (leader_exited(&status))
		on_leader_exit(status);
}

static void start(void)
{
	const struct config *config = slot.world->config;
	struct child_plan plan = {
	    .bash = config->bash,
	    .argv = command_arguments(&slot.command),
	    .environ = config->command_environ,
	    .fds = {slot.theirs[0], slot.theirs[1], slot.theirs[2]},
	    .folder = config->cwd,
	    .ruleset = slot.world->ruleset,
	    .landlock_abi = slot.world->plan.landlock_abi,
	    .guard = slot.world->guard ? guard_program(slot.world->guard) : NULL,
	    .seccomp = slot.world->seccomp,
	    .raise_stack = command_is_split(&slot.command),
	};
	uint32_t failed = 0, folder_errno = 0;
	pid_t pid = child_start(&plan, &failed, &folder_errno);

	close_theirs();
	if (pid < 0) {
		become_idle();
		report(SLOT_REPORT_START_FAILED, failed);
		return;
	}
	slot.leader = pid;
	slot.state = RUNNING;
	report(SLOT_REPORT_STARTED, folder_errno);
	command_forget(&slot.command);
}

static void load(const uint8_t *bytes, size_t size)
{
	if (command_add(&slot.command, bytes, size) < 0)
		_exit(1);
	if (command_is_whole(&slot.command))
		start();
	else
		report(SLOT_REPORT_TOOK, 0);
}

static void on_run(struct slot_order *order)
{
	if (slot.state != IDLE || slot.minding || command_begin(&slot.command, order->value) < 0)
		_exit(1);
	for (int i = 0; i < 3; i++)
		slot.theirs[i] = order->fds[i];
	slot.readers[0] = order->fds[3];
	slot.readers[1] = order->fds[4];
	slot.state = LOADING;
	load(order->bytes, order->size);
}

static void on_kill(void)
{
	switch (slot.state) {
	case IDLE:
		return;
	case LOADING:
		become_idle();
		report(SLOT_REPORT_EMPTY, 0);
		return;
	case RUNNING:
		look_at_leader();
		if (slot.state == RUNNING) {
			/* Before all else: bash must not live to see a child of it die and exit by itself. */
			slot.by_kill = true;
			kill(slot.leader, SIGKILL);
		}
		break;
	case LEFT:
		break;
	}
	begin_kill();
}

static void on_order(struct slot_order *order)
{
	switch (order->type) {
	case SLOT_ORDER_RUN:
		on_run(order);
		break;
	case SLOT_ORDER_PIECE:
		if (slot.state == LOADING)
			load(order->bytes, order->size);
		break;
	case SLOT_ORDER_KILL:
		on_kill();
		break;
	case SLOT_ORDER_MIND:
		if (slot.state == IDLE)
			_exit(0);
		slot.minding = true;
		mind_begin(&slot.mind, slot.readers);
		break;
	case SLOT_ORDER_PING:
		report(SLOT_REPORT_PONG, 0);
		break;
	case SLOT_ORDER_CLONE:
	case SLOT_ORDER_CLEAR:
		_exit(1);
	}
}

static void read_orders(void)
{
	struct slot_order order;
	int n;

	while (!slot.orphaned && (n = slot_order_receive(slot.fd, slot.order, true, &order)) != -EAGAIN) {
		if (n > 0) {
			on_order(&order);
			continue;
		}
		slot.orphaned = true;
		if (slot.state == IDLE || slot.state == LOADING)
			_exit(0);
		on_kill();
	}
}

/* Takes what has exited; true when there is nothing left to take, ever: ECHILD, the proof. */
static bool reap(void)
{
	for (int i = 0; i < REAP_BATCH; i++) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);

		if (pid < 0)
			return errno == ECHILD;
		if (pid == 0)
			return false;
		if (!reap_is_exit(pid, status) || pid != slot.leader)
			continue;
		slot.leader = 0;
		if (slot.state == RUNNING)
			on_leader_exit(status);
	}
	return false;
}

static void on_empty(void)
{
	become_idle();
	report(SLOT_REPORT_EMPTY, 0);
	if (slot.orphaned || slot.minding)
		_exit(0);
}

static uint32_t count_below(void)
{
	int count = descendants_walk(getpid(), NULL, DESCENDANTS_MAX, NULL, NULL);

	return count < 0 ? SLOT_COUNT_UNKNOWN : (uint32_t)count;
}

static void kill_once(uint64_t now)
{
	if (slot.witness >= 0 && kill_landlock(slot.witness) == 0) {
		slot.kill_at_ms = now + KILL_AGAIN_MS;
		return;
	}
	sweep_pass(&slot.sweep, DESCENDANTS_MAX);
	slot.kill_at_ms = now + slot.sweep.again_ms;
}

/* All that is due now. */
static void step(void)
{
	uint64_t now;

	if (slot.state != RUNNING && slot.state != LEFT)
		return;
	look_at_leader();
	if (reap() && slot.state == LEFT) {
		on_empty();
		return;
	}
	now = clock_now_ms();
	if (slot.killing && slot.kill_at_ms <= now)
		kill_once(now);
	if (slot.killing && slot.alive_at_ms <= now) {
		slot.alive_at_ms = now + STILL_ALIVE_MS;
		report(SLOT_REPORT_STILL_ALIVE, count_below());
	}
	if (slot.state == LEFT && !slot.killing && !slot.told_minding) {
		slot.told_minding = true;
		report(SLOT_REPORT_MINDING, count_below());
	}
	if (slot.minding)
		mind_step(&slot.mind, now);
}

static int wait_ms(void)
{
	uint64_t now = clock_now_ms(), at = CLOCK_NEVER;

	if (slot.killing)
		at = slot.kill_at_ms < slot.alive_at_ms ? slot.kill_at_ms : slot.alive_at_ms;
	if (slot.minding && slot.mind.again_ms < at)
		at = slot.mind.again_ms;
	if (at == CLOCK_NEVER)
		return -1;
	return at <= now ? 0 : (int)(at - now);
}

static void wait_for_work(void)
{
	struct signalfd_siginfo drained[16];
	struct pollfd p[4] = {{.fd = slot.orphaned ? -1 : slot.fd, .events = POLLIN},
			      {.fd = slot.signals, .events = POLLIN},
			      {.fd = -1},
			      {.fd = -1}};

	if (slot.minding)
		mind_poll(&slot.mind, &p[2]);
	if (poll(p, 4, wait_ms()) < 0)
		return;
	if (p[1].revents & POLLIN)
		(void)!read(slot.signals, drained, sizeof drained);
}

/* kill: a domain of its own, and the proof that it holds signals back. */
static void enter_own_domain(const struct slot_world *world)
{
	slot.witness = -1;
	if (world->ruleset < 0)
		return;
	if (world->plan.landlock_kill)
		slot.witness = kill_landlock_witness(world->warden);
	if (landlock_enter(world->ruleset, world->plan.landlock_abi, true) < 0)
		_exit(1);
	if (!kill_landlock_held_back(slot.witness))
		fd_close(&slot.witness);
}

_Noreturn void slot_main(int fd, const struct slot_world *world)
{
	const int keep[] = {fd, world->ruleset, proc_fd()};
	sigset_t child;

	world_close_all_but(keep, sizeof keep / sizeof *keep);
	slot.world = world;
	slot.fd = fd;
	for (int i = 0; i < 3; i++)
		slot.theirs[i] = -1;
	slot.readers[0] = slot.readers[1] = -1;
	prctl(PR_SET_NAME, "slot", 0, 0, 0);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		_exit(1);
	enter_own_domain(world);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	slot.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (slot.signals < 0)
		_exit(1);
	report(SLOT_REPORT_READY, slot.witness >= 0);
	for (;;) {
		wait_for_work();
		read_orders();
		step();
	}
}
