#include "execd/cache.h"

#include "common/limits.h"

#include <stddef.h>
#include <string.h>

/* Searched from end to end: 256 entries are some 100 ns, a tree would only be more code. */
static struct cache_entry {
	uint64_t used; /* 0: free; else the higher, the later */
	uint64_t req_id;
	uint8_t fingerprint[CHANNEL_FINGERPRINT];
	struct outcome outcome;
	bool truncated;
} entries[LIMIT_CACHED];

static uint64_t uses;

static struct cache_entry *find(uint64_t req_id)
{
	for (size_t i = 0; i < LIMIT_CACHED; i++) {
		if (entries[i].used != 0 && entries[i].req_id == req_id)
			return &entries[i];
	}
	return NULL;
}

/* A free one has used 0, so it comes before every other. */
static struct cache_entry *least_recently_used(void)
{
	struct cache_entry *least = entries;

	for (size_t i = 1; i < LIMIT_CACHED; i++) {
		if (entries[i].used < least->used)
			least = &entries[i];
	}
	return least;
}

static bool same_work(const struct cache_entry *e, const uint8_t fingerprint[CHANNEL_FINGERPRINT])
{
	return memcmp(e->fingerprint, fingerprint, CHANNEL_FINGERPRINT) == 0;
}

enum cache_match cache_lookup(uint64_t req_id, const uint8_t fingerprint[CHANNEL_FINGERPRINT],
			      struct outcome *ret_outcome, bool *ret_truncated)
{
	struct cache_entry *e = find(req_id);

	if (!e)
		return CACHE_UNKNOWN;
	if (!same_work(e, fingerprint))
		return CACHE_OTHER;
	e->used = ++uses;
	*ret_outcome = e->outcome;
	*ret_truncated = e->truncated;
	return CACHE_SAME;
}

void cache_put(uint64_t req_id, const uint8_t fingerprint[CHANNEL_FINGERPRINT], const struct outcome *outcome,
	       bool truncated)
{
	struct cache_entry *e = find(req_id);

	if (!e)
		e = least_recently_used();
	*e = (struct cache_entry){
	    .used = ++uses, .req_id = req_id, .outcome = *outcome, .truncated = truncated};
	memcpy(e->fingerprint, fingerprint, CHANNEL_FINGERPRINT);
}

void cache_set_truncated(uint64_t req_id, const uint8_t fingerprint[CHANNEL_FINGERPRINT])
{
	struct cache_entry *e = find(req_id);

	if (e && same_work(e, fingerprint))
		e->truncated = true;
}

uint32_t cache_count(void)
{
	uint32_t count = 0;

	for (size_t i = 0; i < LIMIT_CACHED; i++)
		count += entries[i].used != 0;
	return count;
}

void cache_clear(void)
{
	memset(entries, 0, sizeof entries);
	uses = 0;
}
