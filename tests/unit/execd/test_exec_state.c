/* The life table: first its shape, then each cell driven through the real actions. */
#include "execd/cache.h"
#include "execd/exec_life.h"
#include "tests/unit/execd/fakes.h"

#define ALL_CELLS                                                                                            \
	for (enum exec_state s = EXEC_WAITING; s < EXEC_STATES; s++)                                         \
		for (enum exec_event ev = 0; ev < EXEC_EVENTS; ev++)

static bool has_slot(enum exec_state s)
{
	return s != EXEC_WAITING && s != EXEC_ENDED && s != EXEC_FREE;
}

static bool is_answered(enum exec_state s)
{
	return s >= EXEC_ENDED && s <= EXEC_ENDED_STUCK;
}

static bool nobody_waits(enum exec_state s)
{
	return s == EXEC_DYING || s == EXEC_STUCK;
}

Test(exec_state, every_cell_is_explicit_and_named)
{
	ALL_CELLS
	{
		struct exec_step step = exec_state_step(s, ev);

		cr_assert(step.action >= EXEC_DO_NOTHING && step.action < EXEC_ACTIONS, "%s × %s",
			  exec_state_name(s), exec_event_name(ev));
		cr_assert((unsigned)step.next < EXEC_STATES);
		cr_assert(exec_state_name(s) && exec_event_name(ev));
	}
	cr_assert(!exec_state_name(EXEC_STATES) && !exec_event_name(EXEC_EVENTS));
}

Test(exec_state, what_must_not_come_changes_nothing)
{
	ALL_CELLS
	{
		struct exec_step step = exec_state_step(s, ev);

		if (step.action == EXEC_DO_STRAY || step.action == EXEC_DO_VIOLATION ||
		    step.action == EXEC_DO_NOTHING)
			cr_assert_eq(step.next, s, "%s × %s", exec_state_name(s), exec_event_name(ev));
	}
}

Test(exec_state, drained_belongs_to_what_is_answered_and_only_there)
{
	for (enum exec_state s = EXEC_WAITING; s < EXEC_STATES; s++) {
		bool violation = exec_state_step(s, EXEC_ON_DRAINED).action == EXEC_DO_VIOLATION;

		cr_assert_eq(violation, !is_answered(s), "%s", exec_state_name(s));
	}
}

Test(exec_state, a_lost_stream_leaves_nothing_that_netd_is_owed)
{
	for (enum exec_state s = EXEC_WAITING; s < EXEC_STATES; s++) {
		enum exec_state next = exec_state_step(s, EXEC_ON_LOST).next;

		cr_assert(next == EXEC_FREE || nobody_waits(next), "%s", exec_state_name(s));
	}
}

/* No way from an answer back to where an answer is owed, and none out of the dying but to the end. */
Test(exec_state, no_exec_is_answered_twice)
{
	ALL_CELLS
	{
		enum exec_state next = exec_state_step(s, ev).next;

		if (is_answered(s))
			cr_assert(is_answered(next) || nobody_waits(next) || next == EXEC_FREE);
		if (nobody_waits(s))
			cr_assert(nobody_waits(next) || next == EXEC_FREE);
	}
}

/* A slot is let go only by its proof, its failed start, its minding, or because nothing of it ran. */
Test(exec_state, no_slot_is_forgotten)
{
	ALL_CELLS
	{
		struct exec_step step = exec_state_step(s, ev);

		if (!has_slot(s) || has_slot(step.next))
			continue;
		cr_assert(ev == EXEC_ON_EMPTY || ev == EXEC_ON_START_FAILED || ev == EXEC_ON_RUN_FAILED ||
			      ev == EXEC_ON_UNREAD || step.action == EXEC_DO_FINISH_MIND ||
			      s == EXEC_FETCHING,
			  "%s × %s", exec_state_name(s), exec_event_name(ev));
	}
}

Test(exec_state, an_abort_reaches_every_exec_that_still_has_something_to_lose)
{
	for (enum exec_state s = EXEC_WAITING; s <= EXEC_LINGERING; s++)
		cr_assert_neq(exec_state_step(s, EXEC_ON_ABORT).next, s, "%s", exec_state_name(s));
	cr_assert_eq(exec_state_step(EXEC_ENDED_KEEP, EXEC_ON_ABORT).next, EXEC_ENDED_DYING);
}

/* --- driven --- */

/* Brings exec 1 into the state, on slot 0, from rest. */
static struct exec *bring_into(enum exec_state s)
{
	struct exec *e;

	if (s == EXEC_WAITING) {
		fake.slots[0] = FAKE_TAKEN;
		exec(1, 1, .len = 100);
		fake.slots[0] = FAKE_IDLE;
		return inflight_find(1);
	}
	exec(1, 1, .len = 100);
	e = inflight_find(1);
	if (s == EXEC_FETCHING)
		return e;
	command_comes(1, 0, s == EXEC_LOADING ? 40 : 100);
	if (s == EXEC_LOADING)
		return e;
	slot_says(SLOT_STARTED, 0);
	if (s == EXEC_RUNNING)
		return e;
	if (s == EXEC_KILLING) {
		execs_on_abort(1);
		return e;
	}
	if (s == EXEC_DYING || s == EXEC_STUCK) {
		execs_stream_lost();
		if (s == EXEC_STUCK)
			pass_ms(LIMIT_KILL_PROOF_MS);
		return e;
	}
	slot_exits(0, 0);
	if (s == EXEC_EXITED)
		return e;
	if (s == EXEC_ENDED) {
		slot_says(SLOT_EMPTY, 0);
		return e;
	}
	if (s == EXEC_ENDED_STUCK) {
		pass_ms(LIMIT_KILL_PROOF_MS);
		return e;
	}
	fake.config.background_kill = s == EXEC_LINGERING;
	slot_says(SLOT_MINDING, 0, .count = 1);
	if (s == EXEC_ENDED_DYING)
		execs_on_abort(1);
	return e;
}

/* The place and the slot that TURN brings along, as execs.c would give them. */
static void give_place(struct exec *e)
{
	fake.slots[0] = FAKE_TAKEN;
	inflight_set_slot(e, 0);
}

Test(exec_state, every_cell_does_what_it_says_and_can_be_left_again, .timeout = 60)
{
	size_t before;

	begin(1);
	fake.tracing = false;
	before = open_descriptors();
	ALL_CELLS
	{
		struct exec_step step = exec_state_step(s, ev);
		struct slot_event slot = {
		    .wait_status = 9, .by_kill = true, .value = OUTCOME_START_VALUE(START_EXEC, 2)};
		struct channel_drained d = {0};
		uint8_t bytes[60] = {0};
		struct exec_note note = {
		    .slot = &slot,
		    .bytes = bytes,
		    .size = ev == EXEC_ON_PIECE || ev == EXEC_ON_TURN_WHOLE ? sizeof bytes : 0,
		    .outcome = {OUTCOME_START_FAILED, OUTCOME_START_VALUE(START_SLOT, 5)},
		    .drained = &d,
		};
		struct exec *e = bring_into(s);
		uint32_t ended = (uint32_t)execs_counters()->ended;

		cr_assert(e && e->state == s, "%s", exec_state_name(s));
		if (s == EXEC_WAITING && has_slot(step.next))
			give_place(e);
		if (ev == EXEC_ON_KNOWN)
			e->outcome = (struct outcome){OUTCOME_EXITED, 0};
		if (ev == EXEC_ON_TIMER)
			loop_timer_stop(&fake.loop, &e->timer);
		cr_assert_eq(exec_life_step(e, ev, &note), step.action == EXEC_DO_VIOLATION ? -EPROTO : 0);
		cr_assert_eq(e->state, step.next, "%s × %s", exec_state_name(s), exec_event_name(ev));
		cr_assert_leq(execs_counters()->ended, ended + 1);
		cr_assert_eq(has_slot(e->state), e->slot != INFLIGHT_NO_SLOT);

		/* Whatever it was, a lost stream and a proof bring everything back to rest. */
		execs_stream_lost();
		if (inflight_of_slot(0))
			slot_says(SLOT_EMPTY, 0);
		fake.slots[0] = FAKE_IDLE;
		is_at_rest();
		cr_assert_eq(open_descriptors(), before, "%s × %s", exec_state_name(s), exec_event_name(ev));
		cache_clear();
	}
}
