/* A slot that is gone before it has read a command has, for certain, not run it: another takes its place. */
#include "tests/unit/execd/fakes.h"

#define NOT_STARTED "start:131176"

static void expect_not_started(void)
{
	cr_assert_eq(fake.ended.outcome.kind, OUTCOME_START_FAILED);
	cr_assert_eq(OUTCOME_START_STEP(fake.ended.outcome.value), START_SLOT);
	cr_assert_eq(execs_counters()->cached, 0, "it may run when it comes again");
}

Test(again, what_was_not_read_runs_in_another_slot)
{
	size_t descriptors;

	begin(2);
	fake.slots[1] = FAKE_ABSENT;
	descriptors = open_descriptors();
	exec_short(1);
	expect("admitted 1;run 0 id=1 4/4;");
	fake.slots[1] = FAKE_IDLE;
	slot_says(SLOT_UNREAD, 0);
	expect("release 0;fetch 1@0;");
	cr_assert_eq(open_descriptors(), descriptors, "its pipes are closed");
	cr_assert_eq(execs_counters()->running, 1);
	cr_assert_eq(command_comes(1, 0, 4), 0);
	expect("run 0 id=1 4/4;");
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 3);
	slot_says(SLOT_EMPTY, 0);
	expect("started 1;release 0;ended 1 exit:3 empty;");
	drained(1);
	is_at_rest();
}

Test(again, a_slot_that_is_gone_at_once_is_no_other)
{
	begin(1);
	fake.run_error = -EPIPE;
	exec_short(1);
	fake.run_error = 0;
	cr_assert_eq(execs_counters()->ended, 0);
	cr_assert_eq(command_comes(1, 0, 4), 0);
	slot_says(SLOT_STARTED, 0);
	expect("admitted 1;run 0 id=1 4/4;release 0;fetch 1@0;run 0 id=1 4/4;started 1;");
}

Test(again, a_slot_that_is_gone_between_two_pieces_is_no_other)
{
	begin(1);
	exec(1, 1, .len = 10);
	cr_assert_eq(command_comes(1, 0, 6), 0);
	slot_says(SLOT_TOOK, 0);
	fake.command_error = -EPIPE;
	forget_trace();
	cr_assert_eq(command_comes(1, 6, 4), 0);
	expect("feed 0 4;release 0;fetch 1@0;");
	fake.command_error = 0;
	cr_assert_eq(command_comes(1, 0, 10), 0);
	slot_says(SLOT_STARTED, 0);
	expect("run 0 id=1 10/10;started 1;");
}

Test(again, it_goes_before_those_that_wait)
{
	begin(1);
	exec_short(1);
	exec_short(2);
	forget_trace();
	slot_says(SLOT_UNREAD, 0);
	expect("release 0;fetch 1@0;");
	cr_assert_eq(execs_counters()->waiting, 1);
}

Test(again, so_often_and_no_more)
{
	begin(1);
	exec_short(1);
	for (unsigned i = 0; i < LIMIT_SLOT_TRIES; i++) {
		forget_trace();
		slot_says(SLOT_UNREAD, 0);
		expect("release 0;fetch 1@0;");
		cr_assert_eq(command_comes(1, 0, 4), 0);
	}
	forget_trace();
	slot_says(SLOT_UNREAD, 0);
	expect("release 0;ended 1 " NOT_STARTED " nothing;");
	expect_not_started();
	drained(1);
	is_at_rest();
}

Test(again, an_abort_finds_it_waiting)
{
	begin(2);
	fake.slots[1] = FAKE_ABSENT;
	exec_short(1);
	exec_short(2);
	slot_says(SLOT_UNREAD, 0);
	cr_assert_eq(command_comes(1, 0, 4), 0);
	forget_trace();
	execs_on_abort(2);
	expect("ended 2 abort:0 nothing;");
	execs_on_abort(1);
	slot_says(SLOT_UNREAD, 0);
	expect("kill 0;release 0;ended 1 abort:0 nothing;");
	drained(1);
	drained(2);
	is_at_rest();
}

Test(again, a_lost_stream_drops_it)
{
	begin(1);
	exec_short(1);
	execs_stream_lost();
	slot_says(SLOT_UNREAD, 0);
	is_at_rest();
	exec_short(1);
	slot_says(SLOT_UNREAD, 0);
	execs_stream_lost();
	is_at_rest();
}

/* A piece that was asked for comes for the first slot, and could be taken for the second's. */
Test(again, not_while_a_piece_is_on_the_way)
{
	begin(1);
	exec(1, 1, .len = 10);
	cr_assert_eq(command_comes(1, 0, 5), 0);
	slot_says(SLOT_TOOK, 0);
	forget_trace();
	slot_says(SLOT_UNREAD, 0);
	expect("release 0;ended 1 " NOT_STARTED " nothing;");
	expect_not_started();
	cr_assert_eq(command_comes(1, 5, 5), 0);
	drained(1);
	is_at_rest();
}
