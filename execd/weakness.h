/* What this machine and these settings leave unprotected, in words, for --check and the log at start. */
#ifndef EXECD_WEAKNESS_H
#define EXECD_WEAKNESS_H

#include <stdbool.h>

struct config;
struct slots_plan;

/* Calls say for each. all: also what follows from the settings alone and is warned of by config_warn or is
 * the operator's choice; else only what the kernel lacks. */
void weakness_each(const struct config *config, const struct slots_plan *plan, bool all,
		   void (*say)(const char *what));

/* One warning for each that the kernel is to blame for. */
void weakness_warn(const struct config *config, const struct slots_plan *plan);

#endif
