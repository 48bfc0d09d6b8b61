/* Signals as records of a descriptor, so that the loop sees them like everything else. */
#ifndef EXECD_SIGNALS_H
#define EXECD_SIGNALS_H

#include "common/loop.h"

#include <signal.h>

/* Whatever our parent ignored, handled or blocked: from here on a signal ends us only by a fault of our own,
 * SIGKILL, or, until signals_start, SIGTERM, SIGINT and SIGQUIT. The rest is ignored: SIGHUP of a terminal
 * that goes; SIGPIPE and SIGXFSZ, which errno tells as well; those that stop a job. */
void signals_reset(void);

struct signals_events {
	void (*terminate)(void *owner); /* SIGTERM or SIGINT, each one */
	void (*quit)(void *owner);      /* SIGQUIT */
	void (*hang_up)(void *owner);   /* SIGHUP */
	void (*child)(void *owner);     /* SIGCHLD, joined as signals are: look at all children */
};

/* Blocks those and calls events from the loop instead. 0 or -errno. */
int signals_start(struct loop *loop, const struct signals_events *events, void *owner);

#endif
