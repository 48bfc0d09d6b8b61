/* An exec and the slot that is to run it: its pipes, and its command piece by piece. What fails is an event
 * of the exec. */
#ifndef EXECD_EXEC_START_H
#define EXECD_EXEC_START_H

#include "execd/exec_life.h"

/* Opens what is kept open. Harmless twice. */
void exec_start_init(void);

/* Makes the pipes and gives the slot what is at hand of the command. */
void exec_start_run(struct exec *exec, const struct exec_note *note);

/* Gives it the next piece. */
void exec_start_feed(struct exec *exec, const struct exec_note *note);

#endif
