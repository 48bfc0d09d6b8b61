/* When to dial again (contract.md 10): b is 500 ms and doubles to 30 s, the wait is uniform in [0, min(2b, 30
 * s)], so that a fleet which lost its relay together does not come back together. */
#ifndef EXECD_BACKOFF_H
#define EXECD_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct backoff {
	uint32_t base_ms; /* after backoff_next also the bound of what it gave */
	uint64_t state;   /* of the generator */
};

/* seed: random; a test gives its own. */
void backoff_init(struct backoff *b, uint64_t seed);

/* The wait before the next attempt in milliseconds; doubles b. */
uint32_t backoff_next(struct backoff *b);

/* Whether an ended connection was of use: it stood for LIMIT_STEADY_MS from the Hello on, or brought a
 * ServerFrame. A relay refuses a bad token by ending the stream right after Hello with status OK, and a
 * worker that took this for a success would hammer it. */
bool backoff_of_use(uint64_t attached_for_ms, uint64_t frames);

/* What an ended connection means for b: it returns to its minimum after one that was of use. */
void backoff_ended(struct backoff *b, uint64_t attached_for_ms, uint64_t frames);

#endif
