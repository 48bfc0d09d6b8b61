#include "execd/cache.h"

#include "common/limits.h"

#include <criterion/criterion.h>
#include <string.h>

static const uint8_t work[CHANNEL_FINGERPRINT] = "some work";
static const uint8_t other_work[CHANNEL_FINGERPRINT] = "other work";

static void put(uint64_t id, uint32_t code)
{
	cache_put(id, work, &(struct outcome){OUTCOME_EXITED, code}, false);
}

static enum cache_match look(uint64_t id)
{
	struct outcome o;
	bool truncated;

	return cache_lookup(id, work, &o, &truncated);
}

Test(cache, holds_256_and_no_more)
{
	for (uint64_t id = 1; id <= LIMIT_CACHED - 1; id++)
		put(id, 0);
	cr_assert_eq(cache_count(), LIMIT_CACHED - 1);
	put(LIMIT_CACHED, 0);
	cr_assert_eq(cache_count(), LIMIT_CACHED);
	cr_assert_eq(look(1), CACHE_SAME);
	put(LIMIT_CACHED + 1, 0);
	cr_assert_eq(cache_count(), LIMIT_CACHED);
	cr_assert_eq(look(LIMIT_CACHED + 1), CACHE_SAME);
	cr_assert_eq(look(2), CACHE_UNKNOWN);
}

Test(cache, evicts_the_least_recently_used)
{
	for (uint64_t id = 1; id <= LIMIT_CACHED; id++)
		put(id, 0);
	for (uint64_t id = LIMIT_CACHED; id >= 1; id--)
		cr_assert_eq(look(id), CACHE_SAME);
	/* Now the last that came is the one used longest ago. */
	for (uint64_t i = 0; i < LIMIT_CACHED; i++) {
		put(1000 + i, 0);
		for (uint64_t id = 1; id <= LIMIT_CACHED; id++) {
			struct outcome o;
			bool truncated;
			bool there = cache_lookup(id, other_work, &o, &truncated) != CACHE_UNKNOWN;

			cr_assert_eq(there, id < LIMIT_CACHED - i);
		}
	}
}

Test(cache, putting_again_counts_as_a_use)
{
	for (uint64_t id = 1; id <= LIMIT_CACHED; id++)
		put(id, 0);
	put(1, 7);
	cr_assert_eq(cache_count(), LIMIT_CACHED);
	put(1000, 0);
	cr_assert_eq(look(1), CACHE_SAME);
	cr_assert_eq(look(2), CACHE_UNKNOWN);
}

Test(cache, tells_other_work_apart_and_lets_it_replace)
{
	struct outcome o = {OUTCOME_LOST, 0};
	bool truncated = true;

	put(7, 3);
	cr_assert_eq(cache_lookup(7, other_work, &o, &truncated), CACHE_OTHER);
	cr_assert(o.kind == OUTCOME_LOST && truncated, "untouched");
	cache_put(7, other_work, &(struct outcome){OUTCOME_TIMEOUT, 9}, false);
	cr_assert_eq(look(7), CACHE_OTHER);
	cr_assert_eq(cache_lookup(7, other_work, &o, &truncated), CACHE_SAME);
	cr_assert(o.kind == OUTCOME_TIMEOUT && o.value == 9 && !truncated);
	cr_assert_eq(cache_count(), 1);
}

Test(cache, every_byte_of_the_fingerprint_counts)
{
	put(7, 3);
	for (size_t i = 0; i < CHANNEL_FINGERPRINT; i++) {
		uint8_t near[CHANNEL_FINGERPRINT];
		struct outcome o;
		bool truncated;

		memcpy(near, work, sizeof near);
		near[i] ^= 0x80;
		cr_assert_eq(cache_lookup(7, near, &o, &truncated), CACHE_OTHER);
	}
}

Test(cache, truncation_is_added_to_the_same_work_only)
{
	struct outcome o;
	bool truncated;

	put(7, 3);
	cache_set_truncated(7, other_work);
	cache_set_truncated(8, work);
	cr_assert_eq(cache_lookup(7, work, &o, &truncated), CACHE_SAME);
	cr_assert(!truncated);
	cache_set_truncated(7, work);
	cr_assert_eq(cache_lookup(7, work, &o, &truncated), CACHE_SAME);
	cr_assert(truncated && o.value == 3);
	cr_assert_eq(cache_count(), 1);
}

Test(cache, takes_any_id)
{
	put(0, 1);
	put(UINT64_MAX, 2);
	cr_assert_eq(look(0), CACHE_SAME);
	cr_assert_eq(look(UINT64_MAX), CACHE_SAME);
	cr_assert_eq(look(1), CACHE_UNKNOWN);
	cache_clear();
	cr_assert_eq(cache_count(), 0);
	cr_assert_eq(look(0), CACHE_UNKNOWN);
}
