/* SANDBOX_BACKGROUND=kill: what a leader leaves behind has its time in the pipes before it is killed
 * (design.md "The end of an exec"). */
#include "tests/unit/execd/fakes.h"

static void begin_kill(uint32_t max_concurrent)
{
	begin(max_concurrent);
	fake.config.background_kill = true;
}

/* Exec 1 has exited with 3, after a second, and others live. */
static void leave(uint32_t timeout_s)
{
	exec(1, 1, .command = "true", .timeout_s = timeout_s);
	slot_says(SLOT_STARTED, 0);
	pass_ms(1000);
	forget_trace();
	slot_exits(0, 3);
	slot_says(SLOT_MINDING, 0, .count = 2);
	expect("left 1;");
}

Test(linger, what_is_left_is_killed_once_the_pipes_are_quiet)
{
	begin_kill(1);
	leave(0);
	pass_ms(3600000);
	expect("");
	cr_assert_eq(quiet_comes(1), 0);
	expect("kill 0;");
	slot_says(SLOT_STILL_ALIVE, 0, .count = 1);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:3 empty;");
	drained(1);
	is_at_rest();
	exec_short(1);
	expect("replay 1 exit:3;");
}

Test(linger, a_leader_that_leaves_nobody_costs_no_record)
{
	begin_kill(1);
	exec_short(1);
	slot_says(SLOT_STARTED, 0);
	forget_trace();
	slot_exits(0, 3);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:3 empty;");
	cr_assert_eq(quiet_comes(1), -EPROTO, "nothing was asked");
}

Test(linger, what_was_left_may_end_by_itself_and_quiet_may_cross_the_end)
{
	begin_kill(1);
	leave(0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:3 empty;");
	cr_assert_eq(quiet_comes(1), 0);
	expect("");
	cr_assert_eq(quiet_comes(1), -EPROTO, "once");
	drained(1);
	is_at_rest();
	cr_assert_eq(quiet_comes(1), -EPROTO);
}

Test(linger, an_abort_kills_at_once_and_the_outcome_stays)
{
	begin_kill(1);
	leave(0);
	execs_on_abort(1);
	expect("kill 0;");
	cr_assert_eq(quiet_comes(1), 0, "it crossed the abort");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:3 killed;");
	drained(1);
	is_at_rest();
}

/* A relay that has shut its window stops the clocks of the quiet, not this one. */
Test(linger, the_timeout_goes_on_counting_and_the_outcome_stays)
{
	begin_kill(1);
	leave(5);
	pass_ms(3999);
	expect("");
	pass_ms(1);
	expect("kill 0;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:3 killed;");
	cr_assert_eq(execs_counters()->timeouts, 0);
}

Test(linger, a_timeout_that_ran_out_before_the_slot_had_looked_kills_at_once)
{
	begin_kill(1);
	exec(1, 1, .command = "true", .timeout_s = 1);
	slot_says(SLOT_STARTED, 0);
	pass_ms(999);
	slot_exits(0, 3);
	pass_ms(500);
	forget_trace();
	slot_says(SLOT_MINDING, 0, .count = 1);
	pass_ms(0);
	expect("left 1;kill 0;");
}

Test(linger, a_lost_stream_kills_at_once_and_the_outcome_is_cached)
{
	begin_kill(1);
	leave(0);
	execs_stream_lost();
	expect("kill 0;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	is_at_rest();
	exec_short(1);
	expect("replay 1 exit:3 truncated;");
}

Test(linger, a_shutdown_kills_at_once)
{
	begin_kill(1);
	leave(0);
	execs_shutdown(0, on_idle, NULL);
	expect("kill 0;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:3 killed;");
	drained(1);
	pass_ms(0);
	expect("idle;");
}

Test(linger, a_slot_that_dies_changes_no_outcome)
{
	begin_kill(1);
	leave(0);
	slot_says(SLOT_DIED, 0);
	expect("");
	cr_assert_eq(quiet_comes(1), 0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:3 empty;");
}

Test(linger, a_kill_without_proof_has_its_deadline_from_the_quiet_on)
{
	begin_kill(1);
	leave(0);
	pass_ms(60000);
	quiet_comes(1);
	pass_ms(LIMIT_KILL_PROOF_MS - 1);
	expect("kill 0;");
	pass_ms(1);
	expect("abandon 0;ended 1 exit:3 killed;");
}

Test(linger, a_full_channel_leaves_only_what_still_matters)
{
	begin_kill(1);
	exec_short(1);
	slot_says(SLOT_STARTED, 0);
	fake.full = true;
	slot_exits(0, 3);
	slot_says(SLOT_MINDING, 0, .count = 1);
	forget_trace();
	channel_takes_again();
	expect("left 1;");
	fake.full = true;
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	channel_takes_again();
	expect("ended 1 exit:3 empty;");
	drained(1);
	/* The end comes before there was room for the first. */
	exec_short(2);
	slot_says(SLOT_STARTED, 0);
	fake.full = true;
	slot_exits(0, 4);
	slot_says(SLOT_MINDING, 0, .count = 1);
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	channel_takes_again();
	expect("ended 2 exit:4 empty;");
	cr_assert_eq(quiet_comes(2), -EPROTO);
}

/* netd never had the pipes, so there is nothing to be quiet. */
Test(linger, without_pipes_there_is_nothing_to_wait_for)
{
	begin_kill(1);
	exec_short(1);
	fake.full = true;
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 3);
	fake.started_error = -ETOOMANYREFS;
	forget_trace();
	channel_takes_again();
	expect("started 1;");
	slot_says(SLOT_MINDING, 0, .count = 1);
	expect("kill 0;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:3 nothing;");
}
