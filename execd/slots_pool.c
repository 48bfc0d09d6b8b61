#include "execd/slots_pool.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "execd/config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELP_AFTER_MS 500u /* that a slot which leaves has to kill by itself, and between two such passes */

struct pool pool;

static struct loop_timer ping_timer;
static struct loop_timer help_timer;
static unsigned barren_pings; /* in a row without any slot */

void pool_emit(struct pool_slot *s, struct slot_event event)
{
	event.slot = pool_number(s);
	pool.event(pool.owner, &event);
}

unsigned pool_count(enum pool_place place)
{
	unsigned count = 0;

	for (unsigned i = 0; i < POOL_SIZE; i++)
		count += pool.slots[i].place == place;
	return count;
}

unsigned pool_asked(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < POOL_SIZE; i++)
		count += pool.slots[i].place == POOL_STARTING && pool.slots[i].pid == 0;
	return count;
}

struct pool_slot *pool_find(pid_t pid)
{
	for (unsigned i = 0; i < POOL_SIZE; i++) {
		if (pool.slots[i].place != POOL_FREE && pool.slots[i].pid == pid)
			return &pool.slots[i];
	}
	return NULL;
}

static void close_socket(struct pool_slot *s)
{
	if (s->source.fd < 0)
		return;
	loop_del(pool.loop, &s->source);
	fd_close(&s->source.fd);
}

static void clear(struct pool_slot *s)
{
	*s = (struct pool_slot){.place = POOL_FREE, .said = POOL_SAID_EMPTY, .source.fd = -1, .pidfd = -1};
}

/* One that ended before it was ready is replaced at the next ping, lest a world that no slot can enter keep
 * us busy. */
void pool_free(struct pool_slot *s)
{
	bool was_starting = s->place == POOL_STARTING;

	close_socket(s);
	fd_close(&s->pidfd);
	clear(s);
	if (!was_starting)
		pool_fill();
}

/* One that leaves has no more to say that it needs help. */
static void on_help_timer(struct loop_timer *timer, uint64_t now_ms)
{
	bool again = false;

	for (unsigned i = 0; i < POOL_SIZE; i++) {
		struct pool_slot *s = &pool.slots[i];

		if (s->place != POOL_LEAVING)
			continue;
		help_kill(s);
		again = true;
	}
	if (again)
		loop_timer_set(pool.loop, timer, now_ms + HELP_AFTER_MS);
}

void pool_leave(struct pool_slot *s)
{
	help_rank(s, true);
	close_socket(s);
	s->place = POOL_LEAVING;
	if (s->pid == 0)
		pool_free(s);
	else if (!help_timer.armed)
		loop_timer_set(pool.loop, &help_timer, clock_now_ms() + HELP_AFTER_MS);
}

void pool_destroy(struct pool_slot *s, const char *why)
{
	log_warn("slot destroyed", LOG_U64("slot", pool_number(s)), LOG_I64("pid", s->pid),
		 LOG_STR("why", why));
	if (s->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
	else if (s->pid > 0)
		kill(s->pid, SIGKILL); /* our child, not reaped: the number is its own */
}

int pool_send(struct pool_slot *s, const struct slot_order *order)
{
	int err = slot_order_send(s->source.fd, order);

	if (err == 0)
		s->loading = order->type == SLOT_ORDER_RUN || order->type == SLOT_ORDER_PIECE;
	else if (err == -ECONNRESET)
		s->unread = true;
	return err;
}

static void became_ready(struct pool_slot *s)
{
	if (s->place != POOL_STARTING || !s->ready || s->pid == 0)
		return;
	s->place = POOL_IDLE;
	pool_emit(s, (struct slot_event){.kind = SLOT_READY});
}

static void on_exited(struct pool_slot *s, const struct slot_report *r)
{
	int status = (int)r->value;
	/* A shell says by 137 that SIGKILL ended what it ran last. */
	bool killed = (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !r->by_kill) ||
		      (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL);

	pool_emit(s, (struct slot_event){
			 .kind = SLOT_LEADER_EXITED,
			 .wait_status = status,
			 .by_kill = r->by_kill,
			 .oom = killed && oom_kills() > s->oom_kills,
		     });
}

static void on_started(struct pool_slot *s, uint32_t folder_errno)
{
	static struct log_limit limit = LOG_LIMIT_INIT(4, 10000);
	uint64_t suppressed;

	if (folder_errno > 0 && log_allowed(&limit, clock_now_ms(), &suppressed))
		log_warn("a command runs in /: its folder cannot be entered",
			 LOG_STR("folder", pool.config->cwd), LOG_ERR((int)folder_errno),
			 LOG_U64("suppressed", suppressed));
	pool_emit(s, (struct slot_event){.kind = SLOT_STARTED});
}

static void emit_last(struct pool_slot *s, struct slot_event event)
{
	s->running = false;
	s->said = POOL_SAID_EMPTY;
	help_rank(s, false);
	clear_look();
	pool_emit(s, event);
}

/* Whether a slot may say that now. After a kill the answer to it may cross a later order. */
static bool may_say(const struct pool_slot *s, enum slot_report_type type)
{
	bool loaded = s->said == POOL_SAID_NOTHING && s->missing == 0;
	bool killed = s->killed && s->said != POOL_SAID_EMPTY;

	if (type == SLOT_REPORT_READY)
		return !s->ready;
	if (!s->ready)
		return false;
	switch (type) {
	case SLOT_REPORT_PONG:
		return true;
	case SLOT_REPORT_TOOK:
		return s->said == POOL_SAID_NOTHING && s->missing > 0 && (s->loading || s->killed);
	case SLOT_REPORT_STARTED:
	case SLOT_REPORT_START_FAILED:
		return loaded;
	case SLOT_REPORT_EXITED:
		return s->said == POOL_SAID_STARTED;
	case SLOT_REPORT_MINDING:
		return s->said == POOL_SAID_EXITED;
	case SLOT_REPORT_EMPTY:
	case SLOT_REPORT_STILL_ALIVE:
		return s->said == POOL_SAID_EXITED || killed;
	default:
		return false;
	}
}

static void on_ready(struct pool_slot *s, bool own_domain)
{
	s->ready = true;
	if (pool.world.plan.landlock_kill && !own_domain)
		log_warn("landlock does not hold signals back: this slot kills by the sweep",
			 LOG_I64("slot", s->pid));
	became_ready(s);
}

/* Of an exec. It counts while there is one: a minder's is nobody's any more. */
static void on_exec_report(struct pool_slot *s, const struct slot_report *r)
{
	s->loading = false;
	switch (r->type) {
	case SLOT_REPORT_TOOK:
		pool_emit(s, (struct slot_event){.kind = SLOT_TOOK});
		break;
	case SLOT_REPORT_STARTED:
		s->said = POOL_SAID_STARTED;
		on_started(s, r->value);
		break;
	case SLOT_REPORT_START_FAILED:
		emit_last(s, (struct slot_event){.kind = SLOT_START_FAILED, .value = r->value});
		break;
	case SLOT_REPORT_EXITED:
		s->said = POOL_SAID_EXITED;
		on_exited(s, r);
		break;
	case SLOT_REPORT_EMPTY:
		emit_last(s, (struct slot_event){.kind = SLOT_EMPTY});
		break;
	case SLOT_REPORT_STILL_ALIVE:
		help_kill(s);
		pool_replace(s);
		pool_emit(s, (struct slot_event){.kind = SLOT_STILL_ALIVE, .count = r->value});
		break;
	default:
		pool_emit(s, (struct slot_event){.kind = SLOT_MINDING, .count = r->value});
	}
}

/* 0, or -EPROTO: nothing of ours says that now. */
static int on_report(struct pool_slot *s, const struct slot_report *r)
{
	if (!may_say(s, r->type))
		return -EPROTO;
	if (s->running || r->type == SLOT_REPORT_PONG)
		s->unanswered = 0;
	if (r->type == SLOT_REPORT_READY)
		on_ready(s, r->value);
	else if (r->type != SLOT_REPORT_PONG && s->running)
		on_exec_report(s, r);
	return 0;
}

void pool_drain(struct pool_slot *s)
{
	struct slot_report r;
	int n;

	while (s->source.fd >= 0 && (n = slot_report_receive(s->source.fd, &r, &s->unread)) != -EAGAIN) {
		if (n > 0)
			n = on_report(s, &r) < 0 ? -EPROTO : 1;
		if (n > 0)
			continue;
		/* The end of the slot, or of our trust in it. What it was is said when it is reaped. */
		if (n < 0)
			pool_destroy(s, "broken report");
		close_socket(s);
		if (s->pid == 0 && s->place == POOL_STARTING)
			pool_free(s);
	}
}

static void on_readable(struct loop_source *source, uint32_t events)
{
	(void)events;
	pool_drain(source->owner);
}

static struct pool_slot *find_free(void)
{
	for (unsigned i = 0; i < POOL_SIZE; i++) {
		if (pool.slots[i].place == POOL_FREE)
			return &pool.slots[i];
	}
	return NULL;
}

static int ask_for_one(void)
{
	struct pool_slot *s = find_free();
	FD_CLOSE int ours = -1;
	FD_CLOSE int theirs = -1;
	int err;

	if (!s)
		return -ENOSPC;
	err = slot_pair(&ours, &theirs);
	if (err == 0)
		err = warden_clone(pool_number(s), theirs);
	if (err < 0)
		return err;
	*s = (struct pool_slot){.place = POOL_STARTING, .said = POOL_SAID_EMPTY, .pidfd = -1};
	s->source = (struct loop_source){.fd = ours, .ready = on_readable, .owner = s};
	err = loop_add(pool.loop, &s->source, EPOLLIN);
	if (err < 0) {
		clear(s);
		return err;
	}
	fd_steal(&ours);
	return 0;
}

unsigned pool_usable(void)
{
	unsigned replaced = 0;

	for (unsigned i = 0; i < POOL_SIZE; i++)
		replaced += pool.slots[i].replaced;
	return pool_count(POOL_STARTING) + pool_count(POOL_IDLE) + pool_count(POOL_TAKEN) - replaced;
}

/* What only dies does no harm but by its memory, and wants no slot: another takes its place. */
void pool_replace(struct pool_slot *s)
{
	if (!s->abandoned || s->replaced || !help_only_dying(s))
		return;
	s->replaced = true;
	pool_fill();
}

void pool_fill(void)
{
	unsigned have = pool_usable();

	if (pool.closing || !warden_is_up() || orphans_wait())
		return;
	for (; have < pool.config->max_concurrent; have++) {
		int err = ask_for_one();

		if (err < 0) {
			log_error("no new slot", LOG_ERR(err));
			return;
		}
	}
}

void pool_renew(struct pool_slot *s)
{
	if (s->place != POOL_IDLE || !pool.world.plan.landlock_kill || !warden_is_up() ||
	    s->warden == warden_pid())
		return;
	pool_leave(s);
	pool_fill();
}

void pool_renew_all(void)
{
	for (unsigned i = 0; i < POOL_SIZE; i++)
		pool_renew(&pool.slots[i]);
}

/* The warden's word is checked: it must be a child of ours that lives and is nothing else. */
static bool is_new_child(pid_t pid)
{
	siginfo_t info = {0};

	if (pid <= 0 || pid == warden_pid() || pid == pool.spared || pool_find(pid))
		return false;
	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

void pool_on_cloned(unsigned number, pid_t pid)
{
	struct pool_slot *s = number < POOL_SIZE ? &pool.slots[number] : NULL;

	if (!s || s->place != POOL_STARTING || s->pid != 0)
		return;
	if (!is_new_child(pid)) {
		log_warn("slot not cloned", LOG_U64("slot", number), LOG_ERR(pid < 0 ? (int)pid : -ECHILD));
		pool_free(s);
		return;
	}
	s->pid = pid;
	s->warden = warden_pid();
	s->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	became_ready(s);
}

/* Counted, not timed: when all of us were frozen for a while, nobody was silent. Nothing is sent behind a
 * command that has no answer yet: whether it was read must be seen, and its answer is as good as another. */
static void ping(struct pool_slot *s)
{
	struct slot_order order = {.type = SLOT_ORDER_PING};

	if (s->pid == 0 || s->source.fd < 0)
		return;
	pool_drain(s);
	if (s->unanswered >= LIMIT_SLOT_SILENT_MS / LIMIT_SLOT_PING_MS)
		pool_destroy(s, "silent");
	else if (s->source.fd >= 0 && (s->loading || pool_send(s, &order) == 0))
		s->unanswered++;
}

bool pool_is_barren(void)
{
	return barren_pings >= LIMIT_NO_SLOT_MS / LIMIT_SLOT_PING_MS;
}

static void on_ping_timer(struct loop_timer *timer, uint64_t now_ms)
{
	for (unsigned i = 0; i < POOL_SIZE; i++) {
		if (pool.slots[i].place != POOL_FREE)
			ping(&pool.slots[i]);
	}
	warden_tick();
	clear_tick();
	barren_pings = pool_usable() > pool_asked() ? 0 : barren_pings + 1;
	pool_fill();
	loop_timer_set(pool.loop, timer, now_ms + LIMIT_SLOT_PING_MS);
}

void pool_start(void)
{
	for (unsigned i = 0; i < POOL_SIZE; i++)
		clear(&pool.slots[i]);
	help_timer = (struct loop_timer){.fire = on_help_timer};
	ping_timer = (struct loop_timer){.fire = on_ping_timer};
	loop_timer_set(pool.loop, &ping_timer, clock_now_ms() + LIMIT_SLOT_PING_MS);
}
