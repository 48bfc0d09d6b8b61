#include "execd/starved.h"

#include "common/clock.h"
#include "common/limits.h"
#include "common/log.h"
#include "execd/exec_life.h"
#include "execd/queue.h"
#include "execd/slots.h"

#include <errno.h>

/* Counted, not timed: what was frozen for a while was not starved. */
#define TICK_MS 1000u

static struct {
	struct loop *loop;
	struct loop_timer timer;
	uint32_t ms;
} starved;

static void answer_all(void)
{
	struct exec_note note = {.outcome = {OUTCOME_START_FAILED, OUTCOME_START_VALUE(START_SLOT, EAGAIN)}};
	struct exec *e;

	log_error("no slot can be had: what waits is refused", LOG_U64("after_ms", starved.ms));
	while ((e = queue_at(0)))
		exec_life_step(e, EXEC_ON_REFUSE, &note);
}

static void on_tick(struct loop_timer *timer, uint64_t now_ms)
{
	starved.ms += TICK_MS;
	if (starved.ms >= LIMIT_SLOT_WAIT_MS) {
		answer_all();
		return;
	}
	if (starved.ms >= LIMIT_SLOT_SHORT_MS)
		slots_give_up_minder();
	loop_timer_set(starved.loop, timer, now_ms + TICK_MS);
}

void starved_look(struct loop *loop, bool is_starved)
{
	if (is_starved == starved.timer.armed)
		return;
	if (!is_starved) {
		loop_timer_stop(loop, &starved.timer);
		return;
	}
	starved.loop = loop;
	starved.ms = 0;
	starved.timer.fire = on_tick;
	loop_timer_set(loop, &starved.timer, clock_now_ms() + TICK_MS);
}
