/* netd's jail: after it this process reads what name resolution and certificates need, dials the ports of its
 * settings, and does nothing else to the machine (design.md "Privileges"). */
#ifndef NETD_JAIL_H
#define NETD_JAIL_H

#include "netd/settings.h"

/* After transport_prepare, before anything secret comes. Jails the process for good: no_new_privs, dumpable
 * 0, no core file, few descriptors, no capability, a Landlock domain as far as the kernel has it, the seccomp
 * policy policy/netd.policy. Each step is read back; only Landlock may be missing, in part or whole. Says in
 * one log line what is in force, or what failed. From here on a call that the policy does not list is logged
 * by name and ends the process with SIGSYS; a listed one whose arguments it refuses likewise. 0 or -errno;
 * after an error the process must exit. */
int jail_enter(const struct settings *settings);

#endif
