/* Many execs: nothing grows, everything returns to rest. */
#include "tests/unit/execd/fakes.h"

Test(volume, full_house_of_256_and_64, .timeout = 60)
{
	size_t before;

	begin(LIMIT_CONCURRENT);
	fake.tracing = false;
	before = open_descriptors();
	for (uint64_t id = 0; id < LIMIT_CONCURRENT + LIMIT_WAITING; id++)
		exec(id, 1, .command = "true", .timeout_s = 1);
	cr_assert_eq(execs_counters()->running, LIMIT_CONCURRENT);
	cr_assert_eq(execs_counters()->waiting, LIMIT_WAITING);
	for (unsigned slot = 0; slot < LIMIT_CONCURRENT; slot++)
		slot_says(SLOT_STARTED, slot);
	pass_ms(1000);
	cr_assert_eq(open_descriptors(), before);
	for (unsigned slot = 0; slot < LIMIT_CONCURRENT; slot++) {
		slot_is_killed(slot);
		slot_says(SLOT_EMPTY, slot);
	}
	for (uint64_t id = 0; id < LIMIT_CONCURRENT; id++)
		drained(id);
	cr_assert_eq(execs_counters()->running, LIMIT_WAITING);
	cr_assert_eq(execs_counters()->timeouts, LIMIT_CONCURRENT);
	cr_assert_eq(execs_counters()->cached, LIMIT_CACHED);
	execs_stream_lost();
	for (unsigned slot = 0; slot < LIMIT_CONCURRENT; slot++) {
		if (inflight_of_slot(slot))
			slot_says(SLOT_EMPTY, slot);
	}
	is_at_rest();
	cr_assert_eq(open_descriptors(), before);
}

/* A place whose slot is still being made is a place: only who finds none counts as waiting. */
Test(volume, places_without_a_slot_leave_the_queue_its_64)
{
	enum { PLACES = 10 };

	begin(PLACES);
	fake.tracing = false;
	for (unsigned slot = 2; slot < PLACES; slot++)
		fake.slots[slot] = FAKE_ABSENT;
	for (uint64_t id = 0; id < PLACES + LIMIT_WAITING; id++)
		exec(id, 1, .command = "true");
	cr_assert_eq(execs_counters()->running, 2);
	cr_assert_eq(execs_counters()->refused, 0);
	exec(1000, 1, .command = "true");
	cr_assert_eq(execs_counters()->refused, 1);
	for (unsigned slot = 2; slot < PLACES; slot++)
		slot_ready(slot);
	cr_assert_eq(execs_counters()->running, PLACES);
	cr_assert_eq(execs_counters()->waiting, LIMIT_WAITING);
	exec(1001, 1, .command = "true");
	cr_assert_eq(execs_counters()->refused, 2);
	execs_stream_lost();
	for (unsigned slot = 0; slot < PLACES; slot++)
		slot_says(SLOT_EMPTY, slot);
	is_at_rest();
}

/* row 31 of "right in the field" (tests/contract/test_field.c). Each exec of the loop ends in one of the ways
 * there are. */
static void one(uint64_t id)
{
	exec(id, 1, .command = "true", .timeout_s = id % 7 == 3 ? 1 : 0);
	switch (id % 7) {
	case 0:
		slot_says(SLOT_START_FAILED, 0, .value = OUTCOME_START_VALUE(START_EXEC, ENOENT));
		drained(id);
		return;
	case 1:
		execs_on_abort(id);
		slot_says(SLOT_EMPTY, 0);
		drained(id);
		return;
	case 2:
		slot_says(SLOT_STARTED, 0);
		execs_stream_lost();
		slot_is_killed(0);
		slot_says(SLOT_EMPTY, 0);
		return;
	case 3:
		slot_says(SLOT_STARTED, 0);
		pass_ms(1000);
		slot_is_killed(0);
		slot_says(SLOT_EMPTY, 0);
		drained(id);
		return;
	case 4:
		slot_says(SLOT_STARTED, 0);
		slot_exits(0, 0);
		slot_says(SLOT_MINDING, 0, .count = 1);
		drained(id);
		slot_ready(0);
		return;
	case 5:
		slot_says(SLOT_STARTED, 0);
		execs_on_abort(id);
		pass_ms(LIMIT_KILL_PROOF_MS);
		drained(id);
		slot_says(SLOT_EMPTY, 0);
		return;
	default:
		slot_says(SLOT_STARTED, 0);
		slot_exits(0, 0);
		slot_says(SLOT_EMPTY, 0);
		drained(id);
	}
}

Test(volume, a_hundred_thousand_execs_leave_nothing_behind, .timeout = 300)
{
	size_t before;
	int saved = dup(STDERR_FILENO);
	int null = open("/dev/null", O_WRONLY);

	begin(1);
	fake.tracing = false;
	dup2(null, STDERR_FILENO); /* 14,285 kills without proof, each logged */
	before = open_descriptors();
	for (uint64_t id = 0; id < 100000; id++)
		one(id);
	dup2(saved, STDERR_FILENO);
	is_at_rest();
	cr_assert_eq(open_descriptors(), before);
	cr_assert_eq(execs_counters()->received, 100000);
	cr_assert_eq(execs_counters()->cached, LIMIT_CACHED);
	cr_assert_eq(execs_counters()->ended + execs_counters()->lost, 100000);
	cr_assert_eq(fake.audited[1], 100000);
}
