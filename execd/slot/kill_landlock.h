/* The killer that cannot be outrun: in a domain of its own with LANDLOCK_SCOPED_SIGNAL, kill(-1, SIGKILL)
 * reaches exactly what is in that domain and below it, in one walk of the kernel over all processes: no fork
 * slips through. */
#ifndef EXECD_SLOT_KILL_LANDLOCK_H
#define EXECD_SLOT_KILL_LANDLOCK_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the scope is in force here: outsider, a process of the same user that could be signalled before,
 * must be out of reach. To be asked once before (true: reachable) and once after the domain was entered
 * (true: held back). */
bool kill_landlock_reachable(pid_t outsider);
bool kill_landlock_held_back(pid_t outsider);

/* Kills all in the domain but the caller. The interlock comes first: parent must be out of reach, or nothing
 * is sent and -EPERM returned. What kill returns means nothing; ECHILD is the proof. */
int kill_landlock(pid_t parent);

#endif
