/* What is on its way out: message bytes that were offered to HTTP/2, the frames made of them, and the iovecs
 * of the next write. Payload bytes are never copied here; only HTTP/2's own frames are. One a connection,
 * fixed size. */
#ifndef NETD_BATCH_H
#define NETD_BATCH_H

#include "netd/frames.h"
#include "netd/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define BATCH_SLOTS      4u
#define BATCH_SLOT_DATA  32u /* offset of the data in a slot; its head is put right before it */
#define BATCH_SEGMENTS   16u
#define BATCH_HEADS      64u
#define BATCH_IOVECS     256
#define BATCH_OWN        (64u * 1024u)
#define BATCH_OWN_PIECE  (17u * 1024u) /* no smaller room is offered to nghttp2 for a frame of its own */
#define BATCH_FRAME_HEAD 9u

struct batch_segment {
	const uint8_t *at;
	size_t size;
};

struct batch {
	struct batch_segment segment[BATCH_SEGMENTS]; /* offered, in the order of the stream */
	unsigned segment_at;
	unsigned segment_count;
	size_t unframed; /* bytes of the segments that are in no frame yet */

	struct iovec iov[BATCH_IOVECS];
	int iov_at;
	int iov_count;
	uint8_t head[BATCH_HEADS][BATCH_FRAME_HEAD];
	unsigned head_count;
	uint8_t own[BATCH_OWN];
	size_t own_used;

	uint8_t slot[BATCH_SLOTS][BATCH_SLOT_DATA + FRAMES_CHUNK];
	unsigned slot_count; /* taken by segments */
	uint64_t written;    /* bytes that the transport took, in all */
};

/* Offers message bytes, which must stay until batch_idle. The caller knows that there is place
 * (batch_places). */
void batch_offer(struct batch *b, const uint8_t *at, size_t size);
unsigned batch_places(const struct batch *b);

/* A DATA frame of the next size unframed bytes. False: no place, nothing has changed. */
bool batch_frame(struct batch *b, const uint8_t head[BATCH_FRAME_HEAD], size_t size);

/* A frame of HTTP/2's own, copied. Only when batch_takes_own(). */
void batch_own(struct batch *b, const uint8_t *at, size_t size);
bool batch_takes_own(const struct batch *b);

/* Writes what is framed. 0: all of it; -EAGAIN: the rest waits; else -errno. */
int batch_write(struct batch *b, struct transport *t);

/* Nothing is framed and unwritten. */
bool batch_is_written(const struct batch *b);

/* Nothing is offered, framed or unwritten: slots and offered bytes may be used again. */
bool batch_idle(const struct batch *b);

#endif
