#include "execd/execs.h"

#include "common/clock.h"
#include "common/log.h"
#include "execd/cache.h"
#include "execd/config.h"
#include "execd/exec_life.h"
#include "execd/exec_owed.h"
#include "execd/exec_report.h"
#include "execd/inflight.h"
#include "execd/queue.h"
#include "execd/records.h"
#include "execd/starved.h"

#include <errno.h>
#include <string.h>

static struct {
	struct loop *loop;
	const struct config *config;
	struct execs_counters counters;

	/* Leaving: after a GOAWAY, or for good. */
	bool going_away;
	bool shutting_down;
	bool killed;
	void (*idle)(void *owner);
	void *idle_owner;
	struct loop_timer kill_timer; /* the end of the grace */
	struct loop_timer last_timer; /* shutdown waits no longer */
	struct loop_timer idle_timer; /* calls idle from the loop, never from inside a call */

	struct loop_timer room_timer; /* nothing starts until what was given up for it is gone */
} self;

#define ROOM_MS 200u

/* --- places --- */

static bool place_is_free(void)
{
	return self.counters.running < self.config->max_concurrent && slots_idle() > 0 &&
	       !self.room_timer.armed;
}

/* False when the pool has none after all. */
static bool take_place(struct exec *e)
{
	int slot = slots_take();

	if (slot < 0)
		return false;
	inflight_set_slot(e, slot);
	e->placed = true;
	self.counters.running++;
	return true;
}

/* Who has a place but not its slot yet, as at the start and behind a minder, does not wait for a place. */
static bool queue_is_full(void)
{
	return queue_count() >= LIMIT_WAITING + self.config->max_concurrent - self.counters.running;
}

/* The first that may start: one whose earlier run is not proven dead yet lets others pass. */
static struct exec *next_to_start(void)
{
	struct exec *e;

	for (uint32_t i = 0; (e = queue_at(i)); i++) {
		if (!inflight_find_dying(e->req_id))
			return e;
	}
	return NULL;
}

/* What waited for the proof of its earlier run may be answered by it. */
static void answer_heirs(void)
{
	struct exec *e;
	uint32_t i = 0;

	while ((e = queue_at(i))) {
		bool proven = e->heir && !inflight_find_dying(e->req_id);

		if (proven)
			e->heir = false;
		if (!proven || !exec_life_recall(e))
			i++;
	}
}

static void start_waiting(void)
{
	struct exec *e;

	answer_heirs();
	while (place_is_free() && (e = next_to_start()) && take_place(e))
		exec_life_step(e, e->command_len > 0 ? EXEC_ON_TURN : EXEC_ON_TURN_WHOLE, NULL);
}

/* Nothing that netd is still to be told, or still to hand over. */
static bool nothing_is_owed(void)
{
	for (struct exec *e = inflight_next(NULL); e; e = inflight_next(e)) {
		if (e->state != EXEC_DYING && e->state != EXEC_STUCK)
			return false;
	}
	return true;
}

/* At the end of whatever came in: the places that it freed are taken, and an idle that somebody waits for is
 * told. */
static void settle(void)
{
	start_waiting();
	starved_look(self.loop, self.counters.running < self.config->max_concurrent && slots_idle() == 0 &&
				    next_to_start() != NULL);
	if (self.idle && !self.idle_timer.armed && nothing_is_owed())
		loop_timer_set(self.loop, &self.idle_timer, clock_now_ms());
}

/* --- EXEC --- */

static void refuse(uint64_t req_id, const struct channel_exec *exec, enum refusal refusal)
{
	struct outcome outcome = {OUTCOME_REFUSED, refusal};

	self.counters.refused++;
	exec_report_refused(req_id, exec, refusal);
	records_refused(req_id, &outcome);
}

/* Its answer waits for the proof, whoever asks. One that was given already, or whose deadline has passed,
 * waits for nothing. */
static bool answer_is_due(const struct exec *dying)
{
	return !dying || dying->state == EXEC_STUCK || dying->reported || dying->replaced;
}

/* In flight, or done: it is answered without running. In flight is looked up first (contract.md 9). */
static bool answer_known(uint64_t req_id, const struct channel_exec *exec, const struct exec *dying)
{
	const struct exec *known = inflight_find(req_id);
	struct outcome outcome;
	bool truncated;

	if (known && memcmp(known->fingerprint, exec->fingerprint, CHANNEL_FINGERPRINT) == 0) {
		self.counters.duplicates++;
		records_duplicate(req_id);
		return true;
	}
	if (known) {
		refuse(req_id, exec, REFUSAL_COLLISION);
		return true;
	}
	if (!answer_is_due(dying))
		return false;
	switch (cache_lookup(req_id, exec->fingerprint, &outcome, &truncated)) {
	case CACHE_SAME:
		self.counters.replayed++;
		exec_report_replay(req_id, exec, &outcome);
		records_replay(req_id, &outcome, truncated);
		return true;
	case CACHE_OTHER:
		exec_report_reused(req_id);
		return false;
	case CACHE_UNKNOWN:
		break;
	}
	return false;
}

/* Why it cannot be taken now, or 0. */
static enum refusal refusal_of(const struct channel_exec *exec, const struct exec *dying)
{
	if (exec->bad)
		return (enum refusal)exec->bad;
	if (self.shutting_down)
		return REFUSAL_SHUTTING_DOWN;
	if (self.going_away)
		return REFUSAL_GOING_AWAY;
	if (dying && dying->state == EXEC_STUCK)
		return REFUSAL_STILL_DYING;
	return 0;
}

static struct exec *admit(uint64_t req_id, const struct channel_exec *exec)
{
	struct exec *e = inflight_add(req_id);

	if (!e)
		return NULL;
	memcpy(e->fingerprint, exec->fingerprint, CHANNEL_FINGERPRINT);
	e->timeout_s = exec->timeout_s;
	e->command_len = exec->command_len;
	e->stdin_len = exec->stdin_len;
	e->received_ms = clock_now_ms();
	return e;
}

void execs_on_exec(uint64_t req_id, const struct channel_exec *exec, const uint8_t *command)
{
	struct exec *dying = inflight_find_dying(req_id);
	struct exec_note whole = {.bytes = command, .size = exec->command_len};
	enum refusal refusal;
	struct exec *e;

	self.counters.received++;
	if (answer_known(req_id, exec, dying))
		return;
	refusal = refusal_of(exec, dying);
	if (!refusal && queue_is_full())
		refusal = REFUSAL_QUEUE_FULL;
	e = refusal ? NULL : admit(req_id, exec);
	if (!e) {
		refuse(req_id, exec, refusal ? refusal : REFUSAL_QUEUE_FULL);
		return;
	}
	e->heir = dying;
	records_admitted(req_id);
	if (command && !dying && queue_count() == 0 && place_is_free() && take_place(e))
		exec_life_step(e, EXEC_ON_TURN_WHOLE, &whole);
	else
		queue_push(e);
	settle();
}

/* --- what else comes --- */

int execs_on_command(uint64_t req_id, uint32_t offset, const uint8_t *bytes, size_t size,
		     const char **ret_why)
{
	struct exec *e = inflight_find(req_id);
	struct exec_note note = {.bytes = bytes, .size = (uint32_t)size};

	if (!e || !e->fetching) {
		*ret_why = "a piece of a command that was not asked for";
		return -EPROTO;
	}
	if (offset != e->given || size == 0 || size > e->command_len - e->given) {
		*ret_why = "a piece of a command that does not fit";
		return -EPROTO;
	}
	e->fetching = false;
	exec_life_step(e, EXEC_ON_PIECE, &note);
	settle();
	return 0;
}

void execs_on_abort(uint64_t req_id)
{
	struct exec *e = inflight_find(req_id);

	if (!e)
		return;
	exec_life_step(e, EXEC_ON_ABORT, NULL);
	settle();
}

int execs_on_drained(uint64_t req_id, bool truncated, const struct channel_drained *drained,
		     const char **ret_why)
{
	struct exec *e = inflight_find(req_id);
	struct exec_note note = {.drained = drained, .truncated = truncated};

	if (!e || e->owed || exec_life_step(e, EXEC_ON_DRAINED, &note) < 0) {
		*ret_why = "drained, but it has not ended";
		return -EPROTO;
	}
	settle();
	return 0;
}

int execs_on_quiet(uint64_t req_id, const char **ret_why)
{
	struct exec *e = inflight_find(req_id);

	if (!e || !e->asked_quiet) {
		*ret_why = "quiet, which was not asked for";
		return -EPROTO;
	}
	e->asked_quiet = false;
	exec_life_step(e, EXEC_ON_QUIET, NULL);
	settle();
	return 0;
}

void execs_channel_writable(void)
{
	for (struct exec *e = inflight_next(NULL); e; e = inflight_next(e))
		exec_owed_send(e);
	settle();
}

static void room_is_made(struct loop_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
	settle();
}

/* What was left behind holds the processes that bash needs: it goes before a command is refused. */
static bool make_room(struct exec *e, const struct slot_event *event)
{
	if (event->value != OUTCOME_START_VALUE(START_PROCESS, EAGAIN) || !exec_life_may_run_again(e) ||
	    !slots_give_up_minder())
		return false;
	loop_timer_set(self.loop, &self.room_timer, clock_now_ms() + ROOM_MS);
	exec_life_step(e, EXEC_ON_UNREAD, NULL);
	return true;
}

void execs_on_slot(void *owner, const struct slot_event *event)
{
	static const enum exec_event events[] = {
	    [SLOT_TOOK] = EXEC_ON_TOOK,
	    [SLOT_STARTED] = EXEC_ON_STARTED,
	    [SLOT_START_FAILED] = EXEC_ON_START_FAILED,
	    [SLOT_LEADER_EXITED] = EXEC_ON_LEADER_EXITED,
	    [SLOT_EMPTY] = EXEC_ON_EMPTY,
	    [SLOT_STILL_ALIVE] = EXEC_ON_STILL_ALIVE,
	    [SLOT_MINDING] = EXEC_ON_MINDING,
	    [SLOT_DIED] = EXEC_ON_DIED,
	};
	struct exec *e = inflight_of_slot(event->slot);
	struct exec_note note = {.slot = event};
	bool waits = e && event->kind == SLOT_START_FAILED && make_room(e, event);

	(void)owner;
	if (waits)
		e = NULL;
	if (e && event->kind == SLOT_UNREAD)
		exec_life_slot_unread(e);
	else if (e && event->kind == SLOT_MINDING && self.config->background_kill)
		exec_life_step(e, EXEC_ON_LEFT, &note);
	else if (e && event->kind != SLOT_READY)
		exec_life_step(e, events[event->kind], &note);
	settle();
}

static void expired(struct loop_timer *timer, uint64_t now_ms)
{
	if (!exec_life_put_off(timer->owner, now_ms))
		exec_life_step(timer->owner, EXEC_ON_TIMER, NULL);
	settle();
}

/* --- leaving --- */

static void refuse_waiting(enum refusal refusal)
{
	struct exec_note note = {.outcome = {OUTCOME_REFUSED, refusal}};
	struct exec *e;

	while ((e = queue_at(0)))
		exec_life_step(e, EXEC_ON_REFUSE, &note);
}

static void kill_live(void)
{
	struct exec_note note = {
	    .why = self.shutting_down ? "shutdown" : "goaway",
	    .outcome = {OUTCOME_REFUSED, self.shutting_down ? REFUSAL_SHUTTING_DOWN : REFUSAL_GOING_AWAY},
	};

	loop_timer_stop(self.loop, &self.kill_timer);
	if (self.shutting_down) {
		self.killed = true;
		exec_life_shorten_proof(LIMIT_SHUTDOWN_PROOF_MS);
		loop_timer_set(self.loop, &self.last_timer,
			       clock_now_ms() + LIMIT_SHUTDOWN_PROOF_MS + LIMIT_SHUTDOWN_ANSWER_MS);
	}
	for (struct exec *e = inflight_next(NULL); e; e = inflight_next(e)) {
		if (e->state != EXEC_DYING && e->state != EXEC_STUCK)
			exec_life_step(e, EXEC_ON_KILL, &note);
	}
	settle();
}

static void grace_is_over(struct loop_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
	kill_live();
}

static void tell_idle(void)
{
	void (*idle)(void *owner) = self.idle;

	self.idle = NULL;
	loop_timer_stop(self.loop, &self.idle_timer);
	loop_timer_stop(self.loop, &self.last_timer);
	if (idle)
		idle(self.idle_owner);
}

static void is_idle(struct loop_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
	if (nothing_is_owed())
		tell_idle();
}

static void waits_no_longer(struct loop_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
	tell_idle();
}

void execs_stream_lost(void)
{
	if (!nothing_is_owed())
		log_info("stream lost with execs in flight", LOG_U64("running", self.counters.running),
			 LOG_U64("waiting", queue_count()));
	for (struct exec *e = inflight_next(NULL); e; e = inflight_next(e))
		exec_life_step(e, EXEC_ON_LOST, NULL);
	if (self.going_away && !self.shutting_down) {
		loop_timer_stop(self.loop, &self.kill_timer);
		loop_timer_stop(self.loop, &self.idle_timer);
		self.idle = NULL;
	}
	self.going_away = false;
	settle();
}

void execs_goaway(void (*idle)(void *owner), void *owner)
{
	if (self.shutting_down || self.going_away)
		return;
	self.going_away = true;
	self.idle = idle;
	self.idle_owner = owner;
	refuse_waiting(REFUSAL_GOING_AWAY);
	loop_timer_set(self.loop, &self.kill_timer, clock_now_ms() + LIMIT_GOAWAY_MS);
	settle();
}

void execs_shutdown(uint32_t drain_ms, void (*idle)(void *owner), void *owner)
{
	if (self.killed)
		return;
	if (!self.shutting_down) {
		self.shutting_down = true;
		self.idle = idle;
		self.idle_owner = owner;
		refuse_waiting(REFUSAL_SHUTTING_DOWN);
	}
	if (drain_ms == 0) {
		kill_live();
		return;
	}
	loop_timer_set(self.loop, &self.kill_timer, clock_now_ms() + drain_ms);
	settle();
}

const struct execs_counters *execs_counters(void)
{
	self.counters.waiting = queue_count();
	self.counters.cached = cache_count();
	return &self.counters;
}

int execs_init(struct loop *loop, const struct config *config)
{
	memset(&self, 0, sizeof self);
	self.loop = loop;
	self.config = config;
	self.kill_timer.fire = grace_is_over;
	self.last_timer.fire = waits_no_longer;
	self.idle_timer.fire = is_idle;
	self.room_timer.fire = room_is_made;
	exec_life_init(loop, &self.counters, expired);
	return 0;
}
