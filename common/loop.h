/* An epoll loop over caller-owned sources and timers; nothing is allocated. */
#ifndef COMMON_LOOP_H
#define COMMON_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;

struct loop_source {
	int fd;
	void (*ready)(struct loop_source *source, uint32_t events);
	void *owner;
};

struct loop_timer {
	uint64_t at_ms; /* CLOCK_MONOTONIC; meaningful while armed */
	void (*fire)(struct loop_timer *timer, uint64_t now_ms);
	void *owner;
	bool armed;
	struct loop_timer *next;
	struct loop_timer *prev;
};

#define LOOP_BATCH 64

struct loop {
	int epfd;
	struct loop_timer *timers;
	struct epoll_event batch[LOOP_BATCH];
	int batch_at;
	int batch_count;
};

/* 0 or -errno. */
int loop_init(struct loop *loop);
void loop_close(struct loop *loop);

/* source must live until loop_del. events: EPOLL*, EPOLLET for edge-triggered. 0 or -errno. */
int loop_add(struct loop *loop, struct loop_source *source, uint32_t events);
int loop_mod(struct loop *loop, struct loop_source *source, uint32_t events);

/* Before the descriptor is closed. Events of this pass that are still to come for it are forgotten. */
void loop_del(struct loop *loop, struct loop_source *source);

/* Arms, or moves, a timer. It is disarmed before fire is called. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ms);
void loop_timer_stop(struct loop *loop, struct loop_timer *timer);

/* Waits for a sign of life, in ticks of its own: however far the clock has jumped, while this process or the
 * machine was stopped, one tick is over, and the other side gets the rest of the time to say what it was kept
 * from saying. And what has said something that is not read yet is not silent: it gets a tick more, in which
 * we read it, unless we do not read because it takes nothing from us. */
struct loop_watch {
	void (*silent)(struct loop_watch *watch, uint64_t now_ms);
	void *owner;
	int fd; /* what is listened to; below 0: nothing that can be looked at */
	struct loop *loop;
	struct loop_timer timer;
	uint32_t tick_ms;
	uint32_t left_ms;
	bool spared; /* for what was there to read when the time was up */
};

/* Starts, or starts anew, with ms to go. silent, owner and fd are the caller's to set before. */
void loop_watch_set(struct loop *loop, struct loop_watch *watch, uint32_t ms);
void loop_watch_stop(struct loop_watch *watch); /* harmless where it was never set */

/* One pass: waits until something is ready, the next timer, or max_wait_ms (below 0: no bound), then calls
 * ready for each source and fire for each timer due. 0 or -errno (EINTR counts as an empty pass). */
int loop_pass(struct loop *loop, int max_wait_ms);

#endif
