/* The loss of the stream (contract.md 9 and 10), and ids that come again after it. */
#include "execd/cache.h"
#include "tests/unit/execd/fakes.h"

static void start(uint64_t id)
{
	exec(id, 1, .command = "true");
	slot_says(SLOT_STARTED, 0);
	forget_trace();
}

Test(lost, kills_what_runs_drops_what_waits_and_owes_no_frame)
{
	begin(2);
	start(1);
	exec(2, 1, .len = 100000);
	exec_short(3);
	forget_trace();
	execs_stream_lost();
	expect("kill 0;release 1;");
	cr_assert(execs_counters()->running == 1 && execs_counters()->waiting == 0);
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	is_at_rest();
	cr_assert_eq(execs_counters()->cached, 0);
	cr_assert_eq(execs_counters()->lost, 3);
	/* They may all run when they come again. */
	exec_short(1);
	expect("admitted 1;run 0 id=1 4/4;");
}

Test(lost, after_the_exit_the_outcome_stays_and_is_truncated)
{
	begin(1);
	start(1);
	slot_exits(0, 3);
	execs_stream_lost();
	expect("kill 0;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	is_at_rest();
	exec_short(1);
	expect("replay 1 exit:3 truncated;");
}

/* Exec 1 is aborted, its leader is dead, others may live, and its stream is gone. */
static void abort_and_lose(bool leader_dead)
{
	start(1);
	execs_on_abort(1);
	if (leader_dead)
		slot_is_killed(0);
	execs_stream_lost();
	expect("kill 0;");
}

Test(lost, a_replay_waits_for_the_proof_like_any_other)
{
	for (int leader_dead = 0; leader_dead < 2; leader_dead++) {
		if (leader_dead == 0)
			begin(2);
		abort_and_lose(leader_dead);
		exec_short(1);
		exec_short(1);
		expect("admitted 1;duplicate 1;");
		if (!leader_dead)
			slot_is_killed(0);
		expect("");
		slot_says(SLOT_EMPTY, 0);
		expect("release 0;ended 1 abort:0 nothing truncated;");
		drained(1);
		is_at_rest();
		exec_short(1);
		expect("replay 1 abort:0 truncated;");
		cache_clear();
	}
	cr_assert_eq(execs_counters()->replayed, 4);
	cr_assert_eq(execs_counters()->started, 2, "nothing ran again");
}

Test(lost, a_replay_waits_no_longer_than_its_own_answer_would_have)
{
	begin(2);
	abort_and_lose(true);
	exec_short(1);
	expect("admitted 1;");
	pass_ms(LIMIT_KILL_PROOF_MS);
	expect("abandon 0;ended 1 abort:0 nothing truncated;");
	drained(1);
	exec_short(1);
	expect("replay 1 abort:0 truncated;");
	slot_says(SLOT_EMPTY, 0);
	is_at_rest();
}

Test(lost, other_work_runs_once_what_was_aborted_is_proven_dead)
{
	begin(2);
	abort_and_lose(true);
	exec(1, 2, .command = "true");
	expect("admitted 1;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;fetch 1@0;");
}

/* It never ran and has been answered: that answer waits for nobody's proof. */
Test(lost, a_heir_that_was_aborted_is_replayed_at_once)
{
	begin(2);
	abort_and_lose(true);
	exec_short(1);
	execs_on_abort(1);
	drained(1);
	exec_short(1);
	expect("admitted 1;ended 1 abort:0 nothing;replay 1 abort:0;");
	slot_says(SLOT_EMPTY, 0);
	is_at_rest();
}

Test(lost, a_heir_that_is_lost_too_leaves_what_is_known)
{
	begin(2);
	abort_and_lose(false);
	exec_short(1);
	execs_stream_lost();
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	exec_short(1);
	expect("replay 1 abort:0 truncated;");
}

Test(lost, an_exit_that_the_kill_found_is_cached_and_truncated)
{
	begin(1);
	start(1);
	execs_stream_lost();
	slot_exits(0, 3);
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	exec_short(1);
	expect("replay 1 exit:3 truncated;");
}

Test(lost, under_an_abort_or_a_timeout_the_reason_is_cached_and_truncated)
{
	begin(1);
	start(1);
	execs_on_abort(1);
	execs_stream_lost();
	expect("kill 0;");
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	exec_short(1);
	expect("replay 1 abort:0 truncated;");
}

Test(lost, before_drained_the_replay_is_truncated)
{
	begin(1);
	start(1);
	slot_exits(0, 3);
	slot_says(SLOT_EMPTY, 0);
	execs_stream_lost();
	forget_trace();
	is_at_rest();
	exec_short(1);
	expect("replay 1 exit:3 truncated;");
}

Test(lost, keep_kills_what_is_left_of_an_exec_in_flight_but_not_the_minded)
{
	begin(2);
	start(1);
	slot_exits(0, 3);
	slot_says(SLOT_MINDING, 0, .count = 1);
	drained(1);
	exec_short(2);
	slot_says(SLOT_STARTED, 1);
	slot_exits(1, 0);
	slot_says(SLOT_MINDING, 1, .count = 1);
	forget_trace();
	execs_stream_lost();
	expect("kill 1;");
	slot_says(SLOT_EMPTY, 1);
	expect("release 1;");
	is_at_rest();
}

Test(lost, an_id_that_comes_again_waits_for_the_proof_and_lets_others_pass)
{
	begin(3);
	start(1);
	execs_stream_lost();
	forget_trace();
	exec_short(1);
	exec(1, 2, .command = "true");
	exec_short(1);
	exec_short(2);
	expect("admitted 1;refused 1 3;duplicate 1;admitted 2;fetch 2@0;");
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;fetch 1@0;");
}

Test(lost, an_id_that_comes_again_is_refused_when_the_proof_does_not_come)
{
	begin(2);
	start(1);
	execs_stream_lost();
	pass_ms(LIMIT_KILL_PROOF_MS - 1);
	exec(1, 2, .command = "true");
	expect("kill 0;admitted 1;");
	pass_ms(1);
	expect("abandon 0;ended 1 refused:11 nothing;");
	drained(1);
	exec_short(1);
	expect("refused 1 11;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	is_at_rest();
	exec_short(1);
	expect("admitted 1;run 0 id=1 4/4;");
}

Test(lost, twice_while_dying_changes_nothing)
{
	begin(1);
	start(1);
	execs_stream_lost();
	exec_short(1);
	forget_trace();
	execs_stream_lost();
	execs_stream_lost();
	expect("");
	cr_assert_eq(execs_counters()->running, 1);
	pass_ms(LIMIT_KILL_PROOF_MS);
	execs_stream_lost();
	expect("abandon 0;");
	slot_says(SLOT_EMPTY, 0);
	is_at_rest();
}

/* The old run's own exit comes after the answer to the new one, and must not take its place. */
Test(lost, what_a_dying_run_comes_to_is_no_answer_once_its_id_came_again)
{
	begin(2);
	start(1);
	execs_stream_lost();
	exec(1, 2, .command = "true");
	execs_on_abort(1);
	drained(1);
	slot_exits(0, 3);
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	exec(1, 2, .command = "true");
	expect("replay 1 abort:0;");
}
