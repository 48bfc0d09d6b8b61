/* The killer that needs nothing: walks the descendants of a process through /proc/<pid>/task/<tid>/children,
 * keeps each from forking, kills each, and again until nothing is found. Its word is never the proof: that is
 * ECHILD.
 *
 * A number read from /proc may be another process by the time it is used. So each is held by a pidfd first,
 * its parent is looked at, and the signal goes through the pidfd; where pidfds are refused only unreaped
 * children are signalled. */
#ifndef EXECD_SLOT_KILL_SWEEP_H
#define EXECD_SLOT_KILL_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SWEEP_MAX 4096u /* descendants seen in one walk; a larger tree takes more passes */

struct sweep {
	pid_t root;                 /* whose descendants; the caller itself */
	bool (*spare)(pid_t child); /* a child of root that is left alone, with all below it; NULL: none */
	unsigned passes;
	unsigned found; /* processes in the last pass */
	bool grew;      /* the last pass found more than the one before */
};

void sweep_begin(struct sweep *sweep, pid_t root, bool (*spare)(pid_t child));

/* One pass over at most max (≤ SWEEP_MAX) processes: restrains all, then kills all. The number found alive or
 * not yet reaped, or -errno when /proc cannot be read. */
int sweep_pass(struct sweep *sweep, unsigned max);

/* How many there are, at most SWEEP_MAX. Touches none. */
unsigned sweep_count(const struct sweep *sweep);

/* Reads the numbers in the text of a children file, which may end inside one: *rest is then how many bytes at
 * the end belong to the next read. At most max are stored; the count. */
size_t sweep_parse_children(const char *text, size_t size, bool last, pid_t *ret, size_t max,
			    size_t *ret_rest);

/* The parent in the text of /proc/<pid>/stat; 0 when there is none. The name may hold spaces, ')' and digits.
 */
pid_t sweep_parse_parent(const char *text, size_t size);

#endif
