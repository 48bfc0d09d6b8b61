/* PID 1 of a container: the kernel gives it no default for signals and all orphans, so execd does not run as
 * one. */
#ifndef EXECD_INIT_H
#define EXECD_INIT_H

#include "execd/environment.h"

/* As PID 1, forks: the child returns and goes on as execd, in a session of its own, so that a terminal's
 * SIGINT comes once. The parent never returns: without capabilities and without its copy of the environment
 * it reaps, passes signals on, and exits with the child's code (128 + signal if it was killed). Elsewhere it
 * does nothing. 0 or -errno. */
int init_split(struct environment *env);

#endif
