/* A pid namespace of a suite's own, which tests/run makes where it may: a killer that kills too much ends the
 * suite there, not the machine. */
#ifndef TESTS_LIB_SPACE_H
#define TESTS_LIB_SPACE_H

#include <stdbool.h>

/* Process 1 is tests/reap. */
bool space_is_own(void);

/* Skips the test where it is run as root outside of tests/run: for suites that start killers or what they are
 * up against. Fit for a suite's .init. */
void space_need_own(void);

/* CHILD of unshare(CLONE_NEWPID), or later in that namespace: a /proc of it, and a mount namespace for that.
 * Ends the process where it cannot be had. */
void space_own_proc(void);

#endif
