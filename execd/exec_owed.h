/* What netd is still to be told of an exec: bits of its entry, for nothing is queued. */
#ifndef EXECD_EXEC_OWED_H
#define EXECD_EXEC_OWED_H

#include "execd/inflight.h"

/* Sends what is owed, in the order of enum exec_owed, as far as the channel takes it. */
void exec_owed_send(struct exec *exec);

#endif
