#include "execd/exec_outcome.h"

#include "common/clock.h"
#include "execd/cache.h"

#include <signal.h>
#include <sys/wait.h>

static struct execs_counters *counters;

void exec_outcome_init(struct execs_counters *c)
{
	counters = c;
}

/* A run that is being killed since its stream was lost: its id has another answer now. */
static void outdate(const struct exec *by)
{
	struct exec *dying = inflight_find_dying(by->req_id);

	if (dying && dying != by)
		dying->replaced = true;
}

/* Cached at once: whatever becomes of netd, it must not run twice. */
static void decide(struct exec *e, const struct outcome *outcome)
{
	if (e->decided)
		return;
	outdate(e);
	e->decided = true;
	e->outcome = *outcome;
	e->ended_ms = clock_now_ms();
	if (outcome->kind == OUTCOME_LOST) {
		counters->lost++;
		return;
	}
	counters->ended++;
	counters->timeouts += outcome->kind == OUTCOME_TIMEOUT;
	counters->aborts += outcome->kind == OUTCOME_ABORTED;
	counters->refused += outcome->kind == OUTCOME_REFUSED;
	if (outcome_cached(outcome) && !e->replaced)
		cache_put(e->req_id, e->fingerprint, outcome, e->cut);
}

bool exec_outcome_recall(struct exec *exec)
{
	if (cache_lookup(exec->req_id, exec->fingerprint, &exec->outcome, &exec->cut) != CACHE_SAME)
		return false;
	exec->decided = true;
	return true;
}

void exec_outcome_give_reason(struct exec *exec, enum outcome_kind kind, uint32_t value)
{
	if (exec->reason.kind == 0)
		exec->reason = (struct outcome){kind, value};
}

void exec_outcome_by_reason(struct exec *exec)
{
	exec_outcome_give_reason(exec, OUTCOME_ABORTED, 0);
	decide(exec, &exec->reason);
}

/* The kill was ours only where SIGKILL ended it: a leader that was on its way out when it came, with much
 * memory to give back, has its own end. A status that is neither an exit nor a signal would be the slot's
 * mistake: the exec counts as killed. */
void exec_outcome_by_status(struct exec *exec, const struct slot_event *event)
{
	struct outcome own = {OUTCOME_ABORTED, 0};

	if (event->by_kill && WIFSIGNALED(event->wait_status) && WTERMSIG(event->wait_status) == SIGKILL) {
		exec_outcome_by_reason(exec);
		return;
	}
	exec->oom = event->oom;
	if (WIFEXITED(event->wait_status))
		own = (struct outcome){OUTCOME_EXITED, (uint32_t)WEXITSTATUS(event->wait_status)};
	else if (WIFSIGNALED(event->wait_status))
		own = (struct outcome){OUTCOME_SIGNALED, (uint32_t)WTERMSIG(event->wait_status)};
	decide(exec, outcome_valid(&own) ? &own : &(struct outcome){OUTCOME_ABORTED, 0});
}

void exec_outcome_cut(struct exec *exec)
{
	exec->cut = true;
	if (exec->decided)
		cache_set_truncated(exec->req_id, exec->fingerprint);
}

enum channel_reading exec_outcome_reading(const struct exec *exec)
{
	if (!exec->announced)
		return CHANNEL_READ_NOTHING;
	if (exec->killed)
		return CHANNEL_READ_KILLED;
	return exec->kept ? CHANNEL_READ_KEEP : CHANNEL_READ_EMPTY;
}
