/* What happens to one exec: looks up the cell of exec_state.h and does its action, through slots.h and
 * records.h. */
#ifndef EXECD_EXEC_LIFE_H
#define EXECD_EXEC_LIFE_H

#include "common/loop.h"
#include "execd/execs.h"
#include "execd/inflight.h"
#include "execd/slots.h"

#include <stddef.h>
#include <stdint.h>

/* What comes with an event; what an event has no use for is zero. */
struct exec_note {
	const struct slot_event *slot; /* the slot's events */
	const uint8_t *bytes;          /* EXEC_ON_PIECE, EXEC_ON_TURN_WHOLE */
	uint32_t size;                 /* of bytes */
	struct outcome outcome; /* EXEC_ON_REFUSE, EXEC_ON_RUN_FAILED, EXEC_ON_BROKEN; EXEC_ON_KILL: of what
				   never ran */
	const struct channel_drained *drained; /* EXEC_ON_DRAINED */
	bool truncated;                        /* EXEC_ON_DRAINED */
	const char *why;                       /* EXEC_ON_KILL: a word for the log */
};

/* counters: this module counts what it decides. expired is called from the loop when an exec's time is up,
 * and is to step it by EXEC_ON_TIMER. */
void exec_life_init(struct loop *loop, struct execs_counters *counters,
		    void (*expired)(struct loop_timer *timer, uint64_t now_ms));

/* One event. note may be NULL. The entry may be free afterwards. 0, or -EPROTO: netd answered what it was not
 * asked, and nothing has changed. */
int exec_life_step(struct exec *exec, enum exec_event event, const struct exec_note *note);

/* What waits and is known to be done is answered so. False: it is not known. */
bool exec_life_recall(struct exec *exec);

/* Its slot is gone before it had the whole command, so nothing ran: it waits for another, at the head of the
 * queue, unless it is to end anyway, has lost LIMIT_SLOT_TRIES slots, or a piece of its command is still on
 * the way from netd; then it counts as one that could not be started. */
void exec_life_slot_unread(struct exec *exec);

/* Nothing of it ran, so EXEC_ON_UNREAD may have it wait for another slot. */
bool exec_life_may_run_again(const struct exec *exec);

/* The exec's timer has fired. True where it was to end the wait for a proof and comes so late that all of us
 * must have been stopped meanwhile, the slot too: it is set anew, for a moment in which the slot can say what
 * it could not. */
bool exec_life_put_off(struct exec *e, uint64_t now_ms);

/* From now on a kill has this long for its proof; kills that are under way, too. */
void exec_life_shorten_proof(uint32_t proof_ms);

#endif
