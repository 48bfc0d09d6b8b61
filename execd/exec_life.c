#include "execd/exec_life.h"

#include "common/clock.h"
#include "common/log.h"
#include "execd/exec_outcome.h"
#include "execd/exec_owed.h"
#include "execd/exec_report.h"
#include "execd/exec_start.h"
#include "execd/queue.h"

#include <errno.h>

static struct {
	struct loop *loop;
	struct execs_counters *counters;
	void (*expired)(struct loop_timer *timer, uint64_t now_ms);
	uint32_t proof_ms;
} life;

static const struct slot_event no_slot_event;
static const struct exec_note no_note;

/* Never NULL: a slot's events bring their own, all others have none. */
static const struct slot_event *slot_of(const struct exec_note *note)
{
	return note->slot ? note->slot : &no_slot_event;
}

void exec_life_init(struct loop *loop, struct execs_counters *counters,
		    void (*expired)(struct loop_timer *timer, uint64_t now_ms))
{
	life.loop = loop;
	life.counters = counters;
	life.expired = expired;
	life.proof_ms = LIMIT_KILL_PROOF_MS;
	exec_start_init();
	exec_outcome_init(counters);
}

/* --- small steps --- */

/* As late as no busy machine should make a timer. */
#define PROOF_LATE_MS 1000u

static void set_timer(struct exec *e, uint64_t in_ms)
{
	e->timer.owner = e;
	e->timer.fire = life.expired;
	loop_timer_set(life.loop, &e->timer, clock_now_ms() + in_ms);
}

static void release_slot(struct exec *e)
{
	int slot = e->slot;

	if (slot == INFLIGHT_NO_SLOT)
		return;
	loop_timer_stop(life.loop, &e->timer);
	inflight_set_slot(e, INFLIGHT_NO_SLOT);
	slots_release((unsigned)slot);
}

static void owe(struct exec *e, enum exec_owed what)
{
	e->owed |= (uint8_t)what;
	exec_owed_send(e);
}

/* The terminal frame's turn. Pipes that netd was never promised are of no use any more. */
static void answer(struct exec *e)
{
	e->owed &= (uint8_t) ~(EXEC_OWES_FETCH | EXEC_OWES_LEFT);
	if (!e->announced)
		inflight_close_pipes(e);
	owe(e, EXEC_OWES_ENDED);
}

static void report(struct exec *e, const struct exec_note *note)
{
	if (e->reported)
		return;
	e->reported = true;
	exec_report_end(e, note->drained);
}

/* The stream is gone: nothing is owed, and whoever asks again must be told that output is missing. */
static void cut(struct exec *e)
{
	e->owed = 0;
	e->fetching = false;
	e->announced = false;
	inflight_close_pipes(e);
	exec_outcome_cut(e);
}

static void give_place_back(struct exec *e)
{
	if (e->placed)
		life.counters->running--;
	e->placed = false;
}

static void forget(struct exec *e)
{
	loop_timer_stop(life.loop, &e->timer);
	give_place_back(e);
	inflight_free(e);
}

/* --- starting --- */

/* netd keeps command and stdin until it is told of the start: all can be had once more. */
static void begin_again(struct exec *e)
{
	e->tries++;
	e->given = 0;
	e->owed = 0;
	inflight_close_pipes(e);
	release_slot(e);
	give_place_back(e);
	queue_push_first(e);
	exec_report_again(e);
}

static void announce(struct exec *e)
{
	if (e->pipes[0] < 0 || e->started_ms != 0)
		return;
	e->started_ms = clock_now_ms();
	e->announced = true;
	if (e->reason.kind == OUTCOME_REFUSED) /* it ran after all */
		e->reason = (struct outcome){OUTCOME_ABORTED, 0};
	life.counters->started++;
	exec_report_start(e);
	owe(e, EXEC_OWES_STARTED);
}

/* --- ending --- */

static void kill_below(struct exec *e)
{
	e->owed &= (uint8_t)~EXEC_OWES_LEFT;
	set_timer(e, life.proof_ms);
	slots_kill((unsigned)e->slot);
}

static void kill_all_of_it(struct exec *e, enum exec_event event, const struct exec_note *note)
{
	if (event == EXEC_ON_TIMER)
		exec_outcome_give_reason(e, OUTCOME_TIMEOUT, e->timeout_s);
	else if (event == EXEC_ON_LOST)
		exec_outcome_give_reason(e, OUTCOME_LOST, 0);
	else if (event == EXEC_ON_BROKEN || (event == EXEC_ON_KILL && e->started_ms == 0))
		exec_outcome_give_reason(e, note->outcome.kind, note->outcome.value);
	else
		exec_outcome_give_reason(e, OUTCOME_ABORTED, 0);
	e->killed = true;
	kill_below(e);
}

/* Its time in the pipes ends with timeout_s at the latest. */
static void linger(struct exec *e)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t until_ms = e->started_ms + (uint64_t)e->timeout_s * 1000u;

	if (!e->announced) { /* netd never had the pipes */
		exec_life_step(e, EXEC_ON_QUIET, NULL);
		return;
	}
	loop_timer_stop(life.loop, &e->timer);
	if (e->timeout_s > 0)
		set_timer(e, until_ms > now_ms ? until_ms - now_ms : 0);
	owe(e, EXEC_OWES_LEFT);
}

/* bash may run before its slot has said so, and its first act may be to stop or kill that slot. So a slot
 * that had the whole command counts as one that ran it: it must not run again, and what it wrote is
 * delivered. */
static void slot_gone(struct exec *e)
{
	if (e->given == e->command_len)
		announce(e);
}

static void slot_lost(struct exec *e)
{
	if (e->reason.kind == 0)
		e->why = "slot";
	slot_gone(e);
	if (e->started_ms == 0)
		exec_outcome_give_reason(e, OUTCOME_START_FAILED,
					 OUTCOME_START_VALUE(START_SLOT, ECONNRESET));
	exec_outcome_by_reason(e);
	set_timer(e, life.proof_ms);
}

/* A new run of this id, sent after the stream was lost, waited for the proof that will not come. */
static void refuse_heir(const struct exec *e)
{
	struct exec *heir = inflight_find(e->req_id);
	struct exec_note note = {.outcome = {OUTCOME_REFUSED, REFUSAL_STILL_DYING}};

	if (heir && heir != e && !exec_life_recall(heir))
		exec_life_step(heir, EXEC_ON_REFUSE, &note);
}

static void abandon(struct exec *e)
{
	log_error("kill not proven", LOG_U64("req_id", e->req_id), LOG_I64("slot", e->slot),
		  e->alive == SLOT_COUNT_UNKNOWN ? LOG_STR("alive", "unknown") : LOG_U64("alive", e->alive),
		  LOG_U64("after_ms", life.proof_ms));
	life.counters->unproven++;
	slots_abandon((unsigned)e->slot);
	refuse_heir(e);
}

/* It never had a process; whatever keeps a slot here is swept by the pool. */
static void answer_unstarted(struct exec *e, enum exec_event event, const struct exec_note *note)
{
	if (event == EXEC_ON_REFUSE || event == EXEC_ON_RUN_FAILED || event == EXEC_ON_KILL)
		exec_outcome_give_reason(e, note->outcome.kind, note->outcome.value);
	else if (event == EXEC_ON_START_FAILED)
		exec_outcome_give_reason(e, OUTCOME_START_FAILED, slot_of(note)->value);
	else if (event == EXEC_ON_DIED)
		slot_lost(e);
	exec_outcome_by_reason(e);
	answer(e);
}

static void replay(struct exec *e)
{
	e->reported = true;
	life.counters->replayed++;
	exec_report_recalled(e);
	answer(e);
}

static void finish(struct exec *e, const struct exec_note *note)
{
	if (note->truncated)
		exec_outcome_cut(e);
	report(e, note);
}

static void mind(struct exec *e)
{
	unsigned slot = (unsigned)e->slot;

	inflight_set_slot(e, INFLIGHT_NO_SLOT);
	slots_mind(slot);
}

/* --- the table's actions --- */

static void act(struct exec *e, enum exec_action action, enum exec_event event, const struct exec_note *note)
{
	switch (action) {
	case EXEC_DO_FETCH:
		if (!e->fetching && e->given < e->command_len)
			owe(e, EXEC_OWES_FETCH);
		break;
	case EXEC_DO_RUN:
		exec_start_run(e, note);
		break;
	case EXEC_DO_AGAIN:
		begin_again(e);
		break;
	case EXEC_DO_FEED:
		exec_start_feed(e, note);
		break;
	case EXEC_DO_ANNOUNCE:
		if (e->timeout_s > 0)
			set_timer(e, (uint64_t)e->timeout_s * 1000u);
		announce(e);
		break;
	case EXEC_DO_ANNOUNCE_LATE:
		announce(e);
		break;
	case EXEC_DO_GIVE_BACK:
		release_slot(e);
		answer_unstarted(e, event, note);
		break;
	case EXEC_DO_ANSWER:
		answer_unstarted(e, event, note);
		break;
	case EXEC_DO_REPLAY:
		replay(e);
		break;
	case EXEC_DO_EXITED:
		set_timer(e, life.proof_ms);
		exec_outcome_by_status(e, slot_of(note));
		break;
	case EXEC_DO_DECIDE:
		exec_outcome_by_status(e, slot_of(note));
		break;
	case EXEC_DO_KILL:
		kill_all_of_it(e, event, note);
		break;
	case EXEC_DO_SLOT_LOST:
		slot_lost(e);
		break;
	case EXEC_DO_SLOT_GONE:
		slot_gone(e);
		break;
	case EXEC_DO_PROVEN:
		release_slot(e);
		exec_outcome_by_reason(e);
		answer(e);
		break;
	case EXEC_DO_LEAVE:
		loop_timer_stop(life.loop, &e->timer);
		e->kept = true;
		answer(e);
		break;
	case EXEC_DO_LINGER:
		linger(e);
		break;
	case EXEC_DO_KILL_REST:
		kill_below(e);
		break;
	case EXEC_DO_UNPROVEN:
		e->killed = true;
		exec_outcome_by_reason(e);
		abandon(e);
		answer(e);
		break;
	case EXEC_DO_ABANDON:
		exec_outcome_by_reason(e);
		abandon(e);
		break;
	case EXEC_DO_RELEASE:
		exec_outcome_by_reason(e);
		release_slot(e);
		break;
	case EXEC_DO_COUNT:
		e->alive = slot_of(note)->count;
		break;
	case EXEC_DO_FINISH_MIND:
		mind(e);
		finish(e, note);
		break;
	case EXEC_DO_FINISH:
		finish(e, note);
		break;
	case EXEC_DO_DROP:
		release_slot(e);
		e->reported = true;
		life.counters->lost++;
		break;
	case EXEC_DO_CUT:
		cut(e);
		break;
	case EXEC_DO_CUT_KILL:
		cut(e);
		kill_all_of_it(e, event, note);
		break;
	case EXEC_DO_STRAY:
		exec_report_stray(e, event);
		break;
	case EXEC_DO_NOTHING:
	case EXEC_DO_VIOLATION:
	case EXEC_ACTIONS:
		break;
	}
}

int exec_life_step(struct exec *exec, enum exec_event event, const struct exec_note *note)
{
	struct exec_step step = exec_state_step(exec->state, event);

	if (step.action == EXEC_DO_VIOLATION)
		return -EPROTO;
	if (!note)
		note = &no_note;
	if (note->why && exec->reason.kind == 0)
		exec->why = note->why;
	if (exec->state == EXEC_WAITING && step.next != EXEC_WAITING)
		queue_remove(exec);
	if (step.next != EXEC_FREE)
		exec->state = step.next;
	act(exec, step.action, event, note);
	/* Nothing is owed and another slot stands in for its own: it takes nobody's turn. */
	if (step.next == EXEC_STUCK && slots_replaced((unsigned)exec->slot))
		give_place_back(exec);
	if (step.next == EXEC_FREE) {
		report(exec, note);
		forget(exec);
	}
	return 0;
}

bool exec_life_recall(struct exec *exec)
{
	if (!exec_outcome_recall(exec))
		return false;
	exec_life_step(exec, EXEC_ON_KNOWN, NULL);
	return true;
}

bool exec_life_may_run_again(const struct exec *exec)
{
	return exec->state == EXEC_LOADING && !exec->fetching && exec->tries < LIMIT_SLOT_TRIES;
}

void exec_life_slot_unread(struct exec *exec)
{
	const struct slot_event failed = {.value = OUTCOME_START_VALUE(START_SLOT, ECONNRESET)};

	exec_life_step(exec, exec_life_may_run_again(exec) ? EXEC_ON_UNREAD : EXEC_ON_START_FAILED,
		       &(struct exec_note){.slot = &failed});
}

bool exec_life_put_off(struct exec *e, uint64_t now_ms)
{
	bool proof = e->state != EXEC_RUNNING && e->state != EXEC_LINGERING;

	if (!proof || now_ms - e->timer.at_ms < PROOF_LATE_MS)
		return false;
	set_timer(e, PROOF_LATE_MS);
	return true;
}

void exec_life_shorten_proof(uint32_t proof_ms)
{
	uint64_t latest = clock_now_ms() + proof_ms;

	life.proof_ms = proof_ms;
	for (struct exec *e = inflight_next(NULL); e; e = inflight_next(e)) {
		if (e->timer.armed && e->state != EXEC_RUNNING && e->timer.at_ms > latest)
			loop_timer_set(life.loop, &e->timer, latest);
	}
}
