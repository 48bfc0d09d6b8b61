/* What signals do to a process, all 64 at once. By the raw calls: glibc's refuse 32 and 33, which end a
 * process like any other. Async-signal-safe: CHILD. */
#ifndef COMMON_DISPOSITIONS_H
#define COMMON_DISPOSITIONS_H

#include <signal.h>
#include <stdint.h>

#define DISPOSITIONS_BIT(signal) (UINT64_C(1) << ((signal)-1))

/* What the kernel says of a fault of our own, abort(3) and a forbidden system call. To ignore them would only
 * hide where they come from. */
#define DISPOSITIONS_FAULTS                                                                                  \
	(DISPOSITIONS_BIT(SIGILL) | DISPOSITIONS_BIT(SIGTRAP) | DISPOSITIONS_BIT(SIGABRT) |                  \
	 DISPOSITIONS_BIT(SIGBUS) | DISPOSITIONS_BIT(SIGFPE) | DISPOSITIONS_BIT(SIGSEGV) |                   \
	 DISPOSITIONS_BIT(SIGSYS))

/* All signals by default, nothing blocked. */
void dispositions_reset(void);

/* The same, but for those that are not in kept, which are ignored; SIGCHLD never is (wait(2) would have
 * nothing to wait for), SIGKILL and SIGSTOP cannot be. */
void dispositions_ignore_all_but(uint64_t kept);

/* All by default and blocked: only SIGKILL, SIGSTOP and a fault of its own reach the process. */
void dispositions_block(void);

#endif
