#include "netd/sched.h"

#include <errno.h>

static void pace_over(struct loop_timer *timer, uint64_t now_ms)
{
	(void)timer, (void)now_ms; /* the pass that follows serves the pipes again */
}

void sched_init(struct sched *s, struct loop *loop, struct h2 *h2,
		void (*done)(void *owner, struct output *o), void (*quiet)(void *owner, struct output *o),
		void *owner, uint64_t now_ms)
{
	*s = (struct sched){
	    .h2 = h2,
	    .loop = loop,
	    .done = done,
	    .quiet = quiet,
	    .owner = owner,
	    .pace = {.fire = pace_over},
	    .since_ms = now_ms,
	};
}

void sched_connect(struct sched *s, struct transport *t)
{
	s->transport = t;
}

int sched_control(struct sched *s, const uint8_t *frame, size_t size)
{
	s->more = true;
	return control_push(&s->control, frame, size);
}

/* The widest room that the peer has given since it last set the window of a new stream: what it set says
 * little where it opens the window by hand, as nginx does. */
static void measure(struct sched *s)
{
	size_t room = h2_room(s->h2), initial = h2_window(s->h2);

	if (initial != s->initial)
		s->widest = 0;
	s->initial = initial;
	if (room > s->widest)
		s->widest = room;
}

/* Bytes that Chunks may use when the window has room for room. A peer that opens its window again once half
 * of it is used must not wait for us while we wait for room: a small window has no reserve, and is given one
 * small Chunk at a time, which waits in HTTP/2 for the rest of its window. */
static size_t chunk_room(const struct sched *s, size_t room)
{
	size_t reserve = s->widest / 8 < SCHED_RESERVE ? s->widest / 8 : SCHED_RESERVE;

	if (s->widest < SCHED_SMALL_WINDOW)
		return room > 0 ? SCHED_ROOM_MIN : 0;
	return room > reserve ? room - reserve : 0;
}

/* The next pipe of the ring whose turn it is; NULL: none, or all are paced. */
static struct output_pipe *next_pipe(struct sched *s, uint64_t now_ms)
{
	struct output_pipe *p = s->ring;

	if (!p)
		return NULL;
	do {
		if (!p->paced || p->not_before_ms <= now_ms)
			return p;
		p = p->next;
	} while (p != s->ring);
	loop_timer_set(s->loop, &s->pace, now_ms + 1);
	return NULL;
}

/* Puts Chunks of p into free slots: one, or as many as there are when p is alone. Returns their bytes, 0 when
 * p had none and has left the ring. */
static size_t take_chunks(struct sched *s, struct output_pipe *p, size_t room, uint64_t now_ms)
{
	struct batch *b = &s->batch;
	unsigned most = p->next == p ? BATCH_SLOTS - b->slot_count : 1;
	uint64_t req_id = p->output->req_id;
	size_t data = frames_chunk_data(req_id);
	struct iovec iov[BATCH_SLOTS];
	unsigned count = 0;
	size_t offered = 0;
	ssize_t n;

	for (; count < most && room >= SCHED_ROOM_MIN; count++) {
		size_t size = room - FRAMES_CHUNK_HEAD < data ? room - FRAMES_CHUNK_HEAD : data;

		iov[count] = (struct iovec){b->slot[b->slot_count + count] + BATCH_SLOT_DATA, size};
		room -= size + FRAMES_CHUNK_HEAD;
	}
	n = output_take(p, iov, (int)count, now_ms, sched_open_ms(s, now_ms));
	if (n <= 0) {
		sched_pipe_empty(s, p, now_ms);
		return 0;
	}
	s->ring = p->next;
	s->bytes_out += (uint64_t)n;
	for (unsigned i = 0; n > 0; i++) {
		size_t size = (size_t)n < iov[i].iov_len ? (size_t)n : iov[i].iov_len;
		uint8_t *at = iov[i].iov_base;
		size_t head = frames_chunk_head(at, req_id, p->stream, size);

		batch_offer(b, at - head, head + size);
		b->slot_count++;
		offered += head + size;
		n -= (ssize_t)size;
	}
	return offered;
}

/* Fills an idle batch: control first, then Chunks, then what their ends have queued, so that a short command
 * leaves in one write. */
static void fill(struct sched *s, uint64_t now_ms)
{
	struct batch *b = &s->batch;
	size_t room = h2_room(s->h2);
	size_t used = control_offer(&s->control, b);

	measure(s);
	if (s->heartbeat) {
		batch_offer(b, frames_heartbeat, sizeof frames_heartbeat);
		used += sizeof frames_heartbeat;
		s->heartbeat = false;
	}
	room = chunk_room(s, room > used ? room - used : 0);
	while (room >= SCHED_ROOM_MIN && b->slot_count < BATCH_SLOTS) {
		struct output_pipe *p = next_pipe(s, now_ms);
		size_t n;

		if (!p)
			break;
		n = take_chunks(s, p, room, now_ms);
		room = room > n ? room - n : 0;
	}
	control_offer(&s->control, b);
}

/* Accounts the time since the last progress: the relay was reading unless nothing moved for SCHED_STALL_MS.
 */
static void keep_clock(struct sched *s, bool progress, uint64_t now_ms)
{
	uint64_t passed = now_ms - s->since_ms;
	bool open = !s->blocked && s->batch.unframed == 0 && chunk_room(s, h2_room(s->h2)) >= SCHED_ROOM_MIN;

	if (s->open || (progress && passed < SCHED_STALL_MS))
		s->open_ms += passed;
	else if (open || progress)
		s->stalled_ms += passed;
	if (s->open || open || progress)
		s->since_ms = now_ms;
	s->open = open;
}

uint64_t sched_open_ms(const struct sched *s, uint64_t now_ms)
{
	return s->open_ms + (s->open ? now_ms - s->since_ms : 0);
}

/* 0: there may be more; -EAGAIN: the socket is full; 1: nothing is left to do. */
static int send_batch(struct sched *s, uint64_t now_ms)
{
	int err = h2_collect(s->h2);

	if (err < 0)
		return err;
	if (s->batch.unframed == 0) {
		control_release(&s->control);
		fill(s, now_ms);
		if (s->batch.unframed > 0 || s->h2->finish) {
			h2_resume(s->h2);
			err = h2_collect(s->h2);
		}
	}
	if (err < 0)
		return err;
	return batch_is_written(&s->batch) ? 1 : batch_write(&s->batch, s->transport);
}

int sched_send(struct sched *s, uint64_t now_ms)
{
	uint64_t written = s->batch.written;
	int err;

	s->more = false;
	sched_absorb(s, now_ms);
	if (!s->transport)
		return 0;
	err = batch_write(&s->batch, s->transport);
	for (unsigned i = 0; err == 0 && i < SCHED_BATCHES; i++)
		err = send_batch(s, now_ms);
	s->blocked = err == -EAGAIN;
	if (err == 0)
		s->more = true;
	keep_clock(s, s->batch.written != written, now_ms);
	return err == 1 || err == -EAGAIN ? 0 : err;
}

bool sched_is_flushed(const struct sched *s)
{
	return batch_idle(&s->batch) && s->control.used == s->control.offered;
}
