/* Whether a process only dies: none of its threads will run anything of its own any more. What is left to do
 * is the kernel's, which takes the memory back on the process's own turn of the processor, and that may be
 * long in coming. */
#ifndef EXECD_SLOT_DYING_H
#define EXECD_SLOT_DYING_H

#include "execd/slot/descendants.h"

#include <stdbool.h>
#include <stddef.h>

/* From the text of a thread's stat file (proc(5)): it is dead, exits (PF_EXITING in field 9), or has SIGKILL
 * pending (field 31) and waits for nothing but the processor (R in field 3). What waits for something else
 * may wait for ever. */
bool dying_parse(const char *text, size_t size);

/* Of all its threads, now; what is gone is dying, what cannot be read is not. */
bool dying_only(const struct descendant *d);

/* How many below root do more than die; at most max are looked at. Or -errno: unknown. See descendants_walk.
 */
int dying_count_others(pid_t root, bool (*spare)(pid_t child), unsigned max);

#endif
