/* What runs between vfork and execve: straight-line code, async-signal-safe, in the memory of the slot. */
#ifndef EXECD_SLOT_CHILD_H
#define EXECD_SLOT_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct seccomp_program;

struct child_plan {
	const char *bash;
	char *const *argv;
	char *const *environ;
	int fds[3];         /* become 0, 1, 2 */
	const char *folder; /* absolute; where it cannot be entered, / */
	int ruleset;        /* the command's Landlock layer; -1: none */
	int landlock_abi;
	const struct seccomp_program *guard;   /* NULL: none */
	const struct seccomp_program *seccomp; /* the same; it may refuse to load another */
	bool raise_stack;                      /* a command longer than one argument counts against it */
};

/* Starts bash in a session of its own. Returns its pid once it was executed (vfork waits for that), with
 * *ret_folder_errno = 0, or why it runs in / instead of its folder; or a value below 0 with *ret_failed =
 * OUTCOME_START_VALUE of the step that failed, and then no process is left. */
pid_t child_start(const struct child_plan *plan, uint32_t *ret_failed, uint32_t *ret_folder_errno);

#endif
