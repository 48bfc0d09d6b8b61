/* What dead slots leave behind comes to execd, their subreaper, and is swept here, a bounded piece in each
 * pass of the loop. ECHILD cannot be had, for execd has other children: the proof is that it has no child it
 * does not know. That holds because only execd takes its children's statuses: an orphan's own children come
 * to execd before the orphan can be reaped. */
#include "common/clock.h"
#include "common/log.h"
#include "execd/slot/kill_sweep.h"
#include "execd/slots_pool.h"

#include <unistd.h>

#define PASS_MAX       256u
#define STILL_ALIVE_MS 1000u

static struct {
	struct loop_timer timer;
	struct sweep sweep;
	bool looking;
	uint64_t told_ms;
} orphans;

static bool is_known(pid_t pid)
{
	return pid == pool.spared || pid == warden_pid() || pool_find(pid);
}

static void tell(enum slot_event_kind kind, uint32_t count)
{
	for (unsigned i = 0; i < POOL_SIZE; i++) {
		struct pool_slot *s = &pool.slots[i];

		if (!s->dead || !s->running)
			continue;
		s->running = kind != SLOT_EMPTY;
		pool_emit(s, (struct slot_event){.kind = kind, .count = count});
	}
}

static void on_timer(struct loop_timer *timer, uint64_t now_ms)
{
	int found = sweep_pass(&orphans.sweep, PASS_MAX);

	if (found == 0) {
		orphans.looking = false;
		tell(SLOT_EMPTY, 0);
		return;
	}
	if (found < 0)
		log_error("orphans cannot be found", LOG_ERR(found));
	if (now_ms - orphans.told_ms >= STILL_ALIVE_MS) {
		orphans.told_ms = now_ms;
		tell(SLOT_STILL_ALIVE, found < 0 ? 0 : (uint32_t)found);
	}
	loop_timer_set(pool.loop, timer, now_ms + orphans.sweep.again_ms);
}

void orphans_look(void)
{
	uint64_t now = clock_now_ms();

	if (!orphans.looking) {
		orphans.looking = true;
		orphans.told_ms = now;
		orphans.timer.fire = on_timer;
		sweep_begin(&orphans.sweep, getpid(), is_known);
	}
	loop_timer_set(pool.loop, &orphans.timer, now);
}

bool orphans_left(void)
{
	return orphans.looking;
}
