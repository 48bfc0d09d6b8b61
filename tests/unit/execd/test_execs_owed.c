/* A channel that takes nothing: what is owed is remembered and sent, in order, when there is room. */
#include "tests/unit/execd/fakes.h"

Test(owed, started_then_ended)
{
	begin(1);
	exec_short(1);
	fake.full = true;
	forget_trace();
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	execs_channel_writable();
	expect("");
	channel_takes_again();
	expect("started 1;ended 1 exit:0 empty;");
	drained(1);
	is_at_rest();
}

Test(owed, a_fetch)
{
	begin(1);
	fake.full = true;
	exec(1, 1, .len = 100000);
	cr_assert_eq(command_comes(1, 0, 10), -EPROTO, "it has not been asked for yet");
	channel_takes_again();
	expect("admitted 1;fetch 1@0;");
	fake.full = true;
	cr_assert_eq(command_comes(1, 0, 60000), 0);
	slot_says(SLOT_TOOK, 0);
	forget_trace();
	channel_takes_again();
	expect("fetch 1@60000;");
}

Test(owed, a_fetch_is_forgotten_by_an_abort)
{
	begin(1);
	fake.full = true;
	exec(1, 1, .len = 100000);
	execs_on_abort(1);
	forget_trace();
	channel_takes_again();
	expect("ended 1 abort:0 nothing;");
}

Test(owed, an_end_from_the_queue)
{
	begin(1);
	exec_short(1);
	exec_short(2);
	exec_short(3);
	fake.full = true;
	execs_on_abort(2);
	execs_on_abort(3);
	forget_trace();
	channel_takes_again();
	expect("ended 2 abort:0 nothing;ended 3 abort:0 nothing;");
}

Test(owed, many_at_once)
{
	begin(LIMIT_CONCURRENT);
	for (unsigned i = 0; i < LIMIT_CONCURRENT; i++)
		exec_short(i);
	fake.full = true;
	for (unsigned i = 0; i < LIMIT_CONCURRENT; i++) {
		slot_says(SLOT_STARTED, i);
		slot_exits(i, 0);
		slot_says(SLOT_EMPTY, i);
	}
	forget_trace();
	fake.tracing = false;
	channel_takes_again();
	for (unsigned i = 0; i < LIMIT_CONCURRENT; i++)
		drained(i);
	is_at_rest();
}

Test(owed, nothing_any_more_after_a_loss)
{
	begin(1);
	exec_short(1);
	fake.full = true;
	slot_says(SLOT_STARTED, 0);
	execs_stream_lost();
	forget_trace();
	channel_takes_again();
	expect("");
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	is_at_rest();
}

Test(owed, a_kill_reads_differently_while_the_end_is_owed)
{
	begin(1);
	exec_short(1);
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 0);
	fake.full = true;
	slot_says(SLOT_MINDING, 0, .count = 1);
	execs_on_abort(1);
	forget_trace();
	channel_takes_again();
	expect("ended 1 exit:0 killed;");
}

Test(owed, descriptors_that_cannot_be_passed_are_a_failed_start)
{
	size_t before;

	begin(1);
	before = open_descriptors();
	exec_short(1);
	fake.started_error = -ETOOMANYREFS;
	forget_trace();
	slot_says(SLOT_STARTED, 0);
	expect("started 1;kill 0;");
	cr_assert_eq(open_descriptors(), before);
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 start:65645 nothing;");
	cr_assert_eq(OUTCOME_START_ERRNO(fake.ended.outcome.value), ETOOMANYREFS);
	drained(1);
	cr_assert_eq(execs_counters()->cached, 0);
	is_at_rest();
}

Test(owed, descriptors_that_cannot_be_passed_late)
{
	begin(1);
	/* Owed when it was still running. */
	exec_short(1);
	fake.full = true;
	slot_says(SLOT_STARTED, 0);
	forget_trace();
	fake.started_error = -ETOOMANYREFS;
	channel_takes_again();
	expect("started 1;kill 0;");
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	drained(1);
	/* Owed until after its end: the code is real, but there is nothing that netd could read. */
	exec_short(2);
	fake.full = true;
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 3);
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	channel_takes_again();
	expect("started 2;ended 2 exit:3 nothing;");
	drained(2);
	is_at_rest();
}

Test(owed, a_netd_that_is_gone_is_no_failed_start)
{
	begin(1);
	exec_short(1);
	fake.started_error = -EPIPE;
	forget_trace();
	slot_says(SLOT_STARTED, 0);
	expect("started 1;");
	execs_stream_lost();
	expect("kill 0;");
}
