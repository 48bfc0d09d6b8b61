/* What runs, waits, and is refused (contract.md 7 and 8). */
#include "tests/unit/execd/fakes.h"

Test(execs, runs_an_inline_command_at_once_and_ends_it)
{
	begin(4);
	exec(7, 1, .command = "echo hi");
	cr_assert_str_eq(fake.command, "echo hi");
	expect("admitted 7;run 0 id=7 7/7;");
	slot_says(SLOT_STARTED, 0);
	expect("started 7;");
	slot_says(SLOT_LEADER_EXITED, 0, .wait_status = 3 << 8);
	expect("");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 7 exit:3 empty;");
	cr_assert_eq(execs_counters()->running, 1, "its place is held until DRAINED");
	drained(7);
	expect("");
	is_at_rest();
	cr_assert_eq(execs_counters()->cached, 1);
	cr_assert(fake.audited[0] == 1 && fake.audited[1] == 1);
}

Test(execs, leaves_no_descriptor_behind)
{
	size_t before;

	begin(2);
	before = open_descriptors();
	run_to_end(1, 1, 0);
	exec_short(2);
	slot_says(SLOT_START_FAILED, 0, .value = OUTCOME_START_VALUE(START_EXEC, ENOENT));
	drained(2);
	exec_short(3);
	execs_on_abort(3);
	slot_says(SLOT_EMPTY, 0);
	drained(3);
	exec_short(4);
	execs_stream_lost();
	slot_says(SLOT_EMPTY, 0);
	exec_short(5);
	fake.full = true;
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 0);
	slot_says(SLOT_EMPTY, 0);
	execs_stream_lost();
	is_at_rest();
	cr_assert_eq(open_descriptors(), before);
}

Test(execs, fetches_a_long_command_piece_by_piece)
{
	begin(1);
	exec(7, 1, .len = 100000);
	expect("admitted 7;fetch 7@0;");
	cr_assert_eq(command_comes(7, 0, 60000), 0);
	expect("run 0 id=7 60000/100000;");
	slot_says(SLOT_TOOK, 0);
	expect("fetch 7@60000;");
	cr_assert_eq(command_comes(7, 60000, 39999), 0);
	expect("feed 0 39999;");
	slot_says(SLOT_TOOK, 0);
	expect("fetch 7@99999;");
	cr_assert_eq(command_comes(7, 99999, 1), 0);
	expect("feed 0 1;");
	slot_says(SLOT_TOOK, 0);
	expect("");
	slot_says(SLOT_STARTED, 0);
	expect("started 7;");
}

Test(execs, takes_no_piece_that_was_not_asked_for)
{
	begin(1);
	cr_assert_eq(command_comes(7, 0, 10), -EPROTO);
	exec(7, 1, .len = 100000);
	forget_trace();
	cr_assert_eq(command_comes(8, 0, 10), -EPROTO);
	cr_assert_eq(command_comes(7, 1, 10), -EPROTO);
	cr_assert_eq(command_comes(7, 0, 0), -EPROTO);
	expect("");
	cr_assert_eq(command_comes(7, 0, 60000), 0);
	cr_assert_eq(command_comes(7, 60000, 10), -EPROTO, "the slot has not taken the first");
	slot_says(SLOT_TOOK, 0);
	cr_assert_eq(command_comes(7, 0, 60000), -EPROTO);
	cr_assert_eq(command_comes(7, 60000, 40001), -EPROTO, "more than it said");
	cr_assert_eq(command_comes(7, 60000, 40000), 0);
	cr_assert_eq(command_comes(7, 100000, 1), -EPROTO);
}

Test(execs, an_empty_command_is_not_fetched)
{
	begin(1);
	exec(7, 1, .len = 0);
	expect("admitted 7;run 0 id=7 0/0;");
	exec(8, 1, .command = "");
	expect("admitted 8;");
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 0);
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	drained(7);
	expect("run 0 id=8 0/0;");
}

Test(execs, an_inline_command_that_must_wait_is_fetched_later)
{
	begin(1);
	exec_short(1);
	exec(2, 1, .command = "later");
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 0);
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	drained(1);
	expect("fetch 2@0;");
	cr_assert_eq(command_comes(2, 0, 5), 0);
	expect("run 0 id=2 5/5;");
}

Test(execs, refuses_exactly_the_69th_with_4_places)
{
	begin(4);
	for (uint64_t id = 1; id <= 67; id++)
		exec_short(id);
	cr_assert_eq(execs_counters()->waiting, 63);
	exec_short(68);
	cr_assert_eq(execs_counters()->waiting, 64);
	forget_trace();
	exec_short(69);
	expect("refused 69 1;");
	cr_assert_eq(execs_counters()->refused, 1);
	cr_assert_eq(execs_counters()->running, 4);
	/* One that waits is aborted: its place in the queue is free at once, before netd has handed over its
	 * End. */
	execs_on_abort(40);
	exec_short(70);
	expect("ended 40 abort:0 nothing;admitted 70;");
	exec_short(71);
	expect("refused 71 1;");
}

Test(execs, first_come_first_run)
{
	begin(2);
	for (uint64_t id = 1; id <= 6; id++)
		exec_short(id);
	forget_trace();
	for (uint64_t id = 1; id <= 4; id++) {
		unsigned slot = id % 2 ? 0 : 1;
		unsigned long long next = id + 2;
		char want[64];

		slot_says(SLOT_STARTED, slot);
		slot_exits(slot, 0);
		slot_says(SLOT_EMPTY, slot);
		forget_trace();
		drained(id);
		snprintf(want, sizeof want, "fetch %llu@0;", next);
		expect(want);
		cr_assert_eq(command_comes(id + 2, 0, 4), 0);
	}
}

Test(execs, never_more_than_the_places_run)
{
	begin(3);
	for (uint64_t id = 1; id <= 20; id++)
		exec_short(id);
	cr_assert_eq(execs_counters()->running, 3);
	for (unsigned slot = 0; slot < 3; slot++) {
		slot_says(SLOT_STARTED, slot);
		slot_exits(slot, 0);
		slot_says(SLOT_EMPTY, slot);
	}
	cr_assert_eq(execs_counters()->running, 3, "all slots are idle, but nothing is handed over yet");
	cr_assert_eq(execs_counters()->waiting, 17);
}

Test(execs, waits_for_a_slot_that_is_being_replaced)
{
	begin(1);
	fake.slots[0] = FAKE_ABSENT;
	exec(1, 1, .command = "true");
	expect("admitted 1;");
	slot_ready(0);
	expect("fetch 1@0;");
}

Test(execs, an_abort_in_the_queue_means_it_never_starts)
{
	begin(1);
	exec_short(1);
	exec_short(2);
	forget_trace();
	execs_on_abort(2);
	expect("ended 2 abort:0 nothing;");
	execs_on_abort(2);
	drained(2);
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 0);
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	drained(1);
	expect("");
	is_at_rest();
	exec_short(2);
	expect("replay 2 abort:0;");
}

Test(execs, an_abort_of_an_unknown_or_finished_id_does_nothing)
{
	begin(1);
	execs_on_abort(99);
	run_to_end(1, 1, 0);
	execs_on_abort(1);
	expect("");
	is_at_rest();
}

Test(execs, a_failed_start_is_told_and_not_cached)
{
	begin(1);
	exec_short(1);
	slot_says(SLOT_START_FAILED, 0, .value = OUTCOME_START_VALUE(START_EXEC, ENOENT));
	expect("admitted 1;run 0 id=1 4/4;release 0;ended 1 start:720898 nothing;");
	drained(1);
	exec_short(1);
	expect("admitted 1;run 0 id=1 4/4;");
}

Test(execs, failing_pipes_and_slots_are_failed_starts)
{
	struct outcome o;

	begin(1);
	fake.pipes_error = -EMFILE;
	exec_short(1);
	o = fake.ended.outcome;
	expect("admitted 1;release 0;ended 1 start:65560 nothing;");
	cr_assert(OUTCOME_START_STEP(o.value) == START_PIPES && OUTCOME_START_ERRNO(o.value) == EMFILE);
	drained(1);
	fake.pipes_error = 0;
	fake.run_error = -EAGAIN;
	exec_short(1);
	o = fake.ended.outcome;
	expect("admitted 1;run 0 id=1 4/4;release 0;ended 1 start:131083 nothing;");
	cr_assert(OUTCOME_START_STEP(o.value) == START_SLOT && OUTCOME_START_ERRNO(o.value) == EAGAIN);
	drained(1);
	is_at_rest();
}

Test(execs, a_piece_that_the_slot_does_not_take_is_a_failed_start)
{
	begin(1);
	exec(1, 1, .len = 100000);
	cr_assert_eq(command_comes(1, 0, 60000), 0);
	slot_says(SLOT_TOOK, 0);
	forget_trace();
	fake.command_error = -ECONNRESET;
	cr_assert_eq(command_comes(1, 60000, 40000), 0);
	expect("feed 0 40000;kill 0;");
	slot_says(SLOT_EMPTY, 0);
	cr_assert_eq(fake.ended.outcome.kind, OUTCOME_START_FAILED);
	drained(1);
	is_at_rest();
	cr_assert_eq(execs_counters()->cached, 0);
}

Test(execs, maps_every_end_of_the_leader)
{
	static const struct {
		int status;
		const char *ended;
	} cases[] = {
	    {0, "release 0;ended 1 exit:0 empty;"},
	    {255 << 8, "release 0;ended 1 exit:255 empty;"},
	    {9, "release 0;ended 1 signal:9 empty;"},
	    {11 | 0x80, "release 0;ended 1 signal:11 empty;"},
	    {64, "release 0;ended 1 signal:64 empty;"},
	    {0x137f, "release 0;ended 1 abort:0 empty;"}, /* stopped: no end at all */
	};

	begin(1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		exec(1, (uint8_t)(i + 1), .command = "true");
		slot_says(SLOT_STARTED, 0);
		forget_trace();
		slot_says(SLOT_LEADER_EXITED, 0, .wait_status = cases[i].status);
		slot_says(SLOT_EMPTY, 0);
		expect(cases[i].ended);
		drained(1);
	}
}

Test(execs, takes_every_id)
{
	begin(2);
	exec_short(0);
	exec_short(UINT64_MAX);
	expect("admitted 0;run 0 id=0 4/4;admitted 18446744073709551615;run 1 id=18446744073709551615 4/4;");
}

Test(execs, a_drained_that_was_not_asked_for_is_a_violation)
{
	begin(1);
	cr_assert_eq(drained_comes(1, false), -EPROTO);
	exec(1, 1, .len = 5);
	exec_short(2);
	cr_assert_eq(drained_comes(1, false), -EPROTO, "fetching");
	cr_assert_eq(drained_comes(2, false), -EPROTO, "waiting");
	cr_assert_eq(command_comes(1, 0, 5), 0);
	cr_assert_eq(drained_comes(1, false), -EPROTO, "loading");
	slot_says(SLOT_STARTED, 0);
	cr_assert_eq(drained_comes(1, false), -EPROTO, "running");
	slot_exits(0, 0);
	cr_assert_eq(drained_comes(1, false), -EPROTO, "exited");
	fake.full = true;
	slot_says(SLOT_EMPTY, 0);
	cr_assert_eq(drained_comes(1, false), -EPROTO, "ENDED has not been sent");
	channel_takes_again();
	drained(1);
	cr_assert_eq(drained_comes(1, false), -EPROTO, "twice");
}

Test(execs, a_flood_of_aborted_waiters_is_bounded)
{
	uint64_t id = 100;

	begin(1);
	exec_short(1);
	for (int i = 0; i < 10000; i++) {
		forget_trace();
		exec_short(++id);
		execs_on_abort(id);
	}
	cr_assert_eq(execs_counters()->running, 1);
	cr_assert_eq(execs_counters()->waiting, 0);
	cr_assert_gt(execs_counters()->refused, 0);
	execs_stream_lost();
	slot_says(SLOT_EMPTY, 0);
	is_at_rest();
}
