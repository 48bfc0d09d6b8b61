/* GOAWAY and shutdown: contract.md 12, design.md "The end of an exec". */
#include "tests/unit/execd/fakes.h"

static void start(uint64_t id, unsigned slot)
{
	exec_short(id);
	slot_says(SLOT_STARTED, slot);
	forget_trace();
}

static void end(uint64_t id, unsigned slot)
{
	slot_exits(slot, 0);
	slot_says(SLOT_EMPTY, slot);
	drained(id);
}

Test(goaway, refuses_what_waits_and_what_comes_and_lets_the_rest_finish)
{
	begin(1);
	start(1, 0);
	exec_short(2);
	forget_trace();
	execs_goaway(on_idle, NULL);
	exec_short(3);
	expect("ended 2 refused:10 nothing;refused 3 10;");
	drained(2);
	pass_ms(LIMIT_GOAWAY_MS - 1);
	expect("");
	end(1, 0);
	forget_trace();
	pass_ms(0);
	expect("idle;");
	pass_ms(LIMIT_GOAWAY_MS);
	expect("");
	is_at_rest();
}

Test(goaway, kills_after_its_grace)
{
	begin(1);
	start(1, 0);
	execs_goaway(on_idle, NULL);
	pass_ms(LIMIT_GOAWAY_MS - 1);
	expect("");
	pass_ms(1);
	expect("kill 0;");
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 abort:0 killed;");
	drained(1);
	pass_ms(0);
	expect("idle;");
}

/* What never ran is refused, and may run when it comes again. */
Test(goaway, refuses_what_has_not_started_at_the_end_of_its_grace)
{
	begin(3);
	exec(1, 1, .len = 100000);
	exec_short(2);
	exec_short(3);
	execs_goaway(on_idle, NULL);
	fake.config.max_concurrent = 0; /* there is no other slot for it */
	slot_says(SLOT_UNREAD, 2);
	cr_assert_eq(execs_counters()->waiting, 1);
	forget_trace();
	pass_ms(LIMIT_GOAWAY_MS);
	slot_says(SLOT_EMPTY, 1);
	cr_assert_eq(execs_counters()->waiting, 0);
	expect("release 0;ended 1 refused:10 nothing;kill 1;ended 3 refused:10 nothing;"
	       "release 1;ended 2 refused:10 nothing;");
	cr_assert_eq(execs_counters()->cached, 0);
}

Test(goaway, kills_what_starts_at_the_end_of_its_grace)
{
	begin(1);
	exec_short(1);
	execs_goaway(on_idle, NULL);
	pass_ms(LIMIT_GOAWAY_MS);
	forget_trace();
	slot_says(SLOT_STARTED, 0); /* it crossed the kill */
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	expect("started 1;release 0;ended 1 abort:0 killed;");
	cr_assert_eq(execs_counters()->cached, 1);
}

Test(goaway, is_idle_at_once_when_nothing_is_in_flight)
{
	begin(1);
	execs_goaway(on_idle, NULL);
	expect("");
	pass_ms(0);
	expect("idle;");
}

Test(goaway, still_answers_duplicates_and_replays)
{
	begin(1);
	run_to_end(1, 1, 3);
	start(2, 0);
	execs_goaway(on_idle, NULL);
	exec_short(1);
	exec_short(2);
	expect("replay 1 exit:3;duplicate 2;");
}

Test(goaway, is_forgotten_with_its_stream)
{
	begin(2);
	start(1, 0);
	execs_goaway(on_idle, NULL);
	execs_stream_lost();
	forget_trace();
	exec_short(2);
	expect("admitted 2;run 1 id=2 4/4;");
	slot_says(SLOT_EMPTY, 0);
	pass_ms(LIMIT_GOAWAY_MS);
	cr_assert_eq(fake.idle_calls, 0);
}

Test(goaway, a_second_one_changes_nothing)
{
	begin(1);
	start(1, 0);
	execs_goaway(on_idle, NULL);
	pass_ms(LIMIT_GOAWAY_MS - 1);
	execs_goaway(on_idle, NULL);
	pass_ms(1);
	expect("kill 0;");
}

Test(shutdown, kills_what_runs_and_refuses_what_waits)
{
	begin(1);
	start(1, 0);
	exec_short(2);
	forget_trace();
	execs_shutdown(0, on_idle, NULL);
	exec_short(3);
	expect("ended 2 refused:9 nothing;kill 0;refused 3 9;");
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 abort:0 killed;");
	drained(2);
	pass_ms(0);
	expect("");
	drained(1);
	pass_ms(0);
	expect("idle;");
	pass_ms(LIMIT_SHUTDOWN_MS);
	cr_assert_eq(fake.idle_calls, 1);
	is_at_rest();
}

Test(shutdown, kills_in_every_state_of_a_start)
{
	begin(3);
	exec(1, 1, .len = 100000);
	exec(2, 1, .command = "true");
	exec(3, 1, .len = 100000);
	cr_assert_eq(command_comes(3, 0, 60000), 0);
	forget_trace();
	execs_shutdown(0, on_idle, NULL);
	expect("release 0;ended 1 refused:9 nothing;kill 1;kill 2;");
	slot_says(SLOT_EMPTY, 1);
	expect("release 1;ended 2 refused:9 nothing;");
	slot_says(SLOT_EMPTY, 2);
	expect("release 2;ended 3 refused:9 nothing;");
	cr_assert_eq(execs_counters()->cached, 0, "none of them ran");
}

Test(shutdown, a_drain_lets_running_ones_finish)
{
	begin(2);
	start(1, 0);
	start(2, 1);
	execs_shutdown(20000, on_idle, NULL);
	pass_ms(19999);
	end(1, 0);
	expect("release 0;ended 1 exit:0 empty;");
	pass_ms(1);
	expect("kill 1;");
}

Test(shutdown, a_second_one_ends_the_drain)
{
	begin(1);
	start(1, 0);
	execs_shutdown(20000, on_idle, NULL);
	expect("");
	execs_shutdown(0, on_idle, NULL);
	expect("kill 0;");
	execs_shutdown(0, on_idle, NULL);
	pass_ms(20000);
	cr_assert_eq(fake.idle_calls, 1);
}

Test(shutdown, a_proof_has_three_seconds)
{
	begin(2);
	start(1, 0);
	start(2, 1);
	execs_on_abort(1); /* has 10 s, until the shutdown */
	pass_ms(100);
	forget_trace();
	execs_shutdown(0, on_idle, NULL);
	expect("kill 1;");
	pass_ms(LIMIT_SHUTDOWN_PROOF_MS - 1);
	expect("");
	pass_ms(1);
	cr_assert(strstr(fake.trace, "abandon 0;ended 1 abort:0 killed;"));
	cr_assert(strstr(fake.trace, "abandon 1;ended 2 abort:0 killed;"));
	forget_trace();
	drained(1);
	drained(2);
	pass_ms(0);
	expect("idle;");
}

Test(shutdown, does_not_wait_for_a_netd_that_hands_nothing_over)
{
	begin(1);
	start(1, 0);
	slot_exits(0, 0);
	slot_says(SLOT_EMPTY, 0);
	execs_shutdown(0, on_idle, NULL);
	forget_trace();
	pass_ms(LIMIT_SHUTDOWN_PROOF_MS + LIMIT_SHUTDOWN_ANSWER_MS - 1);
	expect("");
	pass_ms(1);
	expect("idle;");
}

Test(shutdown, a_loss_of_the_stream_meanwhile_leaves_nothing_to_wait_for)
{
	begin(1);
	start(1, 0);
	execs_shutdown(20000, on_idle, NULL);
	execs_stream_lost();
	expect("kill 0;");
	pass_ms(0);
	expect("idle;");
	exec_short(2);
	expect("refused 2 9;");
}

Test(shutdown, after_a_goaway_takes_its_place)
{
	begin(1);
	start(1, 0);
	execs_goaway(on_idle, NULL);
	execs_shutdown(0, on_idle, NULL);
	expect("kill 0;");
	execs_goaway(on_idle, NULL);
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	drained(1);
	pass_ms(0);
	pass_ms(LIMIT_GOAWAY_MS);
	cr_assert_eq(fake.idle_calls, 1);
}

Test(shutdown, with_nothing_in_flight_is_idle_at_once)
{
	begin(1);
	execs_shutdown(0, on_idle, NULL);
	pass_ms(0);
	expect("idle;");
}
