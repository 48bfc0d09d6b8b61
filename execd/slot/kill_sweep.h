/* The killer that needs nothing: walks the descendants of a process, keeps each from forking, kills each, and
 * again until nothing is found. Its word is never the proof: that is ECHILD.
 *
 * What it is up against are processes that fork faster than it reads. RLIMIT_NPROC 0 stops the forks of any
 * uid but 0. From the second pass on all are stopped before the first is killed: what has a signal pending
 * cannot fork, so a bomb that is held down by a limit does not refill what dies (300 processes of uid 0 in a
 * cgroup: up to 10 s without, 1.5 s with). Where the tree does not shrink all of it is bound to the CPU that
 * the sweep itself runs on: what cannot run while it is read cannot fork while it is read. Only then
 * SCHED_IDLE, for an idle process on a busy machine takes seconds to die.
 *
 * A limit and a scheduling class cannot be taken back and are set by number: only our own children's, whose
 * number is theirs until we reap them, and to whom all others turn as their parents die. A binding is taken
 * back where the number may have been given away meanwhile. Signals to others go through pidfds. */
#ifndef EXECD_SLOT_KILL_SWEEP_H
#define EXECD_SLOT_KILL_SWEEP_H

#include "execd/slot/descendants.h"

#include <stdbool.h>
#include <sys/types.h>

struct sweep {
	pid_t root;
	bool (*spare)(pid_t child); /* see descendants_walk */
	unsigned passes;
	int found;         /* in the last pass */
	unsigned stayed;   /* passes that found no fewer than the one before */
	unsigned grew;     /* passes that found more */
	unsigned again_ms; /* the rest before the next pass */
	int cpu;           /* that the tree is bound to, -1: not bound */
};

void sweep_begin(struct sweep *sweep, pid_t root, bool (*spare)(pid_t child));

/* One pass over at most max processes. The number found alive or not yet reaped, or -errno when /proc cannot
 * be read. */
int sweep_pass(struct sweep *sweep, unsigned max);

#endif
