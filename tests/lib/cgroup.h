/* A cgroup of a test's own, where it may make one: version 1 or 2, bounded as either calls it. */
#ifndef TESTS_LIB_CGROUP_H
#define TESTS_LIB_CGROUP_H

#include <stdbool.h>

struct cgroup {
	char folder[96];
};

/* Makes one with the limit and moves this process into it. False, and nothing is left, where that cannot be.
 */
bool cgroup_enter_memory(struct cgroup *ret, const char *bytes);
bool cgroup_enter_pids(struct cgroup *ret, const char *count);

/* One for the processor, too, in which the system makes no autogroups: all that runs in it shares by the
 * head, and gets far more than what runs beside it. */
bool cgroup_enter_cpu(struct cgroup *ret);

/* A child of nobody's, which removes it (NULL: none) once this process and all else in it is gone: for who
 * gives up the right to. False when that cannot be. */
bool cgroup_keep_clean(const struct cgroup *const *cgroups);

/* Makes one that can be frozen, with nobody in it yet. False where that cannot be. */
bool cgroup_make_freezer(struct cgroup *ret);
/* CHILD: moves this process into it. */
bool cgroup_enter(const struct cgroup *cgroup);
/* Returns once it is so. */
bool cgroup_freeze(const struct cgroup *cgroup, bool frozen);
/* False while something is in it. */
bool cgroup_remove(const struct cgroup *cgroup);

/* Moves this process out and removes it. False while something else is in it. */
bool cgroup_leave(const struct cgroup *cgroup);

#endif
