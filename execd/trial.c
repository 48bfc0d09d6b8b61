#include "execd/trial.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/limits.h"
#include "common/outcome.h"
#include "execd/shutdown.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

static struct {
	int slot; /* -1: none */
	bool exited;
	bool over; /* nothing of it lives */
	int wait_status;
	uint32_t failed; /* OUTCOME_START_VALUE; 0: bash was executed */
} trial = {.slot = -1};

static void give_back(void)
{
	slots_release((unsigned)trial.slot);
	trial.slot = -1;
}

bool trial_on_slot(const struct slot_event *event)
{
	if (event->kind == SLOT_READY || (int)event->slot != trial.slot)
		return false;
	switch (event->kind) {
	case SLOT_START_FAILED:
		trial.failed = event->value;
		trial.over = true;
		break;
	case SLOT_LEADER_EXITED:
		trial.wait_status = event->wait_status;
		trial.exited = true;
		break;
	case SLOT_MINDING:
		slots_kill(event->slot);
		break;
	case SLOT_EMPTY:
	case SLOT_UNREAD:
		trial.over = true;
		break;
	case SLOT_TOOK:
	case SLOT_STARTED:
	case SLOT_STILL_ALIVE:
	case SLOT_DIED:
	case SLOT_READY:
		break;
	}
	if (trial.over)
		give_back();
	return true;
}

/* Until *until, or the time is up: -ETIME. */
static int pass_until(struct loop *loop, const bool *until, uint64_t end_ms)
{
	int err = 0;

	while (err == 0 && !*until) {
		uint64_t now = clock_now_ms();

		if (shutdown_begun())
			return -EINTR;
		if (now >= end_ms)
			return -ETIME;
		err = loop_pass(loop, (int)(end_ms - now));
	}
	return err;
}

static int take_slot(struct loop *loop, uint64_t end_ms)
{
	static const bool never = false;

	while ((trial.slot = slots_take()) < 0) {
		uint64_t now = clock_now_ms();
		int err = pass_until(loop, &never, now + 1 < end_ms ? now + 1 : end_ms);

		if (err != -ETIME || now >= end_ms)
			return err;
	}
	return 0;
}

static const char *judge_start(uint32_t failed, int *ret_err)
{
	*ret_err = -OUTCOME_START_ERRNO(failed);
	if (OUTCOME_START_STEP(failed) == START_SECCOMP)
		return *ret_err == -EINVAL ? "the kernel does not take it as a filter" : "cannot be loaded";
	if (OUTCOME_START_STEP(failed) == START_EXEC)
		return "bash cannot be executed under it";
	return "a command cannot be started";
}

static const char *judge_end(int status)
{
	if (!trial.exited)
		return "the slot died of it";
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		return "bash is killed by SIGSYS under it";
	return "bash does not work under it";
}

static int judge(const char **ret_why)
{
	int err = -EPERM;

	if (trial.failed)
		*ret_why = judge_start(trial.failed, &err);
	else if (trial.exited && trial.wait_status == 0)
		return 0;
	else
		*ret_why = judge_end(trial.wait_status);
	return err;
}

/* The pipes stay open while it runs: bash may have something to say of what fails. */
static int run(struct loop *loop, uint64_t end_ms, const char **ret_why)
{
	static const struct slot_run order = {
	    .command_len = 1, .given = (const uint8_t *)":", .given_len = 1};
	int ours[3], theirs[3];
	int err = slots_pipes(ours, theirs);

	if (err < 0) {
		give_back();
		return err;
	}
	err = slots_run((unsigned)trial.slot, &order, ours, theirs);
	for (int i = 0; i < 3; i++)
		fd_close(&theirs[i]);
	fd_close(&ours[0]);
	if (err < 0)
		give_back();
	else
		err = pass_until(loop, &trial.over, end_ms);
	if (err == -ETIME)
		*ret_why = "bash does not end under it";
	fd_close(&ours[1]);
	fd_close(&ours[2]);
	return err == 0 ? judge(ret_why) : err;
}

int trial_run(struct loop *loop, const char **ret_why)
{
	uint64_t end_ms = clock_now_ms() + LIMIT_TRIAL_MS;
	int err;

	*ret_why = "could not be tried";
	err = take_slot(loop, end_ms);
	if (err == 0)
		err = run(loop, end_ms, ret_why);
	return err;
}
