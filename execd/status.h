/* The status file (STATUS_FILE): the state in key=value lines, for probes and people. One regular file,
 * overwritten in place by single writes of the same size. It never holds anything back: a full disk is logged
 * once and tried again. */
#ifndef EXECD_STATUS_H
#define EXECD_STATUS_H

#include "common/loop.h"

struct config;

/* Opens config's status file, if it names one, made with mode 0644 where missing. killer: static. 0 or an
 * error of own_file_open. */
int status_open(struct loop *loop, const struct config *config, const char *killer);

/* After a rotation: what fails leaves the open one in place. 0 or the same errors. */
int status_open_again(void);

/* Would status_open fail? Nothing is made. */
int status_check(const struct config *config);

/* The state has changed: writes it now. What changes silently (counters) is written once a second. */
void status_update(void);

/* state=stopped, for good. */
void status_close(void);

#endif
