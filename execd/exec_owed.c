#include "execd/exec_owed.h"

#include "execd/exec_life.h"
#include "execd/exec_outcome.h"
#include "execd/records.h"

#include <errno.h>

/* Each returns false when the channel is full. */

static bool send_fetch(struct exec *e)
{
	if (records_fetch(e->req_id, e->given) == -EAGAIN)
		return false;
	e->fetching = true;
	return true;
}

/* Without its pipes netd cannot do anything for it. */
static bool send_started(struct exec *e)
{
	int err = records_started(e->req_id, e->pipes);

	if (err == -EAGAIN)
		return false;
	inflight_close_pipes(e);
	if (err < 0 && err != -EPIPE) {
		struct exec_note note = {
		    .outcome = {OUTCOME_START_FAILED, OUTCOME_START_VALUE(START_PIPES, -err)}};

		e->announced = false;
		exec_life_step(e, EXEC_ON_BROKEN, &note);
	}
	return true;
}

static bool send_left(struct exec *e)
{
	if (records_left(e->req_id) == -EAGAIN)
		return false;
	e->asked_quiet = true;
	return true;
}

static bool send_ended(struct exec *e)
{
	struct channel_ended ended = {
	    .outcome = e->outcome,
	    .reading = exec_outcome_reading(e),
	};

	return records_ended(e->req_id, &ended, e->cut) != -EAGAIN;
}

void exec_owed_send(struct exec *exec)
{
	static const struct {
		enum exec_owed what;
		bool (*send)(struct exec *e);
	} order[] = {
	    {EXEC_OWES_FETCH, send_fetch},
	    {EXEC_OWES_STARTED, send_started},
	    {EXEC_OWES_LEFT, send_left},
	    {EXEC_OWES_ENDED, send_ended},
	};

	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		if (!(exec->owed & order[i].what))
			continue;
		exec->owed &= (uint8_t)~order[i].what;
		if (!order[i].send(exec)) {
			exec->owed |= (uint8_t)order[i].what;
			return;
		}
	}
}
