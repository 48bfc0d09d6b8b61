#include "execd/shutdown.h"

#include "common/clock.h"
#include "common/limits.h"
#include "common/log.h"
#include "execd/execs.h"
#include "execd/netd_proc.h"
#include "execd/slots.h"

/* Kept back for the very last steps, so that the promised time includes them. */
#define LAST_STEPS_MS 300u
/* A netd has this long to leave in good order. */
#define LEAVE_MS 1000u

static struct {
	struct loop *loop;
	bool begun;
	bool answered; /* nothing is owed any more: the stream is being left, all processes killed */
	bool over;     /* the time is */
	int exit_code;
	struct loop_timer leave;
	struct loop_timer end;
} sd;

static void on_leave(struct loop_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
	netd_proc_kill();
}

static void on_end(struct loop_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
	if (!slots_all_gone())
		log_error("processes that could not be killed are left behind");
	netd_proc_kill();
	sd.over = true;
}

/* Only ever earlier: whoever asks again must not get more time by it. */
static void end_after(uint32_t drain_ms)
{
	uint64_t at = clock_now_ms() + drain_ms + LIMIT_SHUTDOWN_MS - LAST_STEPS_MS;

	if (!sd.end.armed || at < sd.end.at_ms)
		loop_timer_set(sd.loop, &sd.end, at);
}

/* The rest of the drain is for nobody now: what no kill reaches would sit it out. */
static void on_idle(void *owner)
{
	(void)owner;
	if (sd.answered)
		return;
	sd.answered = true;
	netd_proc_leave();
	slots_kill_all();
	loop_timer_set(sd.loop, &sd.leave, clock_now_ms() + LEAVE_MS);
	end_after(0);
}

void shutdown_begin(struct loop *loop, uint32_t drain_ms, int exit_code)
{
	if (sd.begun) {
		log_info("shutting down at once");
		execs_shutdown(0, on_idle, NULL);
		end_after(0);
		return;
	}
	sd.loop = loop;
	sd.begun = true;
	sd.exit_code = exit_code;
	sd.leave.fire = on_leave;
	sd.end.fire = on_end;
	log_info("shutting down", LOG_U64("drain_ms", drain_ms),
		 LOG_U64("running", execs_counters()->running),
		 LOG_U64("waiting", execs_counters()->waiting));
	end_after(drain_ms);
	netd_proc_stop_dialling();
	execs_shutdown(drain_ms, on_idle, NULL);
}

bool shutdown_begun(void)
{
	return sd.begun;
}

bool shutdown_done(int *ret_exit_code)
{
	bool gone = sd.answered && netd_proc_gone() && slots_all_gone();

	if (!gone && !sd.over)
		return false;
	*ret_exit_code = sd.exit_code;
	return true;
}
