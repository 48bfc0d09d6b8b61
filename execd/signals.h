/* Signals as records of a descriptor, so that the loop sees them like everything else. */
#ifndef EXECD_SIGNALS_H
#define EXECD_SIGNALS_H

#include "common/loop.h"

#include <signal.h>

/* Whatever our parent ignored, handled or blocked is as usual again, but for SIGHUP, which nohup(1) ignores
 * on purpose. SIGPIPE is ignored: who writes to a peer that is gone learns it from errno. */
void signals_reset(void);

/* CHILD: all dispositions default, nothing blocked, before an execve. */
void signals_reset_in_child(void);

struct signals_events {
	void (*terminate)(void *owner); /* SIGTERM or SIGINT, each one */
	void (*child)(void *owner);     /* SIGCHLD, joined as signals are: look at all children */
};

/* Blocks SIGTERM, SIGINT and SIGCHLD and calls events from the loop instead. 0 or -errno. */
int signals_start(struct loop *loop, const struct signals_events *events, void *owner);

#endif
