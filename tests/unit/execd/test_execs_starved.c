/* No slot can be had: what waits does not wait for ever. */
#include "tests/unit/execd/fakes.h"

#define REFUSED "start:131083" /* START_SLOT, EAGAIN */

TestSuite(execs_starved, .timeout = 20);

/* One place, whose slot minds what was left behind. */
static void begin_without_slot(void)
{
	begin(1);
	fake.slots[0] = FAKE_ABSENT;
	exec_short(1);
	expect("admitted 1;");
}

static void pass_seconds(uint32_t ms)
{
	for (; ms > 0; ms -= 1000)
		pass_ms(1000);
}

Test(execs_starved, gives_up_what_was_left_behind_and_then_what_waits)
{
	begin_without_slot();
	exec_short(2);
	forget_trace();
	pass_seconds(LIMIT_SLOT_SHORT_MS - 1000);
	expect("");
	pass_ms(1000);
	expect("give up;");
	pass_ms(1000);
	expect("give up;");
	pass_seconds(LIMIT_SLOT_WAIT_MS - LIMIT_SLOT_SHORT_MS - 2000);
	forget_trace();
	pass_ms(1000);
	expect("ended 1 " REFUSED " nothing;ended 2 " REFUSED " nothing;");
	drained(1);
	drained(2);
	is_at_rest();
}

Test(execs_starved, gives_each_its_time)
{
	begin_without_slot();
	pass_seconds(LIMIT_SLOT_WAIT_MS);
	drained(1);
	exec_short(2);
	forget_trace();
	pass_seconds(LIMIT_SLOT_SHORT_MS - 1000);
	expect("");
	pass_seconds(LIMIT_SLOT_WAIT_MS - LIMIT_SLOT_SHORT_MS);
	forget_trace();
	pass_ms(1000);
	expect("ended 2 " REFUSED " nothing;");
}

Test(execs_starved, may_run_when_it_comes_again)
{
	begin_without_slot();
	pass_seconds(LIMIT_SLOT_WAIT_MS);
	drained(1);
	slot_ready(0);
	forget_trace();
	exec_short(1);
	expect("admitted 1;run 0 id=1 4/4;");
}

Test(execs_starved, starts_anew_once_there_was_a_slot)
{
	begin_without_slot();
	pass_seconds(LIMIT_SLOT_SHORT_MS - 1000);
	slot_ready(0);
	expect("fetch 1@0;");
	exec_short(2);
	fake.slots[0] = FAKE_ABSENT;
	pass_seconds(LIMIT_SLOT_WAIT_MS);
	expect("admitted 2;");
}

/* Who waits for a place has no claim to more. */
Test(execs_starved, lets_the_queue_wait_behind_what_runs)
{
	begin(1);
	exec_short(1);
	slot_says(SLOT_STARTED, 0);
	exec_short(2);
	forget_trace();
	pass_seconds(10 * LIMIT_SLOT_WAIT_MS);
	expect("");
}

Test(execs_starved, was_not_while_all_of_it_was_frozen)
{
	begin_without_slot();
	pass_ms(3600 * 1000);
	pass_ms(1000);
	expect("");
}

/* A slot is there, but no process for bash. */
static void has_no_process(void)
{
	begin(1);
	exec_short(1);
	forget_trace();
}

Test(execs_starved, gives_up_what_was_left_behind_for_bash_itself)
{
	has_no_process();
	fake.minders = 1;
	slot_says(SLOT_START_FAILED, 0, .value = OUTCOME_START_VALUE(START_PROCESS, EAGAIN));
	expect("give up;release 0;");
	pass_ms(1000);
	expect("fetch 1@0;");
}

Test(execs_starved, refuses_when_nothing_was_left_behind)
{
	has_no_process();
	slot_says(SLOT_START_FAILED, 0, .value = OUTCOME_START_VALUE(START_PROCESS, EAGAIN));
	expect("give up;release 0;ended 1 start:196619 nothing;");
}
