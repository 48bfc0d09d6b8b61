/* The process that stays in execd's place where that has children of its own: as process 1 of a container,
 * which the kernel gives all orphans, and where whoever executed execd had started something before. */
#ifndef EXECD_INIT_H
#define EXECD_INIT_H

#include "execd/environment.h"

/* As process 1, and with children, forks: the child returns and goes on as execd, in a session of its own, so
 * that a terminal's SIGINT comes once, and without a child that is not its own. The parent never returns:
 * without capabilities and without its copy of the environment it reaps, passes signals on, and exits with
 * the child's code (128 + signal if it was killed). *ret_parent, the caller's, is at its end when the parent
 * has ended. Elsewhere it does nothing, *ret_parent is -1. 0 or -errno. */
int init_split(struct environment *env, int *ret_parent);

#endif
