/* What dead slots leave behind comes to execd, their subreaper, and is swept here, a bounded piece in each
 * pass of the loop. ECHILD cannot be had, for execd has other children: the proof is that it has no child it
 * does not know. That holds because only execd takes its children's statuses: an orphan's own children come
 * to execd before the orphan can be reaped. */
#include "common/clock.h"
#include "common/log.h"
#include "execd/slot/dying.h"
#include "execd/slot/kill_sweep.h"
#include "execd/slots_pool.h"

#include <unistd.h>

#define PASS_MAX       256u
#define STILL_ALIVE_MS 1000u
#define WAIT_LOOK_MS   20u /* between two looks at the most: what is longer, all of us were stopped for */
#define BLIND_AGAIN_MS 50u /* where they cannot be looked for */

static struct {
	struct loop_timer timer;
	struct sweep sweep;
	bool looking;
	bool lost_patience; /* with the warden */
	uint64_t told_ms;
	bool waiting;       /* for slots that were asked for */
	uint64_t looked_ms; /* while waiting: when it was looked last */
	uint32_t waited_ms; /* while waiting: so far */
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
		clear_look();
		if (s->running)
			pool_replace(s);
		pool_emit(s, (struct slot_event){.kind = kind, .count = count});
	}
}

/* A slot is our child before the warden can say its number, and would be swept as an orphan. So no more are
 * asked for (orphans_wait), those that were come first, and then each child that we do not know is one. A
 * warden that keeps us waiting is ended, and with it what it was asked for. */
static bool wait_for_asked(uint64_t now_ms)
{
	uint64_t passed = orphans.waiting ? now_ms - orphans.looked_ms : 0;

	orphans.looked_ms = now_ms;
	orphans.waited_ms += (uint32_t)(passed < WAIT_LOOK_MS ? passed : WAIT_LOOK_MS);
	if (pool_asked() == 0 || orphans.waited_ms >= 2 * LIMIT_WARDEN_SILENT_MS) {
		orphans.waiting = orphans.lost_patience = false;
		orphans.waited_ms = 0;
		return false;
	}
	orphans.waiting = true;
	if (orphans.waited_ms >= LIMIT_WARDEN_SILENT_MS && !orphans.lost_patience) {
		orphans.lost_patience = true;
		log_warn("warden does not answer", LOG_I64("pid", warden_pid()),
			 LOG_U64("ms", orphans.waited_ms));
		warden_kill();
	}
	return true;
}

static void on_timer(struct loop_timer *timer, uint64_t now_ms)
{
	unsigned rest;
	int found;

	if (wait_for_asked(now_ms)) {
		loop_timer_set(pool.loop, timer, now_ms + 1);
		return;
	}
	found = sweep_pass(&orphans.sweep, PASS_MAX);
	pool_fill(); /* what was not asked for meanwhile */
	if (found == 0) {
		orphans.looking = false;
		tell(SLOT_EMPTY, 0);
		clear_look();
		return;
	}
	if (now_ms - orphans.told_ms >= STILL_ALIVE_MS) {
		orphans.told_ms = now_ms;
		if (found < 0)
			log_error("orphans cannot be found", LOG_ERR(found));
		help_what_dies();
		tell(SLOT_STILL_ALIVE, found < 0 ? SLOT_COUNT_UNKNOWN : (uint32_t)found);
	}
	/* Not in this pass again: what has died is reaped first. */
	rest = orphans.sweep.again_ms > 0 ? orphans.sweep.again_ms : 1;
	loop_timer_set(pool.loop, timer, now_ms + (found < 0 ? BLIND_AGAIN_MS : rest));
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

bool orphans_wait(void)
{
	return orphans.waiting;
}

bool orphans_only_die(void)
{
	return dying_count_others(getpid(), is_known, DESCENDANTS_MAX) == 0;
}

bool orphans_left(void)
{
	return orphans.looking;
}
