/* The call that a kill makes and a command must not, under the filter that both share. The kernel ignores the
 * arguments that a call does not have, and a filter sees them: who knows the key is let through. It is
 * 128 bits, made anew for each warden, and stands in memory that no command can read: that of the warden and
 * its slots, which are not dumpable and execute nothing.
 *
 * Without a filter, as in execd, it is the plain call. */
#ifndef EXECD_SLOT_KEYED_H
#define EXECD_SLOT_KEYED_H

#include "common/seccomp.h"

#include <sys/resource.h>
#include <sys/types.h>

/* Makes a key and loads the program (a policy of the commands) for the caller and all that it starts, but for
 * the call below with the key. 0 or -errno. */
int keyed_load(const struct seccomp_program *program);

/* 0 or -errno. */
int keyed_limit(pid_t pid, int resource, const struct rlimit *limit); /* prlimit(2) */

#endif
