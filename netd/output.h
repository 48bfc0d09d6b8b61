/* What a command writes: its two pipes, how long they are read after its end, and, for an exec that does not
 * stream, the buffer until then. No knowledge of HTTP/2; sched.c decides when a pipe is read.
 *
 * Two clocks: now_ms is CLOCK_MONOTONIC; open_ms is the same without the time in which the relay took
 * nothing. What streams is judged by open_ms, since a relay that stalls must not cost the last lines; what is
 * buffered by now_ms. */
#ifndef NETD_OUTPUT_H
#define NETD_OUTPUT_H

#include "common/channel.h"
#include "common/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define OUTPUT_BLOCK (64u * LIMIT_KIB)
#define OUTPUT_TINY  1024u /* a read below this is tiny */
#define OUTPUT_TINY_READS                                                                                    \
	32u /* more of them in OUTPUT_TINY_MS: the pipe is served once a ms until it is quiet */
#define OUTPUT_TINY_MS   10u
#define OUTPUT_BIG_PIPE  (256 * 1024)
#define OUTPUT_BIG_AFTER (1u * LIMIT_MIB) /* bytes after which a pipe is made bigger */

enum { OUTPUT_STDOUT, OUTPUT_STDERR, OUTPUT_PIPES };

struct output;
struct output_block;

struct output_pipe {
	int fd; /* -1: at its end, or given up */
	uint8_t stream;
	bool readable; /* no EAGAIN since the last event */
	struct output *output;
	struct loop_source source;
	/* sched.c's ring of pipes that may give a Chunk, or that are to be read into the buffer */
	bool ringed;
	struct output_pipe *next;
	struct output_pipe *prev;

	uint64_t bytes;        /* read since the start */
	uint64_t bytes_at_end; /* of these, before the leader's end (LEFT, ENDED) was told */
	uint64_t left;         /* bytes that were in it then: read whatever the clocks say */
	bool dry;              /* was seen empty since then */
	uint64_t dropped;
	bool big;

	unsigned tiny_reads;
	uint64_t tiny_since_ms;
	bool paced;
	uint64_t not_before_ms; /* while paced */

	struct output_block *first; /* buffered, not yet taken */
	struct output_block *last;
	size_t buffered; /* bytes ever put there, at most LIMIT_BUFFERED */
	size_t waiting;  /* of these, not yet taken */
	size_t taken;    /* of the first block */
};

struct output {
	struct loop *loop;
	void *owner;            /* of the pipes' ready function */
	struct loop_timer look; /* after the leader's end: when to look again */
	uint64_t req_id;
	bool streaming;
	struct output_pipe pipe[OUTPUT_PIPES];
	bool left;      /* LEFT has come */
	bool quiet;     /* and was answered */
	bool ended;     /* ENDED has come */
	bool read_over; /* the pipes are done with */
	struct channel_ended how;
	enum channel_reading reading;
	uint64_t ended_clock; /* of the clock that counts for it */
	uint64_t ended_ms;
	uint64_t data_clock; /* of the last read that brought bytes */
	uint64_t sent;       /* bytes given to Chunks */
};

/* Takes over both read ends (O_NONBLOCK) and watches them, edge-triggered; ready is called with a source
 * whose owner is the pipe. 0 or -errno (the ends are closed then). */
int output_open(struct output *o, struct loop *loop, uint64_t req_id, bool streaming,
		const int fds[OUTPUT_PIPES], void (*ready)(struct loop_source *source, uint32_t events));
/* Closes and frees what is left. */
void output_free(struct output *o);

/* The leader has ended, others live and will be killed: output_read_enough says when they had their time. */
void output_left(struct output *o, uint64_t now_ms, uint64_t open_ms);
/* The leader has ended. Looks at once what the pipes hold. */
void output_end(struct output *o, const struct channel_ended *how, uint64_t now_ms, uint64_t open_ms);

/* Bytes for Chunks: streaming from the pipe, else from the buffer. The count, 0 at the end of it, or -EAGAIN.
 */
ssize_t output_take(struct output_pipe *p, const struct iovec *iov, int count, uint64_t now_ms,
		    uint64_t open_ms);

/* Reads into the buffer; beyond LIMIT_BUFFERED into nothing. At most OUTPUT_BLOCK bytes. As output_take. */
ssize_t output_absorb(struct output_pipe *p, uint64_t now_ms);

/* After LEFT or ENDED: has enough been read? False: look again after *ret_wait_ms at the latest. A pipe that
 * was quiet may have become readable. */
bool output_read_enough(struct output *o, uint64_t now_ms, uint64_t open_ms, uint64_t *ret_wait_ms);

/* No more reading. What the command had written and is not read counts as dropped. */
void output_stop(struct output *o);

/* Bytes wait in the buffer. */
bool output_waiting(const struct output *o);

/* stdout lost bytes. */
bool output_truncated(const struct output *o);
uint64_t output_dropped(const struct output *o);

#endif
