/* kill: what execs leave in System V IPC is removed when none runs, by the warden, which has their uid. Until
 * it has said so none starts. */
#include "common/log.h"
#include "execd/slots_pool.h"

#define TICKS_MAX (LIMIT_WARDEN_SILENT_MS / LIMIT_SLOT_PING_MS + 1)

static unsigned ticks;

static bool something_runs(void)
{
	for (unsigned i = 0; i < POOL_SIZE; i++) {
		if (pool.slots[i].running)
			return true;
	}
	return orphans_left();
}

void clear_look(void)
{
	if (!pool.unclear || pool.clearing || pool.closing || !warden_is_up() || something_runs())
		return;
	if (warden_clear() < 0)
		return;
	pool.unclear = false;
	pool.clearing = true;
	ticks = 0;
}

static void go_on(void)
{
	pool.clearing = false;
	for (unsigned i = 0; i < POOL_SIZE; i++) {
		if (pool.slots[i].place == POOL_IDLE) {
			pool_emit(&pool.slots[i], (struct slot_event){.kind = SLOT_READY});
			return;
		}
	}
}

void clear_done(uint32_t count)
{
	if (!pool.clearing)
		return;
	if (count > 0)
		log_info("removed what commands left in System V IPC", LOG_U64("count", count));
	go_on();
}

void clear_failed(void)
{
	if (!pool.clearing)
		return;
	pool.unclear = true;
	go_on();
}

void clear_tick(void)
{
	clear_look();
	if (pool.clearing && ticks++ >= TICKS_MAX) {
		log_warn("warden does not answer", LOG_I64("pid", warden_pid()));
		warden_kill();
	}
}
