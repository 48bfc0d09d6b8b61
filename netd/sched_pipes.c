#include "netd/sched.h"

/* The rings of sched.c: which pipe may have bytes, and which exec is done. */

static struct output_pipe **ring_of(struct sched *s, const struct output_pipe *p)
{
	return p->output->streaming || p->output->read_over ? &s->ring : &s->absorb;
}

static void ring_add(struct sched *s, struct output_pipe *p)
{
	struct output_pipe **ring = ring_of(s, p);

	if (p->ringed)
		return;
	p->ringed = true;
	if (!*ring) {
		p->next = p->prev = p;
		*ring = p;
		return;
	}
	p->next = *ring;
	p->prev = (*ring)->prev;
	p->prev->next = p;
	p->next->prev = p;
}

static void ring_remove(struct sched *s, struct output_pipe *p)
{
	struct output_pipe **ring = ring_of(s, p);

	if (!p->ringed)
		return;
	p->ringed = false;
	if (p->next == p) {
		*ring = NULL;
		return;
	}
	if (*ring == p)
		*ring = p->next;
	p->next->prev = p->prev;
	p->prev->next = p->next;
}

static void pipe_ready(struct loop_source *source, uint32_t events)
{
	struct output_pipe *p = source->owner;
	struct sched *s = p->output->owner;

	(void)events;
	p->readable = true;
	ring_add(s, p);
}

static void ring_readable(struct sched *s, struct output *o)
{
	for (int i = 0; i < OUTPUT_PIPES; i++) {
		if (o->pipe[i].readable)
			ring_add(s, &o->pipe[i]);
	}
}

/* Whether all of it that counts is read; else looks again later. */
static bool is_read(struct sched *s, struct output *o, uint64_t now_ms)
{
	uint64_t wait_ms;

	if (output_read_enough(o, now_ms, sched_open_ms(s, now_ms), &wait_ms))
		return true;
	ring_readable(s, o);
	loop_timer_set(s->loop, &o->look, now_ms + wait_ms);
	return false;
}

/* Goes on with an exec whose leader has ended; o may be gone when this returns. */
static void settle(struct sched *s, struct output *o, uint64_t now_ms)
{
	if (!o->ended) {
		if (o->left && !o->quiet && is_read(s, o, now_ms)) {
			o->quiet = true;
			loop_timer_stop(s->loop, &o->look);
			s->quiet(s->owner, o);
		}
		return;
	}
	if (!o->read_over) {
		if (!is_read(s, o, now_ms))
			return;
		for (int i = 0; i < OUTPUT_PIPES; i++)
			ring_remove(s, &o->pipe[i]);
		output_stop(o);
		for (int i = 0; i < OUTPUT_PIPES; i++) {
			if (o->pipe[i].waiting > 0)
				ring_add(s, &o->pipe[i]);
		}
	}
	if (output_waiting(o))
		return;
	loop_timer_stop(s->loop, &o->look);
	s->done(s->owner, o);
}

static void look_again(struct loop_timer *timer, uint64_t now_ms)
{
	struct output *o = timer->owner;

	settle(o->owner, o, now_ms);
}

int sched_begin(struct sched *s, struct output *o, uint64_t req_id, bool streaming,
		const int fds[OUTPUT_PIPES])
{
	int err = output_open(o, s->loop, req_id, streaming, fds, pipe_ready);

	if (err < 0)
		return err;
	o->owner = s;
	o->look = (struct loop_timer){.fire = look_again, .owner = o};
	for (int i = 0; i < OUTPUT_PIPES; i++)
		ring_add(s, &o->pipe[i]);
	return 0;
}

void sched_end(struct sched *s, struct output *o, const struct channel_ended *how, uint64_t now_ms)
{
	output_end(o, how, now_ms, sched_open_ms(s, now_ms));
	ring_readable(s, o);
	s->more = true;
	settle(s, o, now_ms);
}

void sched_left(struct sched *s, struct output *o, uint64_t now_ms)
{
	output_left(o, now_ms, sched_open_ms(s, now_ms));
	ring_readable(s, o);
	s->more = true;
	settle(s, o, now_ms);
}

void sched_forget(struct sched *s, struct output *o)
{
	for (int i = 0; i < OUTPUT_PIPES; i++)
		ring_remove(s, &o->pipe[i]);
	loop_timer_stop(s->loop, &o->look);
	output_free(o);
}

void sched_pipe_empty(struct sched *s, struct output_pipe *p, uint64_t now_ms)
{
	if (p->readable)
		return; /* EINTR */
	ring_remove(s, p);
	settle(s, p->output, now_ms);
}

/* The window has no say here: the buffer is ours. One turn for each pipe; a turn may take others out of the
 * ring. */
void sched_absorb(struct sched *s, uint64_t now_ms)
{
	unsigned turns = 0;

	for (struct output_pipe *p = s->absorb; p && (turns == 0 || p != s->absorb); p = p->next)
		turns++;
	for (; turns > 0 && s->absorb; turns--) {
		struct output_pipe *p = s->absorb;

		s->absorb = p->next;
		for (unsigned i = 0; i < SCHED_ABSORB_READS && p->readable; i++)
			output_absorb(p, now_ms);
		if (p->readable)
			s->more = true;
		else
			sched_pipe_empty(s, p, now_ms);
	}
}
