/* Processes that end with the test that starts them. */
#ifndef TESTS_LIB_BOUND_H
#define TESTS_LIB_BOUND_H

#include <sys/types.h>

/* fork(2), but the child gets SIGKILL when the thread that called this ends, also where that happens before
 * the child has run at all (prctl(2), PR_SET_PDEATHSIG: a death before the call is not seen). A change of
 * user and an exec of a program with privileges of its own undo it. */
pid_t bound_fork(void);

#endif
