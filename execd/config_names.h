/* The names of the settings: which variables are meant for us, and what a misspelt one was meant to be. */
#ifndef EXECD_CONFIG_NAMES_H
#define EXECD_CONFIG_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a variable of this name is meant for us and nobody else: it begins as our settings do (SANDBOX_,
 * RELAY_, WORKER_, NETD_, in any case), or it is a slip or two away from such a setting. A misspelt secret is
 * a secret. */
bool config_names_is_ours(const char *name, size_t length);

/* The setting that is nearest to name. */
const char *config_names_nearest(const char *name, size_t length);

/* One warning for each variable that is meant for us and is no setting. Never its value. */
void config_names_warn(char *const vars[]);

#endif
