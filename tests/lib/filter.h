/* Code that runs in a child under a seccomp filter. */
#ifndef TESTS_LIB_FILTER_H
#define TESTS_LIB_FILTER_H

#include "common/seccomp.h"

/* Milliseconds after which a child is killed. */
#define FILTER_DEADLINE_MS 60000

/* Runs body(arg) in a child with no_new_privs under filters, loaded in this order (NULL-ended); its result is
 * the exit code. The wait status; a filter that does not load is exit code 120. body must not return through
 * Criterion's asserts. */
int filter_run(const struct seccomp_program *const *filters, int (*body)(void *arg), void *arg);

/* The same with one filter. */
int filter_run_one(const struct seccomp_program *filter, int (*body)(void *arg), void *arg);

/* Runs argv (NULL-ended, found on PATH) in an empty folder of its own that is removed afterwards, stdin
 * /dev/null. Both outputs go to ret_out, cut to size - 1 bytes, terminated. The wait status. */
int filter_exec(const struct seccomp_program *filter, const char *const *argv, char *ret_out, size_t size);

#endif
