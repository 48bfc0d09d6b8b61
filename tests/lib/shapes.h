/* Runs the shapes of tests/runner/hostile.c, and some that a shell makes of it, in a slot and looks for
 * survivors. */
#ifndef TESTS_LIB_SHAPES_H
#define TESTS_LIB_SHAPES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* NULL-ended. Three more, "caged", "tireless" and "tireless-alone", are bombs for a cgroup that bounds them;
 * the last two are killed once so many of them live. */
#define SHAPES_TIRELESS 80u
extern const char *const shapes_names[];

struct shapes_result {
	uint64_t kill_us;     /* from slots_kill (or the leader's exit) to SLOT_EMPTY */
	unsigned marks;       /* records before the kill: the shape was alive */
	unsigned survivors;   /* processes that live after SLOT_EMPTY */
	unsigned marks_after; /* records that came after it */
	unsigned still_alive; /* seconds without a proof */
	int wait_status;
	char order[64];
};

/* rig_start must have been called. by_exit: the leader exits by itself while the shape lives
 * (background=kill); else slots_kill. */
void shapes_run(const char *shape, bool by_exit, struct shapes_result *ret);

#endif
