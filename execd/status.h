/* The status file (STATUS_FILE): the state in key=value lines, for probes and people. One regular file,
 * opened once and overwritten in place by single writes of the same size, so that nothing is looked up by
 * name while commands run. It never holds anything back: a full disk is logged once and tried again. */
#ifndef EXECD_STATUS_H
#define EXECD_STATUS_H

#include "common/loop.h"

struct config;

/* Opens config's status file, if it names one, made with mode 0644 where missing; never through a symbolic
 * link in its last part. killer: static. 0, -EINVAL (not a regular file) or -errno. */
int status_open(struct loop *loop, const struct config *config, const char *killer);

/* The state has changed: writes it now. What changes silently (counters) is written once a second. */
void status_update(void);

/* state=stopped, for good. */
void status_close(void);

#endif
