#include "common/loop.h"

#include "common/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>

int loop_init(struct loop *loop)
{
	*loop = (struct loop){.epfd = epoll_create1(EPOLL_CLOEXEC)};
	return loop->epfd < 0 ? -errno : 0;
}

void loop_close(struct loop *loop)
{
	if (loop->epfd >= 0)
		close(loop->epfd);
	loop->epfd = -1;
}

static int control(struct loop *loop, int op, struct loop_source *source, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = source};

	return epoll_ctl(loop->epfd, op, source->fd, &e) < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct loop_source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, source, events);
}

int loop_mod(struct loop *loop, struct loop_source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, source, events);
}

void loop_del(struct loop *loop, struct loop_source *source)
{
	epoll_ctl(loop->epfd, EPOLL_CTL_DEL, source->fd, NULL);
	for (int i = loop->batch_at; i < loop->batch_count; i++) {
		if (loop->batch[i].data.ptr == source)
			loop->batch[i].data.ptr = NULL;
	}
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ms)
{
	timer->at_ms = at_ms;
	if (timer->armed)
		return;
	timer->armed = true;
	timer->prev = NULL;
	timer->next = loop->timers;
	if (loop->timers)
		loop->timers->prev = timer;
	loop->timers = timer;
}

void loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
	if (!timer->armed)
		return;
	timer->armed = false;
	if (timer->prev)
		timer->prev->next = timer->next;
	else
		loop->timers = timer->next;
	if (timer->next)
		timer->next->prev = timer->prev;
}

#define WATCH_TICKS 10u

static void next_tick(struct loop_watch *w, uint64_t now_ms)
{
	if (w->tick_ms > w->left_ms)
		w->tick_ms = w->left_ms;
	loop_timer_set(w->loop, &w->timer, now_ms + w->tick_ms);
}

static void on_tick(struct loop_timer *timer, uint64_t now_ms)
{
	struct loop_watch *w = timer->owner;
	struct pollfd p = {.fd = w->fd, .events = POLLIN};

	w->left_ms -= w->tick_ms;
	if (w->left_ms == 0 && !w->spared && poll(&p, 1, 0) == 1) {
		w->spared = true;
		w->left_ms = w->tick_ms;
	}
	if (w->left_ms == 0)
		w->silent(w, now_ms);
	else
		next_tick(w, now_ms);
}

void loop_watch_set(struct loop *loop, struct loop_watch *watch, uint32_t ms)
{
	watch->loop = loop;
	watch->timer.fire = on_tick;
	watch->timer.owner = watch;
	watch->spared = false;
	watch->left_ms = ms > 0 ? ms : 1;
	watch->tick_ms = (watch->left_ms + WATCH_TICKS - 1) / WATCH_TICKS;
	next_tick(watch, clock_now_ms());
}

void loop_watch_stop(struct loop_watch *watch)
{
	if (watch->loop)
		loop_timer_stop(watch->loop, &watch->timer);
}

static struct loop_timer *earliest(const struct loop *loop)
{
	struct loop_timer *first = loop->timers;

	for (struct loop_timer *t = first; t; t = t->next) {
		if (t->at_ms < first->at_ms)
			first = t;
	}
	return first;
}

static int wait_ms(const struct loop *loop, int max_wait_ms)
{
	const struct loop_timer *first = earliest(loop);
	uint64_t now, left;

	if (!first)
		return max_wait_ms;
	now = clock_now_ms();
	left = first->at_ms > now ? first->at_ms - now : 0;
	if (left > INT_MAX)
		left = INT_MAX;
	return max_wait_ms >= 0 && (uint64_t)max_wait_ms < left ? max_wait_ms : (int)left;
}

/* A timer that sets itself anew for now or earlier waits for the next pass, so that no timer can hold the
 * loop. */
static void fire_due(struct loop *loop)
{
	uint64_t now = clock_now_ms();
	struct loop_timer *t;

	for (int guard = 0; guard < 1024 && (t = earliest(loop)) && t->at_ms <= now; guard++) {
		loop_timer_stop(loop, t);
		t->fire(t, now);
	}
}

int loop_pass(struct loop *loop, int max_wait_ms)
{
	int n = epoll_wait(loop->epfd, loop->batch, LOOP_BATCH, wait_ms(loop, max_wait_ms));

	if (n < 0 && errno != EINTR)
		return -errno;
	loop->batch_count = n < 0 ? 0 : n;
	for (loop->batch_at = 0; loop->batch_at < loop->batch_count;) {
		struct epoll_event e = loop->batch[loop->batch_at++];
		struct loop_source *source = e.data.ptr;

		if (source)
			source->ready(source, e.events);
	}
	loop->batch_at = loop->batch_count = 0;
	fire_due(loop);
	return 0;
}
