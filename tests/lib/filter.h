/* Code that runs in a child under a seccomp filter. */
#ifndef TESTS_LIB_FILTER_H
#define TESTS_LIB_FILTER_H

#include "common/seccomp.h"

#include <stdbool.h>

/* Milliseconds after which a child is killed. */
#define FILTER_DEADLINE_MS 60000

/* Runs body(arg) in a child with no_new_privs under filters, loaded in this order (NULL-ended); its result is
 * the exit code. The wait status; a filter that does not load is exit code 120. body must not return through
 * Criterion's asserts. */
int filter_run(const struct seccomp_program *const *filters, int (*body)(void *arg), void *arg);

/* The same with one filter. */
int filter_run_one(const struct seccomp_program *filter, int (*body)(void *arg), void *arg);

/* Runs a bash script below filters (NULL-ended) in an empty folder of its own, which is its HOME and is
 * removed afterwards; stdin is /dev/null, PATH the system's. Both outputs go to ret_out, cut to size - 1
 * bytes, terminated. The wait status. */
int filter_script(const struct seccomp_program *const *filters, const char *script, char *ret_out,
		  size_t size);

/* Is a program on that PATH, or a file there, where name begins with a slash? */
bool filter_finds(const char *name);

#endif
