/* What a wait says: an exit, or the stop of a process that asked its parent to trace it. */
#ifndef EXECD_REAP_H
#define EXECD_REAP_H

#include <stdbool.h>
#include <sys/types.h>

/* True when status, of waitpid(2) without WUNTRACED, is an exit. Else pid has called PTRACE_TRACEME, which
 * needs nobody's consent, and stands still at a signal (ptrace(2)): it is let go, and gets the signal. */
bool reap_is_exit(pid_t pid, int status);

#endif
