#include "netd/batch.h"

#include <errno.h>
#include <string.h>

void batch_offer(struct batch *b, const uint8_t *at, size_t size)
{
	if (size == 0 || b->segment_count == BATCH_SEGMENTS)
		return;
	b->segment[b->segment_count++] = (struct batch_segment){at, size};
	b->unframed += size;
}

unsigned batch_places(const struct batch *b)
{
	return BATCH_SEGMENTS - b->segment_count;
}

static void add_iov(struct batch *b, const uint8_t *at, size_t size)
{
	if (b->iov_count > 0) {
		struct iovec *last = &b->iov[b->iov_count - 1];

		if ((const uint8_t *)last->iov_base + last->iov_len == at && b->iov_at < b->iov_count) {
			last->iov_len += size;
			return;
		}
	}
	b->iov[b->iov_count++] = (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = size};
}

bool batch_frame(struct batch *b, const uint8_t head[BATCH_FRAME_HEAD], size_t size)
{
	unsigned slices = b->segment_count - b->segment_at;

	if (b->head_count == BATCH_HEADS || b->iov_count + 1 + (int)slices > BATCH_IOVECS ||
	    size > b->unframed)
		return false;
	memcpy(b->head[b->head_count], head, BATCH_FRAME_HEAD);
	add_iov(b, b->head[b->head_count++], BATCH_FRAME_HEAD);
	b->unframed -= size;
	while (size > 0) {
		struct batch_segment *s = &b->segment[b->segment_at];
		size_t n = size < s->size ? size : s->size;

		add_iov(b, s->at, n);
		s->at += n;
		s->size -= n;
		size -= n;
		if (s->size == 0)
			b->segment_at++;
	}
	return true;
}

bool batch_takes_own(const struct batch *b)
{
	return BATCH_OWN - b->own_used >= BATCH_OWN_PIECE && b->iov_count < BATCH_IOVECS;
}

void batch_own(struct batch *b, const uint8_t *at, size_t size)
{
	memcpy(b->own + b->own_used, at, size);
	add_iov(b, b->own + b->own_used, size);
	b->own_used += size;
}

static void advance(struct batch *b, size_t n)
{
	b->written += n;
	while (n > 0) {
		struct iovec *v = &b->iov[b->iov_at];

		if (n < v->iov_len) {
			v->iov_base = (uint8_t *)v->iov_base + n;
			v->iov_len -= n;
			return;
		}
		n -= v->iov_len;
		b->iov_at++;
	}
}

int batch_write(struct batch *b, struct transport *t)
{
	while (!batch_is_written(b)) {
		ssize_t n = transport_writev(t, b->iov + b->iov_at, b->iov_count - b->iov_at);

		if (n < 0)
			return (int)n;
		advance(b, (size_t)n);
	}
	b->iov_at = b->iov_count = 0;
	b->head_count = 0;
	explicit_bzero(b->own, b->own_used); /* the request is among them, and its token */
	b->own_used = 0;
	if (b->unframed == 0) {
		b->segment_at = b->segment_count = 0;
		b->slot_count = 0;
	}
	return 0;
}

bool batch_is_written(const struct batch *b)
{
	return b->iov_at == b->iov_count;
}

bool batch_idle(const struct batch *b)
{
	return batch_is_written(b) && b->unframed == 0;
}
