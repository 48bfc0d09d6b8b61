/* The killer that needs nothing: walks the descendants of a process, keeps each from forking, kills each, and
 * again until nothing is found. Its word is never the proof: that is ECHILD.
 *
 * What it is up against are processes that fork faster than it reads, and that leave it no processor to read
 * with. So each is stopped when it is found: it then neither runs nor forks, and every one more makes the
 * walk faster. RLIMIT_NPROC 0 stops the forks of any uid but 0 for good. All of them are killed when all are
 * found, the last found first: a child before its parent, whose death would give it away, and make it run
 * again when that was the last of its session to care (setpgid(2), orphaned process groups). A bomb that a
 * limit holds down cannot refill what dies. Where the tree does not shrink all of it is bound to the CPU that
 * the sweep itself runs on: what cannot run while it is read cannot fork while it is read. Nothing is made to
 * run less than it does: what dies needs the processor to give its memory back.
 *
 * A limit cannot be taken back and is set by number: only our own children's, whose number is theirs until we
 * reap them, and to whom all others turn as their parents die. A binding is taken back where the number may
 * have been given away meanwhile. Signals to others go through pidfds. */
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
	unsigned again_ms; /* the rest before the next pass */
	int cpu;           /* that the tree is bound to, -1: not bound */
};

void sweep_begin(struct sweep *sweep, pid_t root, bool (*spare)(pid_t child));

/* One pass over at most max processes. The number found alive or not yet reaped, or -errno when /proc cannot
 * be read. */
int sweep_pass(struct sweep *sweep, unsigned max);

#endif
