#include "execd/backoff.h"

#include "common/limits.h"

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014): spreads in time, keeps no secret. */
static uint64_t next_random(struct backoff *b)
{
	uint64_t z = b->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void backoff_init(struct backoff *b, uint64_t seed)
{
	*b = (struct backoff){.base_ms = LIMIT_BACKOFF_MIN_MS, .state = seed};
}

uint32_t backoff_next(struct backoff *b)
{
	uint32_t span = 2 * b->base_ms < LIMIT_BACKOFF_MAX_MS ? 2 * b->base_ms : LIMIT_BACKOFF_MAX_MS;

	b->base_ms = span;
	return (uint32_t)((next_random(b) >> 32) * (span + UINT64_C(1)) >> 32);
}

bool backoff_of_use(uint64_t attached_for_ms, uint64_t frames)
{
	return attached_for_ms >= LIMIT_STEADY_MS || frames > 0;
}

void backoff_ended(struct backoff *b, uint64_t attached_for_ms, uint64_t frames)
{
	if (backoff_of_use(attached_for_ms, frames))
		b->base_ms = LIMIT_BACKOFF_MIN_MS;
}
