/* Timeout, Abort, and slots that die: contract.md 5 and 8 to 10, design.md "The end of an
 * exec". */
#include "execd/cache.h"
#include "tests/unit/execd/fakes.h"

static void start(uint64_t id, uint32_t timeout_s)
{
	exec(id, 1, .command = "true", .timeout_s = timeout_s);
	slot_says(SLOT_STARTED, 0);
	forget_trace();
}

Test(kill, an_abort_ends_after_the_proof)
{
	begin(1);
	start(1, 0);
	execs_on_abort(1);
	expect("kill 0;");
	execs_on_abort(1);
	slot_is_killed(0);
	expect("");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 abort:0 killed;");
	drained(1);
	is_at_rest();
	exec_short(1);
	expect("replay 1 abort:0;");
	cr_assert_eq(execs_counters()->aborts, 1);
}

Test(kill, a_leader_that_exited_before_the_kill_keeps_its_code)
{
	begin(1);
	start(1, 5);
	execs_on_abort(1);
	slot_exits(0, 7);
	slot_says(SLOT_EMPTY, 0);
	expect("kill 0;release 0;ended 1 exit:7 killed;");
}

Test(kill, the_timeout_counts_from_started_and_runs_out_exactly)
{
	begin(1);
	exec(1, 1, .command = "true", .timeout_s = 3);
	pass_ms(60000);
	slot_says(SLOT_STARTED, 0);
	forget_trace();
	pass_ms(2999);
	expect("");
	pass_ms(1);
	expect("kill 0;");
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 timeout:3 killed;");
	drained(1);
	cr_assert_eq(execs_counters()->timeouts, 1);
	exec(1, 1, .command = "true", .timeout_s = 3);
	expect("replay 1 timeout:3;");
}

Test(kill, a_real_exit_beats_a_timeout)
{
	begin(1);
	start(1, 3);
	pass_ms(3000);
	slot_exits(0, 5);
	slot_says(SLOT_EMPTY, 0);
	expect("kill 0;release 0;ended 1 exit:5 killed;");
}

/* It was giving back its memory when the kill came: SIGKILL did not end it. */
Test(kill, only_a_leader_that_sigkill_ended_was_killed_by_us)
{
	static const struct {
		int status;
		const char *ended;
	} cases[] = {
	    {7 << 8, "release 0;ended 1 exit:7 killed;"},
	    {0, "release 0;ended 1 exit:0 killed;"},
	    {11 | 0x80, "release 0;ended 1 signal:11 killed;"},
	    {9, "release 0;ended 1 timeout:3 killed;"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (i == 0)
			begin(1);
		start(1, 3);
		pass_ms(3000);
		forget_trace();
		slot_says(SLOT_LEADER_EXITED, 0, .wait_status = cases[i].status, .by_kill = true);
		slot_says(SLOT_EMPTY, 0);
		expect(cases[i].ended);
		drained(1);
		cache_clear();
	}
}

Test(kill, no_timeout_is_no_limit_and_the_longest_does_not_overflow)
{
	begin(2);
	start(1, 0);
	exec(2, 1, .command = "true", .timeout_s = UINT32_MAX);
	slot_says(SLOT_STARTED, 1);
	forget_trace();
	pass_ms(4294967294999u);
	expect("");
	pass_ms(1);
	expect("kill 1;");
}

Test(kill, a_timeout_after_the_exit_is_none)
{
	begin(1);
	start(1, 3);
	slot_exits(0, 0);
	pass_ms(3000);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:0 empty;");
}

Test(kill, the_first_reason_stays)
{
	begin(1);
	start(1, 3);
	pass_ms(3000);
	execs_on_abort(1);
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	expect("kill 0;release 0;ended 1 timeout:3 killed;");
}

Test(kill, before_the_start_there_are_no_pipes_to_read)
{
	begin(1);
	exec_short(1);
	execs_on_abort(1);
	slot_says(SLOT_EMPTY, 0);
	expect("admitted 1;run 0 id=1 4/4;kill 0;release 0;ended 1 abort:0 nothing;");
	drained(1);
	/* The start failed while the kill was on its way: nothing runs, and the reason is the kill. */
	exec(2, 1, .command = "true");
	execs_on_abort(2);
	forget_trace();
	slot_says(SLOT_START_FAILED, 0, .value = OUTCOME_START_VALUE(START_EXEC, ENOENT));
	expect("release 0;ended 2 abort:0 nothing;");
}

Test(kill, a_start_that_crosses_the_kill_still_delivers_its_output)
{
	begin(1);
	exec_short(1);
	execs_on_abort(1);
	forget_trace();
	slot_says(SLOT_STARTED, 0);
	expect("started 1;");
	slot_exits(0, 4);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:4 killed;");
}

Test(kill, an_abort_while_a_piece_is_on_its_way_is_no_violation)
{
	begin(1);
	exec(1, 1, .len = 100000);
	execs_on_abort(1);
	expect("admitted 1;fetch 1@0;release 0;ended 1 abort:0 nothing;");
	cr_assert_eq(command_comes(1, 0, 60000), 0);
	expect("");
	cr_assert_eq(command_comes(1, 0, 60000), -EPROTO, "but only once");
	drained(1);
	is_at_rest();

	exec(2, 1, .len = 100000);
	cr_assert_eq(command_comes(2, 0, 60000), 0);
	slot_says(SLOT_TOOK, 0);
	execs_on_abort(2);
	forget_trace();
	cr_assert_eq(command_comes(2, 60000, 40000), 0);
	slot_says(SLOT_TOOK, 0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 2 abort:0 nothing;");
}

Test(kill, ten_seconds_without_proof_and_the_answer_goes_all_the_same)
{
	begin(1);
	start(1, 0);
	execs_on_abort(1);
	slot_says(SLOT_STILL_ALIVE, 0, .count = 2);
	pass_ms(LIMIT_KILL_PROOF_MS - 1);
	expect("kill 0;");
	pass_ms(1);
	expect("abandon 0;ended 1 abort:0 killed;");
	cr_assert_eq(execs_counters()->unproven, 1);
	pass_ms(1);
	slot_says(SLOT_STILL_ALIVE, 0, .count = 2);
	expect("");
	/* Handed over: the same work is answered; other work under this id waits for no proof. */
	drained(1);
	exec_short(1);
	expect("replay 1 abort:0;");
	exec(1, 2, .command = "true");
	expect("refused 1 11;");
	/* Capacity has shrunk by one, here to none. */
	exec_short(2);
	expect("admitted 2;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;fetch 2@0;");
}

/* What only dies takes nobody's place: not once all is handed over. */
static void has_its_place_back_when_replaced(bool at_once)
{
	begin(1);
	start(1, 0);
	execs_on_abort(1);
	fake.replaced = at_once;
	pass_ms(LIMIT_KILL_PROOF_MS);
	fake.slots[1] = FAKE_IDLE;
	exec_short(2);
	cr_assert_eq(execs_counters()->running, 1);
	forget_trace();
	drained(1);
	fake.replaced = true;
	if (!at_once)
		slot_says(SLOT_STILL_ALIVE, 0, .count = 2);
	expect("fetch 2@0;");
	cr_assert_eq(execs_counters()->running, 1);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	cr_assert_eq(execs_counters()->running, 1);
}

Test(kill, a_slot_that_is_replaced_gives_its_place_back)
{
	has_its_place_back_when_replaced(true);
}

Test(kill, a_slot_that_is_replaced_later_gives_its_place_back)
{
	has_its_place_back_when_replaced(false);
}

/* Frozen and thawed, with the slot: its proof is on its way. */
Test(kill, a_freeze_is_no_lack_of_proof)
{
	begin(1);
	start(1, 0);
	execs_on_abort(1);
	pass_ms(LIMIT_KILL_PROOF_MS + 60000);
	expect("kill 0;");
	slot_is_killed(0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 abort:0 killed;");
	drained(1);
	start(2, 0);
	execs_on_abort(2);
	pass_ms(LIMIT_KILL_PROOF_MS + 60000);
	pass_ms(1000);
	expect("kill 0;abandon 0;ended 2 abort:0 killed;");
}

Test(kill, the_late_proof_may_come_before_drained)
{
	begin(1);
	start(1, 0);
	execs_on_abort(1);
	pass_ms(LIMIT_KILL_PROOF_MS);
	forget_trace();
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	drained(1);
	is_at_rest();
}

Test(kill, a_natural_exit_has_the_same_deadline)
{
	begin(1);
	start(1, 0);
	slot_exits(0, 3);
	pass_ms(LIMIT_KILL_PROOF_MS - 1);
	expect("");
	pass_ms(1);
	expect("abandon 0;ended 1 exit:3 killed;");
	drained(1);
	slot_says(SLOT_EMPTY, 0);
	is_at_rest();
}

Test(kill, a_slot_that_dies_under_its_exec_ends_it_with_no_code)
{
	begin(1);
	start(1, 0);
	slot_says(SLOT_DIED, 0);
	expect("");
	exec_short(1);
	expect("duplicate 1;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 abort:0 empty;");
	drained(1);
	exec_short(1);
	expect("replay 1 abort:0;");
}

Test(kill, a_slot_that_dies_after_the_exit_changes_no_outcome)
{
	begin(1);
	start(1, 0);
	slot_exits(0, 3);
	slot_says(SLOT_DIED, 0);
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 1 exit:3 empty;");
}

Test(kill, a_slot_that_dies_before_the_start_is_a_failed_start)
{
	begin(1);
	exec(1, 1, .len = 10);
	slot_says(SLOT_DIED, 0);
	expect("admitted 1;fetch 1@0;ended 1 start:131176 nothing;");
	cr_assert_eq(OUTCOME_START_STEP(fake.ended.outcome.value), START_SLOT);
	cr_assert_eq(command_comes(1, 0, 10), 0);
	drained(1);
	cr_assert_eq(execs_counters()->running, 1, "until it is swept");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	is_at_rest();
	cr_assert_eq(execs_counters()->cached, 0);
}

/* bash may run before its slot has said so, and a command can stop or kill its own slot in that moment. What
 * may have run must not run again (contract.md 9), and what it wrote is delivered. */
Test(kill, a_slot_that_dies_with_the_whole_command_may_have_run_it)
{
	begin(1);
	exec_short(2);
	slot_says(SLOT_DIED, 0);
	expect("admitted 2;run 0 id=2 4/4;started 2;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 2 abort:0 empty;");
	drained(2);
	exec_short(2);
	expect("replay 2 abort:0;");
	is_at_rest();
}

/* The same under a kill. */
Test(kill, a_slot_that_dies_with_the_whole_command_under_a_kill_may_have_run_it)
{
	begin(1);
	exec_short(1);
	execs_on_abort(1);
	forget_trace();
	slot_says(SLOT_DIED, 0);
	slot_says(SLOT_EMPTY, 0);
	expect("started 1;release 0;ended 1 abort:0 killed;");
}

/* All but the last byte: bash cannot have been started. */
Test(kill, a_slot_that_dies_with_half_a_command_is_a_failed_start)
{
	begin(1);
	exec(1, 1, .len = 10);
	cr_assert_eq(command_comes(1, 0, 9), 0);
	slot_says(SLOT_DIED, 0);
	slot_says(SLOT_EMPTY, 0);
	cr_assert_eq(fake.ended.outcome.kind, OUTCOME_START_FAILED);
	cr_assert_eq(execs_counters()->cached, 0);
}

Test(kill, a_slot_that_dies_under_a_kill_leaves_its_reason)
{
	begin(1);
	start(1, 3);
	pass_ms(3000);
	slot_says(SLOT_DIED, 0);
	slot_says(SLOT_EMPTY, 0);
	expect("kill 0;release 0;ended 1 timeout:3 killed;");
}

Test(kill, keep_lets_what_is_left_live_and_gives_it_a_minder)
{
	begin(1);
	start(1, 0);
	slot_exits(0, 0);
	slot_says(SLOT_MINDING, 0, .count = 1);
	expect("ended 1 exit:0 keep;");
	pass_ms(3600000);
	expect("");
	drained(1);
	expect("mind 0;");
	is_at_rest();
	exec_short(2);
	expect("admitted 2;");
	slot_ready(1);
	expect("fetch 2@0;");
}

Test(kill, keep_what_was_left_may_end_by_itself)
{
	begin(1);
	start(1, 0);
	slot_exits(0, 0);
	slot_says(SLOT_MINDING, 0, .count = 1);
	forget_trace();
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	drained(1);
	is_at_rest();
}

Test(kill, keep_an_abort_after_the_exit_kills_what_is_left)
{
	begin(1);
	start(1, 0);
	slot_exits(0, 3);
	slot_says(SLOT_MINDING, 0, .count = 1);
	execs_on_abort(1);
	expect("ended 1 exit:3 keep;kill 0;");
	drained(1);
	cr_assert_eq(execs_counters()->running, 1);
	exec_short(1);
	expect("replay 1 exit:3;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	is_at_rest();
	/* The same, and the abort comes before the slot has looked. */
	exec(2, 1, .command = "true");
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, 3);
	forget_trace();
	execs_on_abort(2);
	slot_says(SLOT_MINDING, 0, .count = 1);
	expect("kill 0;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;ended 2 exit:3 killed;");
}

Test(kill, keep_a_slot_that_dies_after_the_answer_is_waited_for)
{
	begin(1);
	start(1, 0);
	slot_exits(0, 3);
	slot_says(SLOT_MINDING, 0, .count = 1);
	slot_says(SLOT_DIED, 0);
	forget_trace();
	drained(1);
	pass_ms(LIMIT_KILL_PROOF_MS);
	expect("abandon 0;");
	slot_says(SLOT_EMPTY, 0);
	expect("release 0;");
	is_at_rest();
}
