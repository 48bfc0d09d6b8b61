/* The wait between two attempts. */
#include "execd/backoff.h"

#include "common/limits.h"

#include <criterion/criterion.h>

Test(backoff, doubles_its_span_up_to_the_limit)
{
	static const uint32_t spans[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000};
	uint32_t longest[8] = {0};

	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct backoff b;

		backoff_init(&b, seed);
		for (int i = 0; i < 8; i++) {
			uint32_t wait = backoff_next(&b);

			cr_assert_leq(wait, spans[i]);
			longest[i] = wait > longest[i] ? wait : longest[i];
		}
	}
	for (int i = 0; i < 8; i++)
		cr_assert_gt(longest[i], spans[i] - spans[i] / 20, "span %d is not used", i);
}

/* Ten equal parts of [0, 30 s]: each gets a tenth of 20,000 draws, within five standard deviations (42). */
Test(backoff, is_uniform)
{
	unsigned parts[10] = {0};
	struct backoff b;

	backoff_init(&b, 7);
	for (int i = 0; i < 8; i++)
		backoff_next(&b);
	for (int i = 0; i < 20000; i++) {
		uint32_t wait = backoff_next(&b);

		parts[wait == 30000 ? 9 : wait / 3000]++;
	}
	for (int i = 0; i < 10; i++)
		cr_assert(parts[i] > 1788 && parts[i] < 2212, "part %d got %u", i, parts[i]);
}

Test(backoff, differs_by_seed_and_repeats_with_it)
{
	struct backoff a, b, c;
	unsigned same = 0;

	backoff_init(&a, 1);
	backoff_init(&b, 1);
	backoff_init(&c, 2);
	for (int i = 0; i < 32; i++) {
		uint32_t wait = backoff_next(&a);

		cr_assert_eq(wait, backoff_next(&b));
		same += wait == backoff_next(&c);
	}
	cr_assert_lt(same, 4);
}

Test(backoff, returns_only_after_a_steady_connection_or_a_frame)
{
	struct backoff b;

	backoff_init(&b, 1);
	for (int i = 0; i < 4; i++)
		backoff_next(&b);
	cr_assert_eq(b.base_ms, 8000);
	backoff_ended(&b, 0, 0);
	cr_assert_eq(b.base_ms, 8000);
	backoff_ended(&b, LIMIT_STEADY_MS - 1, 0);
	cr_assert_eq(b.base_ms, 8000);
	backoff_ended(&b, LIMIT_STEADY_MS, 0);
	cr_assert_eq(b.base_ms, LIMIT_BACKOFF_MIN_MS);
	backoff_next(&b);
	backoff_ended(&b, 1, 1);
	cr_assert_eq(b.base_ms, LIMIT_BACKOFF_MIN_MS);
}
