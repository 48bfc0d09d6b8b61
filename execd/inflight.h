/* The execs that are not over: queued, running, dying. A fixed table; nothing is allocated. */
#ifndef EXECD_INFLIGHT_H
#define EXECD_INFLIGHT_H

#include "common/channel.h"
#include "common/limits.h"
#include "common/loop.h"
#include "common/outcome.h"
#include "execd/exec_state.h"

#include <stdbool.h>
#include <stdint.h>

/* What runs, what waits, and what was answered but is not handed over yet without having a place: one that
 * was aborted in the queue. netd hands those over at once, so the room is for a burst; past it an exec is
 * refused. */
#define INFLIGHT_ANSWERED 64u
#define INFLIGHT_MAX      (LIMIT_CONCURRENT + LIMIT_WAITING + INFLIGHT_ANSWERED)

#define INFLIGHT_SLOTS   (2u * LIMIT_CONCURRENT + LIMIT_MINDERS) /* slot numbers are below */
#define INFLIGHT_NO_SLOT (-1)

/* What netd is still to be told; sent in this order. */
enum exec_owed {
	EXEC_OWES_FETCH = 1,
	EXEC_OWES_STARTED = 2,
	EXEC_OWES_LEFT = 4,
	EXEC_OWES_ENDED = 8,
};

struct exec {
	uint64_t req_id;
	enum exec_state state;
	uint8_t fingerprint[CHANNEL_FINGERPRINT];
	uint32_t timeout_s;
	uint32_t command_len;
	uint32_t stdin_len;
	uint32_t tries; /* slots that were lost before they had read its command */
	uint32_t given; /* bytes of the command that the slot has */
	uint32_t alive; /* processes that a kill had not reached at the last count, or SLOT_COUNT_UNKNOWN */
	int slot;       /* or INFLIGHT_NO_SLOT */
	int pipes[3];   /* our ends until netd has them, else -1 */
	uint8_t owed;   /* enum exec_owed bits */
	bool placed; /* counts as running: held until DRAINED and until the slot is proven empty, or replaced
		      */
	bool fetching;    /* a FETCH without its COMMAND */
	bool announced;   /* netd has, or is owed, the pipes */
	bool asked_quiet; /* a LEFT without its QUIET */
	bool kept;        /* ENDED: what the leader left behind lives on */
	bool killed;      /* ENDED: what is in the pipes is of a killed command */
	bool cut;         /* not all of its output was handed over */
	bool decided;     /* outcome is final */
	bool replaced;    /* dying, and its id was answered since: what becomes of it now answers nobody */
	bool heir;        /* it came while an earlier run of its id was dying */
	bool reported;
	bool oom;
	const char *why; /* a word for the log: what no Abort brought, yet ends like one; NULL */
	struct outcome
	    reason; /* of the kill; kind 0: none. Becomes the outcome unless the leader exits by itself */
	struct outcome outcome;
	uint64_t received_ms;
	uint64_t started_ms; /* 0: it did not */
	uint64_t ended_ms;   /* when it was decided */
	struct loop_timer timer;
};

/* A free entry, in use from now on in state EXEC_WAITING, everything else zero or none; NULL when there is
 * none. */
struct exec *inflight_add(uint64_t req_id);

/* Gives back; its timer is not armed any more. Pipes that it still has are closed. */
void inflight_free(struct exec *exec);

/* Our ends, as far as it still has them. */
void inflight_close_pipes(struct exec *exec);

/* The exec of this id that netd knows: one at most. NULL. */
struct exec *inflight_find(uint64_t req_id);

/* An exec of this id whose answer nobody waits for any more, but which is not proven dead (EXEC_DYING,
 * EXEC_STUCK): one at most, for while it is there no other starts under its id. NULL. */
struct exec *inflight_find_dying(uint64_t req_id);

/* Who holds the slot, or NULL. The number comes from slots.c. */
struct exec *inflight_of_slot(unsigned slot);
void inflight_set_slot(struct exec *exec, int slot);

/* All entries in use: start with NULL; NULL after the last. An entry may be freed meanwhile. */
struct exec *inflight_next(const struct exec *after);

#endif
