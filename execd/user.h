/* Users and groups as /etc/passwd and /etc/group name them, read by ourselves: a static NSS would load shared
 * objects (and ask the network) in the process that must not. Only at start. */
#ifndef EXECD_USER_H
#define EXECD_USER_H

#include "execd/config.h"

/* Where to look; tests give others. */
struct user_files {
	const char *passwd;
	const char *group;
};

extern const struct user_files user_files_system;

/* Parses `name|uid[:group|gid]`. Without a group it is the user's own, and the supplementary groups are those
 * that list its name; a number that no line names gets the group of the same number, home "/" and /bin/sh. A
 * missing or unreadable file counts as an empty one. On failure -EINVAL and *ret_why (static). */
int user_parse(const struct user_files *files, const char *spec, struct config_user *ret,
	       const char **ret_why);

/* The entry of a uid, for HOME, USER and SHELL; never fails: see above for a number that no line names. */
void user_of_uid(const struct user_files *files, uid_t uid, struct config_user *ret);

#endif
