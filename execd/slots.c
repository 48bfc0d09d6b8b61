#include "execd/slots.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/landlock.h"
#include "common/log.h"
#include "execd/config.h"
#include "execd/slot/guard.h"
#include "execd/slot/proc.h"
#include "execd/slots_pool.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void slots_plan(const struct config *config, struct slots_plan *ret)
{
	int abi = landlock_abi();
	bool sweep = config->killer && strcmp(config->killer, "sweep") == 0;
	uid_t uid = config->command_user.set ? config->command_user.uid : getuid();

	*ret = (struct slots_plan){
	    .landlock_abi = abi >= LANDLOCK_ABI_REFER ? abi : 0,
	    .commands_scoped = abi >= LANDLOCK_ABI_SCOPE,
	    .landlock_kill = config->background_kill && abi >= LANDLOCK_ABI_SCOPE && !sweep,
	};
	ret->weak = !ret->landlock_kill && uid == 0;
	ret->killer = ret->landlock_kill ? "landlock" : "sweep";
}

void slots_use_seccomp(const struct seccomp_program *program)
{
	pool.world.seccomp = program;
}

int slots_start(struct loop *loop, const struct config *config,
		void (*event)(void *owner, const struct slot_event *event), void *owner)
{
	int err = proc_fd();

	if (err < 0)
		return err;
	pool.loop = loop;
	pool.config = config;
	pool.event = event;
	pool.owner = owner;
	pool.world.config = config;
	if (config->background_kill)
		pool.world.since = time(NULL);
	slots_plan(config, &pool.world.plan);
	if (!pool.world.seccomp)
		pool.world.inherited =
		    pool.world.plan.landlock_abi > 0 ? &policy_commands_ptrace : &policy_commands;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -errno;
	if (!pool.world.plan.commands_scoped && !(pool.world.guard = guard_map()))
		return -errno;
	oom_open();
	pool_start();
	return warden_start();
}

/* An exec gets its events to the end; what no exec owns ends by itself. */
void slots_kill_all(void)
{
	pool.closing = true;
	warden_stop();
	for (unsigned i = 0; i < POOL_SIZE; i++) {
		struct pool_slot *s = &pool.slots[i];

		if (s->place == POOL_TAKEN && s->running)
			slots_kill(i);
		else if (s->place == POOL_STARTING || s->place == POOL_IDLE || s->place == POOL_MINDER)
			pool_leave(s);
	}
}

bool slots_all_gone(void)
{
	return pool_count(POOL_FREE) == POOL_SIZE && warden_pid() == 0 && !orphans_left();
}

/* What can run now or soon. A warden that cannot be had for long is no promise any more, nor is one that has
 * made no slot for long. */
unsigned slots_capacity(void)
{
	unsigned abandoned = 0, usable = pool_usable() - pool_asked();

	for (unsigned i = 0; i < POOL_SIZE; i++)
		abandoned += pool.slots[i].abandoned && !pool.slots[i].replaced;
	if (warden_down_ms() < LIMIT_WARDEN_DOWN_MS && !pool_is_barren())
		usable = pool.config->max_concurrent;
	return usable > abandoned ? usable - abandoned : 0;
}

unsigned slots_idle(void)
{
	return pool.clearing ? 0 : pool_count(POOL_IDLE);
}

unsigned slots_minders(void)
{
	return pool_count(POOL_MINDER);
}

int slots_take(void)
{
	if (pool.clearing)
		return -EAGAIN;
	for (unsigned i = 0; i < POOL_SIZE; i++) {
		if (pool.slots[i].place == POOL_IDLE && pool.slots[i].source.fd >= 0) {
			pool.slots[i].place = POOL_TAKEN;
			return (int)i;
		}
	}
	return -EAGAIN;
}

/* A pipe belongs to whom made it, and /dev/stdout is opened anew by its owner only. setfsuid has no error to
 * return and makes us dumpable as the system likes: both are put right after. */
static int make_pipes(const struct config_user *user, int p[3][2])
{
	bool other = user->set && user->uid != geteuid();
	int err = 0;

	if (other) {
		setfsgid(user->gid);
		setfsuid(user->uid);
	}
	for (int i = 0; i < 3 && err == 0; i++)
		err = pipe2(p[i], O_CLOEXEC) < 0 ? -errno : 0;
	if (other) {
		setfsuid(geteuid());
		setfsgid(getegid());
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	}
	return err;
}

int slots_pipes(int ours[3], int theirs[3])
{
	int p[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
	int err = make_pipes(&pool.config->command_user, p);

	for (int i = 0; i < 3 && err == 0; i++)
		err = fd_set_nonblock(p[i][i == 0], true);
	for (int i = 0; i < 3; i++) {
		if (err < 0) {
			fd_close(&p[i][0]);
			fd_close(&p[i][1]);
			continue;
		}
		ours[i] = p[i][i == 0];
		theirs[i] = p[i][i != 0];
	}
	return err;
}

static struct pool_slot *taken(unsigned slot)
{
	if (slot >= POOL_SIZE || pool.slots[slot].place != POOL_TAKEN)
		return NULL;
	return &pool.slots[slot];
}

/* Whom the next command may not signal. */
static void tell_guard(volatile pid_t *pids)
{
	pids[GUARD_INIT] = 1;
	pids[GUARD_EXECD] = getpid();
	pids[GUARD_EXECD_GROUP] = getpgrp();
	pids[GUARD_WARDEN] = warden_pid();
	pids[GUARD_NETD] = pool.spared;
	for (unsigned i = 0; i < POOL_SIZE; i++)
		pids[GUARD_SLOTS + i] = pool.slots[i].pid;
}

/* Sends a part of a command. -EPIPE: the slot is gone, and what it still said is of no command any more. */
static int send_part(struct pool_slot *s, const struct slot_order *order)
{
	int err = s->source.fd < 0 ? -EPIPE : pool_send(s, order);

	if (err != -EPIPE && err != -ECONNRESET)
		return err;
	s->running = false;
	pool_drain(s); /* lest it be taken again */
	return -EPIPE;
}

int slots_run(unsigned slot, const struct slot_run *run, const int ours[3], const int theirs[3])
{
	struct pool_slot *s = taken(slot);
	struct slot_order order = {
	    .type = SLOT_ORDER_RUN,
	    .value = run->command_len,
	    .bytes = run->given,
	    .size = run->given_len,
	    .fds = {theirs[0], theirs[1], theirs[2], ours[1], ours[2]},
	    .fd_count = SLOT_RUN_FDS,
	};
	int err;

	if (!s || s->running)
		return -ESRCH;
	if (pool.world.guard)
		tell_guard(pool.world.guard->pids);
	err = send_part(s, &order);
	if (err < 0)
		return err;
	pool.unclear = pool.config->background_kill;
	s->running = true;
	s->said = POOL_SAID_NOTHING;
	s->unread = false;
	s->missing = run->command_len - run->given_len;
	s->killed = false;
	s->oom_kills = oom_kills();
	return 0;
}

int slots_command(unsigned slot, const uint8_t *piece, size_t size)
{
	struct pool_slot *s = taken(slot);
	struct slot_order order = {.type = SLOT_ORDER_PIECE, .bytes = piece, .size = size};
	int err;

	if (!s || !s->running)
		return -ESRCH;
	err = send_part(s, &order);
	if (err == 0)
		s->missing -= (uint32_t)size;
	return err;
}

void slots_kill(unsigned slot)
{
	struct pool_slot *s = taken(slot);
	struct slot_order order = {.type = SLOT_ORDER_KILL};

	if (!s || !s->running || s->killed || s->source.fd < 0)
		return;
	s->killed = true;
	help_rank(s, true);
	if (pool_send(s, &order) < 0)
		pool_destroy(s, "takes no orders");
}

void slots_release(unsigned slot)
{
	struct pool_slot *s = taken(slot);

	if (!s)
		return;
	s->running = s->abandoned = s->replaced = false;
	if (s->pid == 0)
		pool_free(s);
	else if (pool.closing || s->source.fd < 0 || pool_usable() > pool.config->max_concurrent)
		pool_leave(s);
	else
		s->place = POOL_IDLE;
	pool_renew(s);
}

static bool kill_oldest_minder(const char *why)
{
	struct pool_slot *oldest = NULL;

	for (unsigned i = 0; i < POOL_SIZE; i++) {
		struct pool_slot *s = &pool.slots[i];

		if (s->place == POOL_MINDER && (!oldest || s->minded_at < oldest->minded_at))
			oldest = s;
	}
	if (!oldest)
		return false;
	log_warn("the oldest background processes are killed", LOG_STR("why", why),
		 LOG_U64("minders", slots_minders()), LOG_I64("pid", oldest->pid));
	pool_leave(oldest);
	return true;
}

bool slots_give_up_minder(void)
{
	return kill_oldest_minder("no process to be had");
}

void slots_mind(unsigned slot)
{
	struct pool_slot *s = taken(slot);
	struct slot_order order = {.type = SLOT_ORDER_MIND};

	if (!s)
		return;
	s->running = false;
	if (s->source.fd < 0 || s->dead || pool.closing) {
		slots_release(slot);
		return;
	}
	if (slots_minders() >= LIMIT_MINDERS)
		kill_oldest_minder("too many");
	s->place = POOL_MINDER;
	s->minded_at = ++pool.minders_made;
	if (pool_send(s, &order) < 0)
		pool_destroy(s, "takes no orders");
	pool_fill();
}

/* The slot goes on trying, and execd helps it each second. */
void slots_abandon(unsigned slot)
{
	struct pool_slot *s = taken(slot);

	if (!s)
		return;
	s->abandoned = true;
	pool_replace(s);
	log_error(s->replaced ? "exec not proven dead, but it only dies: its slot is replaced"
			      : "exec not proven dead: its slot is given up",
		  LOG_U64("slot", slot), LOG_I64("pid", s->pid), LOG_U64("capacity", slots_capacity()));
}

bool slots_replaced(unsigned slot)
{
	struct pool_slot *s = taken(slot);

	return s && s->replaced;
}

void slots_spare(pid_t pid)
{
	pool.spared = pid;
}

void slots_sweep(void)
{
	orphans_look();
}

/* Orders are read one after the other, so one that is unread leaves all that were sent after it unread. When
 * the last was a part of the command, bash cannot have been started, whoever killed the slot and however
 * late. */
static bool never_ran(const struct pool_slot *s)
{
	return s->missing > 0 || (s->unread && s->loading);
}

static void slot_reaped(struct pool_slot *s, int wait_status)
{
	bool expected = (s->place == POOL_LEAVING || s->place == POOL_MINDER) && wait_status == 0;

	pool_drain(s);
	if (!expected)
		log_warn("slot died", LOG_U64("slot", pool_number(s)), LOG_I64("pid", s->pid),
			 LOG_I64("status", wait_status));
	s->pid = 0;
	fd_close(&s->pidfd);
	if (s->place != POOL_TAKEN) {
		pool_free(s);
	} else if (s->running && !s->abandoned && never_ran(s)) {
		s->running = false;
		pool_emit(s, (struct slot_event){.kind = SLOT_UNREAD});
	} else if (s->running) {
		s->dead = true;
		if (!s->abandoned)
			pool_emit(s, (struct slot_event){.kind = SLOT_DIED});
	}
	orphans_look();
}

const char *slots_reap(pid_t pid, int wait_status)
{
	struct pool_slot *s = pool_find(pid);

	if (WIFSTOPPED(wait_status) || WIFCONTINUED(wait_status)) {
		if (s && WIFSTOPPED(wait_status))
			pool_destroy(s, "stopped");
		else if (pid == warden_pid() && WIFSTOPPED(wait_status))
			warden_kill();
	} else if (s) {
		slot_reaped(s, wait_status);
	} else if (pid == warden_pid()) {
		warden_reaped(wait_status);
	} else {
		orphans_look();
	}
	return s ? "slot" : pid == warden_pid() ? "warden" : "orphan";
}
