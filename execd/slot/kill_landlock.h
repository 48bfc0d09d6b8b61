/* The killer that cannot be outrun: in a domain of its own with LANDLOCK_SCOPED_SIGNAL, kill(-1, SIGKILL)
 * reaches exactly what is in that domain and below it, in one walk of the kernel over all processes: no fork
 * slips through.
 *
 * Out of a domain the same call kills everything of the user, or of the machine. So each is preceded by the
 * proof that the scope is in force: a witness, whom this process could signal before it entered the domain,
 * must be out of its reach. Both halves are needed: another user's process is always out of reach. The
 * witness is held by a pidfd, for its number may be given away. */
#ifndef EXECD_SLOT_KILL_LANDLOCK_H
#define EXECD_SLOT_KILL_LANDLOCK_H

#include <stdbool.h>
#include <sys/types.h>

/* To be called before the domain is entered. A pidfd of outsider, which will not be in the domain, or -errno:
 * it can't be signalled now, or the system has no pidfds (Linux before 5.3, or a filter). */
int kill_landlock_witness(pid_t outsider);

/* Whether the witness lives and is out of reach now. */
bool kill_landlock_held_back(int witness);

/* Kills all in the domain but the caller. Where the witness proves nothing (none, reachable, gone) nothing is
 * sent and -EPERM returned. What kill returns means nothing; ECHILD is the proof. */
int kill_landlock(int witness);

#endif
