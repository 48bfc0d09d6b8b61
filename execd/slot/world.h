/* What the warden prepares once and every slot inherits. */
#ifndef EXECD_SLOT_WORLD_H
#define EXECD_SLOT_WORLD_H

#include "execd/slots.h"

#include <sys/types.h>
#include <time.h>

struct config;
struct guard;
struct seccomp_program;

struct slot_world {
	const struct config *config;
	const struct seccomp_program *inherited; /* the warden loads it, for slots and commands; NULL: none */
	const struct seccomp_program *seccomp;   /* each command loads it before bash runs; NULL: none */
	struct guard *guard;                     /* NULL: Landlock holds the commands' signals back */
	struct slots_plan plan;
	pid_t warden;
	time_t since; /* of the worker's start, by the wall clock */
	int ruleset;  /* kill: each slot enters it, and each command again; -1: none */
};

/* Closes every descriptor but those in keep (count of them, in any order; below 0 is skipped) and 0 to 2. 0
 * or -errno. */
int world_close_all_but(const int *keep, size_t count);

#endif
