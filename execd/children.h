/* The one place that takes the statuses of execd's children. */
#ifndef EXECD_CHILDREN_H
#define EXECD_CHILDREN_H

#include "common/loop.h"

#define CHILDREN_MAX 64u /* in one pass of the loop: what dies faster than we reap must not hold it */

/* Takes what has exited or stopped and hands it to netd_proc or slots; what is left over CHILDREN_MAX in the
 * next pass. */
void children_reap(struct loop *loop);

#endif
