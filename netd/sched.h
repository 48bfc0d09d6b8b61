/* What goes out next (byte-path.md in the design; measured there). Only what the relay's window can carry is
 * ever read from a command, so a relay that stalls stops the command by its pipe and costs no memory here. */
#ifndef NETD_SCHED_H
#define NETD_SCHED_H

#include "common/loop.h"
#include "netd/batch.h"
#include "netd/control.h"
#include "netd/h2.h"
#include "netd/output.h"
#include "netd/transport.h"

#include <stdbool.h>
#include <stdint.h>

#define SCHED_BATCHES 8u /* in one pass */
#define SCHED_RESERVE                                                                                        \
	4096u /* of the window, kept for control frames: Ends leave a relay that stopped reading */
#define SCHED_ROOM_MIN     64u /* less room than this is not worth a Chunk */
#define SCHED_SMALL_WINDOW 512u
#define SCHED_STALL_MS     1000u /* nothing taken for this long: the relay does not read */
#define SCHED_ABSORB_READS 8u    /* reads into the buffers in one pass, per pipe */

struct sched {
	struct h2 *h2;
	struct transport *transport;
	struct loop *loop;
	/* All of o is handed over: its terminal frame may be queued, and o forgotten. */
	void (*done)(void *owner, struct output *o);
	/* What was left behind (sched_left) had its time. */
	void (*quiet)(void *owner, struct output *o);
	void *owner;

	struct batch batch;
	struct control control;
	struct output_pipe *ring;   /* pipes that may give a Chunk now */
	struct output_pipe *absorb; /* pipes that are read into the buffer */
	bool heartbeat;             /* one is due */
	bool more;                  /* there is more to do without waiting for anything */
	bool blocked;               /* the socket takes nothing now */
	struct loop_timer pace;
	size_t initial; /* h2_window, when it was looked at last */
	size_t widest;  /* see measure() */

	/* the clock of open_ms */
	bool open;
	uint64_t open_ms;
	uint64_t since_ms; /* of the last progress */
	uint64_t stalled_ms;
	uint64_t bytes_out;
};

void sched_init(struct sched *s, struct loop *loop, struct h2 *h2,
		void (*done)(void *owner, struct output *o), void (*quiet)(void *owner, struct output *o),
		void *owner, uint64_t now_ms);
/* From now on there is a peer. */
void sched_connect(struct sched *s, struct transport *t);

/* Queues a terminal frame (or Hello). 0, or -ENOBUFS: the relay asks for more than it reads. */
int sched_control(struct sched *s, const uint8_t *frame, size_t size);

/* Takes the two read ends of a command that has started (see output_open). 0 or -errno. */
int sched_begin(struct sched *s, struct output *o, uint64_t req_id, bool streaming,
		const int fds[OUTPUT_PIPES]);

/* The leader has ended, others live: reads on, and calls quiet once they had their time, perhaps before this
 * returns; sched_end follows. */
void sched_left(struct sched *s, struct output *o, uint64_t now_ms);

/* The leader has ended: reads what is left, then calls done, perhaps before this returns. */
void sched_end(struct sched *s, struct output *o, const struct channel_ended *how, uint64_t now_ms);

/* Lets go of o, whatever its state, and frees what it holds. */
void sched_forget(struct sched *s, struct output *o);

/* One pass. 0, or -errno when the connection is lost. */
int sched_send(struct sched *s, uint64_t now_ms);

/* All that was queued has been written. */
bool sched_is_flushed(const struct sched *s);

/* Time without what the relay took nothing in. */
uint64_t sched_open_ms(const struct sched *s, uint64_t now_ms);

/* sched_pipes.c, for sched.c: p had nothing; and one round of reading into the buffers. */
void sched_pipe_empty(struct sched *s, struct output_pipe *p, uint64_t now_ms);
void sched_absorb(struct sched *s, uint64_t now_ms);

#endif
