#include "execd/exec_start.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>

static int null_fd = -1; /* opened once: a command may own /dev, and put there what an open waits for */

void exec_start_init(void)
{
	if (null_fd < 0)
		null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void fail(struct exec *e, enum exec_event event, enum start_step step, int err)
{
	struct exec_note note = {.outcome = {OUTCOME_START_FAILED, OUTCOME_START_VALUE(step, -err)}};

	exec_life_step(e, event, &note);
}

/* Without stdin a command reads /dev/null rather than a pipe that is empty: both are at their end, but tools
 * like rg search the working folder for the one and stdin for the other. */
static void take_no_input(int *theirs)
{
	int null = null_fd < 0 ? -1 : fcntl(null_fd, F_DUPFD_CLOEXEC, 0);

	if (null < 0)
		return; /* the pipe's end is an end, too */
	fd_close(theirs);
	*theirs = null;
}

void exec_start_run(struct exec *exec, const struct exec_note *note)
{
	struct slot_run what = {
	    .req_id = exec->req_id,
	    .command_len = exec->command_len,
	    .given = note->bytes,
	    .given_len = note->size,
	};
	int theirs[3] = {-1, -1, -1};
	int err = slots_pipes(exec->pipes, theirs);

	if (err < 0) {
		fail(exec, EXEC_ON_RUN_FAILED, START_PIPES, err);
		return;
	}
	if (exec->stdin_len == 0)
		take_no_input(&theirs[0]);
	exec->given = note->size;
	err = slots_run((unsigned)exec->slot, &what, exec->pipes, theirs);
	for (int i = 0; i < 3; i++)
		fd_close(&theirs[i]);
	if (err == -EPIPE)
		exec_life_slot_unread(exec);
	else if (err < 0)
		fail(exec, EXEC_ON_RUN_FAILED, START_SLOT, err);
}

void exec_start_feed(struct exec *exec, const struct exec_note *note)
{
	int err = slots_command((unsigned)exec->slot, note->bytes, note->size);

	if (err == 0)
		exec->given += note->size;
	else if (err == -EPIPE)
		exec_life_slot_unread(exec);
	else
		fail(exec, EXEC_ON_BROKEN, START_SLOT, err);
}
