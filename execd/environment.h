/* Environments: the one we were given, which holds secrets, and the one that commands get, which does not. */
#ifndef EXECD_ENVIRONMENT_H
#define EXECD_ENVIRONMENT_H

#include "execd/config.h"

#include <stddef.h>

/* A copy of an environment in one mapping of its own, kept out of core dumps. */
struct environment {
	char **vars; /* NULL-ended */
	size_t size; /* of the mapping that starts at vars */
};

/* Moves the process's own environment block into *ret and overwrites the original in place, so that
 * /proc/<pid>/environ shows nothing, to nobody, whatever its owner's rights. environ is empty from then on. 0
 * or -errno. */
int environment_take(char **envp, struct environment *ret);

/* Overwrites and unmaps it. */
void environment_wipe(struct environment *e);

/* The value of name, or NULL. Empty counts as unset; of several entries the first one counts. */
const char *environment_get(char *const vars[], const char *name);

/* The same, where empty is a value. */
const char *environment_find(char *const vars[], const char *name);

enum environment_fate {
	ENVIRONMENT_SHOWN,
	ENVIRONMENT_HIDDEN,
	ENVIRONMENT_OWN, /* hidden where the commands' user is another */
};

struct environment_rule {
	const char *begins; /* an entry, so that "NAME=" is that variable and "NAME" whatever begins so */
	enum environment_fate fate;
};

/* Ends with begins NULL. Tests hold it against bash and the manual. */
extern const struct environment_rule environment_rules[];

/* Whether commands may see this entry: nothing that is meant for us (config_names_is_ours) or that a rule
 * hides, no proxy setting that carries credentials, and no entry without '='. changed: as below. */
bool environment_allowed(const char *entry, bool changed);

/* Builds the commands' environment out of vars: what is allowed of it, with PATH, HOME, USER and LANG filled
 * in where missing from user; changed says that the commands' uid is not the one that we were started as, and
 * then HOME, USER, LOGNAME and SHELL become user's, and what else was the other user's own goes. NULL-ended,
 * one allocation, the caller's; NULL: no memory. */
char **environment_for_commands(char *const vars[], const struct config_user *user, bool changed);

#endif
