/* netd's side of the channel: what execd says, and what the relay sent handed on to execd as records. Nothing
 * piles up: what the channel does not take now is a state bit of its exec, or the one server frame at hand,
 * and while anything is owed no other server frame is read. */
#ifndef NETD_RECORDS_H
#define NETD_RECORDS_H

#include "common/channel_io.h"
#include "common/loop.h"
#include "netd/frames.h"
#include "netd/sched.h"
#include "netd/settings.h"
#include "netd/work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORDS_PASS      64u   /* records read in one pass */
#define RECORDS_CLOSED_MS 1000u /* the last record may wait this long for room */

/* The server frame at hand, until its record is sent. */
struct records_pending {
	enum frames_kind kind; /* FRAMES_NOTHING: none */
	struct frames_server frame;
	struct channel_exec exec;
	uint8_t *message; /* owned; NULL when it is not to be held */
	size_t size;
};

struct records {
	struct channel channel;
	struct loop *loop;
	struct loop_source source;
	struct loop_timer alive;
	struct settings *settings;
	struct sched *sched;
	struct works works;
	struct records_pending pending;
	unsigned owed; /* works that owe a DRAINED, a COMMAND or a QUIET */
	bool goaway_owed;
	bool alive_owed;
	bool readable;
	bool watching;         /* for room, too */
	bool drain;            /* DRAIN has come */
	bool lost;             /* execd is gone */
	uint8_t fault;         /* enum channel_close_class: the connection cannot go on; 0: fine */
	const char *fault_why; /* static */
	uint64_t frames_in;
	uint8_t buf[LIMIT_RECORD];
};

/* fd is netd's end of the channel, taken over. */
void records_init(struct records *r, int fd, struct settings *settings);

/* Start-up, blocking: takes SETs into the settings until last (CHANNEL_JAIL or CHANNEL_DIAL) has come, and
 * says ALIVE now and then once that is due. 0; -ECANCELED: DRAIN came instead; -EPIPE: execd is gone; -EPROTO
 * or -EINVAL, logged. */
int records_await(struct records *r, enum channel_type last);

/* One record without a body, in its phase's order: JAILED, ATTACHED. 0 or -errno. */
int records_say(struct records *r, enum channel_type type);

/* From here on records are read by the loop. 0 or -errno. */
int records_run(struct records *r, struct loop *loop, struct sched *sched);

/* One pass: what is owed, then what has come. 0, or -errno: the channel is over (logged when it is a
 * violation). */
int records_pass(struct records *r, uint64_t now_ms);

/* The channel is no longer read; records_closed may still write to it. Harmless twice. */
void records_stop(struct records *r);

/* sched's done: queues the terminal frame, then says DRAINED. owner is the records. */
void records_output_done(void *owner, struct output *o);
/* sched's quiet: says QUIET. */
void records_output_quiet(void *owner, struct output *o);

/* False: a server frame must wait. */
bool records_ready(const struct records *r);

/* A message of the relay; only when records_ready. Takes message over. 0, or -EBADMSG: it cannot be decoded
 * and concerns no exec that could be named (the call fails). */
int records_message(struct records *r, uint8_t *message, size_t size);

/* One that was too long and was read through. As records_message. */
int records_skipped(struct records *r, const struct frames_skim *skim);

/* The connection cannot go on, by our own doing; why is static. The first one counts. */
void records_fail(struct records *r, uint8_t close_class, const char *why);

/* The relay said GOAWAY and our stream may go on. */
void records_goaway(struct records *r);

/* The last record. Waits for room for RECORDS_CLOSED_MS at most. */
void records_closed(struct records *r, const struct channel_closed *closed);

/* records_out.c, for records_pass: sends the server frame at hand. 0, -EAGAIN or -errno. */
int records_push(struct records *r);
/* records_in.c, for records_pass: acts on one record. 0, or -EPROTO with *ret_why (static). */
int records_take(struct records *r, const struct channel_record *record, uint64_t now_ms,
		 const char **ret_why);
/* records.c, for the others: sends, or says that the channel is full. 0, -EAGAIN or -errno. */
int records_send(struct records *r, enum channel_type type, uint8_t flags, uint64_t req_id, const void *block,
		 size_t block_size, const void *bytes, size_t size);
/* records_in.c, for records.c: sends what w owes. 0, -EAGAIN or -errno; w may be free afterwards. */
int records_settle(struct records *r, struct work *w);

#endif
