/* A first command, `:`, in a slot of the pool: exactly as any later one, by the commands' user, under their
 * policy. What stops it would stop all. */
#ifndef EXECD_TRIAL_H
#define EXECD_TRIAL_H

#include "common/loop.h"
#include "execd/slots.h"

#include <stdbool.h>

/* Runs the loop until the command is over, LIMIT_TRIAL_MS at the most. For the start only, after slots_start,
 * while the pool has no other owner. 0, -EINTR: somebody wants us to leave (shutdown_begun), or -errno with
 * *ret_why (static) set; slots_kill_all is next. */
int trial_run(struct loop *loop, const char **ret_why);

/* True when the event is of the trial's slot, and nobody else's business. */
bool trial_on_slot(const struct slot_event *event);

#endif
