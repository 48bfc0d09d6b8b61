/* Keeps commands from signalling the worker where Landlock cannot (before Linux 6.12): a filter of pids, made
 * anew for each command from a table that execd writes and slots read. What is started after a command is not
 * in that command's filter. */
#ifndef EXECD_SLOT_GUARD_H
#define EXECD_SLOT_GUARD_H

#include "common/limits.h"
#include "common/seccomp.h"

#include <sys/types.h>

enum guard_place {
	GUARD_INIT, /* process 1, whose group is everybody: kill(-1) */
	GUARD_EXECD,
	GUARD_EXECD_GROUP, /* its process group */
	GUARD_WARDEN,
	GUARD_NETD,
	GUARD_SLOTS, /* from here on */
	GUARD_PLACES = GUARD_SLOTS + 2 * LIMIT_CONCURRENT + LIMIT_MINDERS,
};

/* Of these, as processes and as groups. 0: nobody. */
struct guard {
	volatile pid_t pids[GUARD_PLACES];
};

/* Shared with all that is forked, for good. NULL with errno. */
struct guard *guard_map(void);

/* The filter for a command that is started now; it lives until the next call. Refused are signals to the
 * table's pids and groups (EPERM), by kill and its kin, pidfd_open and F_SETOWN; F_SETOWN_EX,
 * FIOSETOWN and SIOCSPGRP, which name a pid in memory; sched_setaffinity of the pids; and, because a folder
 * of proc(5) will do for it, pidfd_send_signal (ENOSYS, as before Linux 5.1), as each call of another
 * architecture. */
const struct seccomp_program *guard_program(const struct guard *guard);

#endif
