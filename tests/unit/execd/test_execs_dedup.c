/* An id that comes again (contract.md 9). */
#include "tests/unit/execd/fakes.h"

Test(dedup, an_id_in_flight_with_the_same_work_is_dropped_in_silence)
{
	begin(1);
	exec_short(1);
	exec_short(2);
	forget_trace();
	exec_short(1);
	exec_short(2);
	expect("duplicate 1;duplicate 2;");
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 0);
	slot_says(SLOT_EMPTY, 0);
	forget_trace();
	exec_short(1);
	expect("duplicate 1;");
	cr_assert_eq(execs_counters()->duplicates, 3);
}

Test(dedup, an_id_in_flight_with_other_work_is_refused)
{
	begin(1);
	exec_short(1);
	exec_short(2);
	forget_trace();
	exec(1, 2, .command = "rm");
	exec(2, 2, .command = "rm");
	expect("refused 1 3;refused 2 3;");
	cr_assert_eq(fake.audited[2], 2);
}

Test(dedup, a_done_id_with_the_same_work_is_answered_from_the_cache)
{
	begin(1);
	run_to_end(1, 1, 42);
	exec_short(1);
	expect("replay 1 exit:42;");
	/* Also with no place and a full queue. */
	for (uint64_t id = 2; id <= 66; id++)
		exec_short(id);
	forget_trace();
	exec_short(1);
	expect("replay 1 exit:42;");
	cr_assert_eq(execs_counters()->replayed, 2);
	cr_assert_eq(fake.audited[3], 2);
}

Test(dedup, a_done_id_with_other_work_runs_and_replaces_the_entry)
{
	begin(1);
	run_to_end(1, 1, 42);
	exec(1, 2, .command = "true");
	expect("admitted 1;run 0 id=1 4/4;");
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 9);
	slot_says(SLOT_EMPTY, 0);
	drained(1);
	forget_trace();
	exec(1, 2, .command = "true");
	expect("replay 1 exit:9;");
	exec(1, 1, .command = "true");
	expect("admitted 1;run 0 id=1 4/4;");
}

Test(dedup, in_flight_is_looked_up_before_the_cache)
{
	begin(1);
	run_to_end(1, 1, 42);
	exec(1, 2, .command = "true");
	forget_trace();
	exec(1, 1, .command = "true");
	expect("refused 1 3;");
	exec(1, 2, .command = "true");
	expect("duplicate 1;");
}

Test(dedup, what_netd_cannot_hold_is_dropped_replayed_or_refused_but_never_run)
{
	begin(2);
	exec(5, 1, .len = 3, .bad = REFUSAL_COMMAND_NUL);
	expect("refused 5 4;");
	run_to_end(1, 1, 42);
	exec(1, 1, .bad = REFUSAL_MEMORY);
	expect("replay 1 exit:42;");
	exec(1, 2, .bad = REFUSAL_MEMORY);
	expect("refused 1 2;");
	exec_short(2);
	forget_trace();
	exec(2, 1, .bad = REFUSAL_MEMORY);
	expect("duplicate 2;");
	exec(2, 2, .bad = REFUSAL_MEMORY);
	expect("refused 2 3;");
	for (unsigned bad = 1; bad <= REFUSAL_LAST; bad++) {
		exec(100, 0, .len = UINT32_MAX, .bad = (uint8_t)bad);
		cr_assert_eq(execs_counters()->running, 1);
		cr_assert_eq(execs_counters()->waiting, 0);
	}
}

Test(dedup, what_was_truncated_is_truncated_in_the_replay_too)
{
	begin(1);
	exec_short(1);
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 0);
	slot_says(SLOT_EMPTY, 0);
	cr_assert_eq(drained_comes(1, true), 0);
	forget_trace();
	exec_short(1);
	expect("replay 1 exit:0 truncated;");
}

Test(dedup, a_refusal_is_not_cached)
{
	begin(1);
	for (uint64_t id = 1; id <= 65; id++)
		exec_short(id);
	exec_short(66);
	execs_on_abort(65);
	forget_trace();
	exec_short(66);
	expect("admitted 66;");
}
