#include "netd/control.h"

#include <errno.h>
#include <string.h>

int control_push(struct control *c, const uint8_t *frame, size_t size)
{
	size_t end = (c->at + c->used) % LIMIT_CONTROL_BYTES;
	size_t first = LIMIT_CONTROL_BYTES - end;

	if (c->frames == LIMIT_CONTROL_FRAMES || size > LIMIT_CONTROL_BYTES - c->used)
		return -ENOBUFS;
	if (first > size)
		first = size;
	memcpy(c->ring + end, frame, first);
	memcpy(c->ring, frame + first, size - first);
	c->used += size;
	c->frames++;
	return 0;
}

size_t control_offer(struct control *c, struct batch *b)
{
	size_t start = (c->at + c->offered) % LIMIT_CONTROL_BYTES;
	size_t size = c->used - c->offered;
	size_t first = LIMIT_CONTROL_BYTES - start;

	if (first > size)
		first = size;
	batch_offer(b, c->ring + start, first);
	batch_offer(b, c->ring, size - first);
	c->offered = c->used;
	c->offered_frames = c->frames;
	return size;
}

void control_release(struct control *c)
{
	c->at = (c->at + c->offered) % LIMIT_CONTROL_BYTES;
	c->used -= c->offered;
	c->frames -= c->offered_frames;
	c->offered = 0;
	c->offered_frames = 0;
}
