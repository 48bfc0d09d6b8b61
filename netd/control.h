/* The control queue: terminal frames, refusals and replays that wait for the window. A ring of bytes, bounded
 * in bytes and in frames, so that a relay that asks and never reads costs a fixed amount. */
#ifndef NETD_CONTROL_H
#define NETD_CONTROL_H

#include "common/limits.h"
#include "netd/batch.h"

#include <stddef.h>
#include <stdint.h>

struct control {
	uint8_t ring[LIMIT_CONTROL_BYTES];
	size_t at;   /* of the first byte that is not free */
	size_t used; /* bytes queued, those offered to the batch included */
	unsigned frames;
	size_t offered; /* bytes, and frames, that the batch has now */
	unsigned offered_frames;
};

/* Queues one whole message with its gRPC prefix. 0, or -ENOBUFS at LIMIT_CONTROL_FRAMES or
 * LIMIT_CONTROL_BYTES. */
int control_push(struct control *c, const uint8_t *frame, size_t size);

/* Offers all that is queued and not yet offered. Needs two places in the batch. Returns the bytes offered. */
size_t control_offer(struct control *c, struct batch *b);

/* The batch is idle: what was offered has left. */
void control_release(struct control *c);

#endif
