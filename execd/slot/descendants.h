/* A walk over the descendants of a process by /proc/<pid>/task/<tid>/children, breadth first.
 *
 * A number read from /proc may be another process by the time it is used: a swarm that forks wraps the
 * numbers around in seconds. So a process is known by the number of its pidfd's inode, which is never given
 * twice (Linux 6.9), or by its start time. Each is held by a pidfd first; then its parent must be the one
 * whose list it came from, still alive and still the same (or the caller itself, to whom orphans come); only
 * then may it be touched, and only while that holds is its own list read. The caller's own children need none
 * of it, for nobody else reaps them.
 *
 * So a number is good for what cannot be undone only where own_child says so; another's may be given away
 * between any look at it and its use. */
#ifndef EXECD_SLOT_DESCENDANTS_H
#define EXECD_SLOT_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DESCENDANTS_MAX 4096u /* in one walk; more take more walks */

struct descendant {
	pid_t pid;
	int pidfd;      /* the walk's; -1 for own children, and where the system refuses pidfds */
	bool own_child; /* of the caller, who alone can reap it: its number is not given away */
};

/* Calls visit (NULL: none) for each descendant of root, at once when it is found: all own children of the
 * caller, zombies among them, and of the others those that are none, at most max looked at. A child of root
 * for which spare says true is left out, with all below it; NULL: none. Their number, or -errno when /proc
 * has nothing on root, or when something could not be read for another reason than that it is gone: then
 * there may be more than was visited, and 0 would be a lie. */
int descendants_walk(pid_t root, bool (*spare)(pid_t child), unsigned max,
		     void (*visit)(const struct descendant *d, void *owner), void *owner);

/* Calls visit again for each that the last walk found (the first DESCENDANTS_MAX, or max, of them) and that
 * is still there, the last found first: children before their parents. The caller has reaped nothing since.
 */
void descendants_back(void (*visit)(const struct descendant *d, void *owner), void *owner);

/* Calls visit for each thread id of d, which it had when that was read. 0 or -errno; -ESRCH: d is gone. */
int descendants_threads(const struct descendant *d, void (*visit)(pid_t tid, void *owner), void *owner);

/* Whether tid is a thread of d now. If it was before, too, then what was done to the number meanwhile reached
 * no other: of those, whoever took it and gave it back within a system call would be the exception. */
bool descendants_has_thread(const struct descendant *d, pid_t tid);

/* The numbers in the text of a children file, which may end inside one: *ret_rest is then how many bytes at
 * the end belong to the next read. At most max are stored; their count. */
size_t descendants_parse_children(const char *text, size_t size, bool last, pid_t *ret, size_t max,
				  size_t *ret_rest);

/* What /proc/<pid>/stat says of who a process is. */
struct descendants_stat {
	pid_t parent;
	bool zombie;                /* wholly: a first thread that ended before the others is none */
	unsigned long long started; /* clock ticks after boot (proc(5), field 22) */
};

/* From its text; the name in it may hold spaces, ')' and digits. False when a field is missing. */
bool descendants_parse_stat(const char *text, size_t size, struct descendants_stat *ret);

#endif
