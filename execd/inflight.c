#include "execd/inflight.h"

#include "common/fd.h"
#include "execd/slots.h"

#include <stddef.h>

static struct exec entries[INFLIGHT_MAX];
static struct exec *by_slot[INFLIGHT_SLOTS];
static size_t end; /* no entry at or beyond it is in use */

static bool is_dying(const struct exec *e)
{
	return e->state == EXEC_DYING || e->state == EXEC_STUCK;
}

struct exec *inflight_add(uint64_t req_id)
{
	size_t i = 0;

	while (i < end && entries[i].state != EXEC_FREE)
		i++;
	if (i == INFLIGHT_MAX)
		return NULL;
	if (i == end)
		end++;
	entries[i] = (struct exec){
	    .req_id = req_id,
	    .state = EXEC_WAITING,
	    .slot = INFLIGHT_NO_SLOT,
	    .alive = SLOT_COUNT_UNKNOWN,
	    .pipes = {-1, -1, -1},
	};
	return &entries[i];
}

void inflight_close_pipes(struct exec *exec)
{
	for (int i = 0; i < 3; i++)
		fd_close(&exec->pipes[i]);
}

void inflight_free(struct exec *exec)
{
	inflight_set_slot(exec, INFLIGHT_NO_SLOT);
	inflight_close_pipes(exec);
	exec->state = EXEC_FREE;
	while (end > 0 && entries[end - 1].state == EXEC_FREE)
		end--;
}

static struct exec *find(uint64_t req_id, bool dying)
{
	for (size_t i = 0; i < end; i++) {
		struct exec *e = &entries[i];

		if (e->state != EXEC_FREE && e->req_id == req_id && is_dying(e) == dying)
			return e;
	}
	return NULL;
}

struct exec *inflight_find(uint64_t req_id)
{
	return find(req_id, false);
}

struct exec *inflight_find_dying(uint64_t req_id)
{
	return find(req_id, true);
}

struct exec *inflight_of_slot(unsigned slot)
{
	return slot < INFLIGHT_SLOTS ? by_slot[slot] : NULL;
}

void inflight_set_slot(struct exec *exec, int slot)
{
	if (exec->slot != INFLIGHT_NO_SLOT)
		by_slot[exec->slot] = NULL;
	exec->slot = slot;
	if (slot != INFLIGHT_NO_SLOT)
		by_slot[slot] = exec;
}

struct exec *inflight_next(const struct exec *after)
{
	for (size_t i = after ? (size_t)(after - entries) + 1 : 0; i < end; i++) {
		if (entries[i].state != EXEC_FREE)
			return &entries[i];
	}
	return NULL;
}
