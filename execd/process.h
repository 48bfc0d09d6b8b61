/* execd's own process: what it is made of before anything is read, and what it keeps once all is open. */
#ifndef EXECD_PROCESS_H
#define EXECD_PROCESS_H

#include <stdint.h>

/* First of all: no core, not dumpable, descriptors 0 to 2 open, nothing inherited beyond them, a log that
 * never waits, signals as usual. 0 or -errno with *ret_step set (static). */
int process_harden(const char **ret_step);

/* Before the first child: reaper of orphans, as many descriptors as the hard limit allows, and, where
 * privilege allows, not the first to go when memory runs out. 0 or -errno with *ret_step set (static). */
int process_prepare(const char **ret_step);

/* Capabilities that execd goes on with: as root those that start a netd and slots of other users and kill
 * across users; SETPCAP is for their bounding sets. keep: SANDBOX_KEEP_CAPS, which must be held to be handed
 * on. */
uint64_t process_capabilities(uint64_t keep);

/* Keeps those and nothing else. The ids stay as they were. 0 or -errno with *ret_step set (static). */
int process_drop(uint64_t keep, const char **ret_step);

#endif
