/* The outcomes of the last LIMIT_CACHED execs that were decided (contract.md 9): what came before is answered
 * again and never runs twice. A fixed table, the least recently used goes first. Outlives every netd. */
#ifndef EXECD_CACHE_H
#define EXECD_CACHE_H

#include "common/channel.h"
#include "common/outcome.h"

#include <stdbool.h>
#include <stdint.h>

enum cache_match {
	CACHE_UNKNOWN,
	CACHE_SAME,  /* the same work under this id: answer with its outcome */
	CACHE_OTHER, /* other work under this id: run it, and its outcome replaces the entry */
};

/* CACHE_SAME sets *ret_outcome and *ret_truncated and counts as a use. */
enum cache_match cache_lookup(uint64_t req_id, const uint8_t fingerprint[CHANNEL_FINGERPRINT],
			      struct outcome *ret_outcome, bool *ret_truncated);

/* Enters an outcome, or replaces that of the same id. outcome_cached(outcome) holds. */
void cache_put(uint64_t req_id, const uint8_t fingerprint[CHANNEL_FINGERPRINT], const struct outcome *outcome,
	       bool truncated);

/* Not all of its output was handed over: a replay must say so. Nothing where the entry is gone or is other
 * work. */
void cache_set_truncated(uint64_t req_id, const uint8_t fingerprint[CHANNEL_FINGERPRINT]);

uint32_t cache_count(void);

/* Forgets all. */
void cache_clear(void);

#endif
