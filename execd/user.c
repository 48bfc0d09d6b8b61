#include "execd/user.h"

#include "common/fd.h"
#include "common/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX     (8u * LIMIT_MIB)
#define PASSWD_PARTS 7
#define GROUP_PARTS  4

const struct user_files user_files_system = {.passwd = "/etc/passwd", .group = "/etc/group"};

static void free_text(char **text)
{
	free(*text);
}

/* The whole file, NUL-terminated and the caller's, or NULL. */
static char *read_text(const char *path)
{
	size_t size;
	FD_CLOSE int fd = fd_open_regular(AT_FDCWD, path, FILE_MAX, &size);
	char *text = fd >= 0 ? malloc(size + 1) : NULL;
	ssize_t n = text ? fd_read_full(fd, text, size) : -1;

	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* Cuts the next line off *rest and splits it at colons. False at the end; missing parts are "". */
static bool next_line(char **rest, char *parts[], size_t count)
{
	char *line = strsep(rest, "\n");
	char *end = line ? line + strlen(line) : NULL;

	for (size_t i = 0; end != NULL && i < count; i++) {
		char *part = strsep(&line, ":");

		parts[i] = part ? part : end;
	}
	return end != NULL;
}

/* A uid or gid in decimal. 2^32-1 means "unchanged" to the system calls that take one, and is none. */
static bool parse_id(const char *s, uint32_t *ret)
{
	char *end;
	unsigned long v;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	v = strtoul(s, &end, 10);
	if (errno != 0 || *end != '\0' || v >= UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool copy(char *to, size_t size, const char *from)
{
	size_t n = strlen(from);

	if (n >= size)
		return false;
	memcpy(to, from, n + 1);
	return true;
}

/* Finds a line of passwd by name, or by uid where name is NULL. */
static bool find_user(const char *path, const char *name, uid_t uid, struct config_user *ret)
{
	__attribute__((cleanup(free_text))) char *text = read_text(path);
	char *rest = text, *f[PASSWD_PARTS];

	while (text && next_line(&rest, f, PASSWD_PARTS)) {
		struct config_user u = {.set = true};

		if (!parse_id(f[2], &u.uid) || !parse_id(f[3], &u.gid) || f[0][0] == '\0')
			continue;
		if (name ? strcmp(f[0], name) != 0 : u.uid != uid)
			continue;
		if (!copy(u.name, sizeof u.name, f[0]) ||
		    !copy(u.home, sizeof u.home, f[5][0] ? f[5] : "/") ||
		    !copy(u.shell, sizeof u.shell, f[6][0] ? f[6] : "/bin/sh"))
			continue;
		*ret = u;
		return true;
	}
	return false;
}

static bool find_group(const char *path, const char *name, gid_t *ret)
{
	__attribute__((cleanup(free_text))) char *text = read_text(path);
	char *rest = text, *f[GROUP_PARTS];

	while (text && next_line(&rest, f, GROUP_PARTS)) {
		if (f[0][0] != '\0' && strcmp(f[0], name) == 0 && parse_id(f[2], ret))
			return true;
	}
	return false;
}

static bool lists(char *members, const char *name)
{
	char *member;

	while ((member = strsep(&members, ",")) != NULL) {
		if (strcmp(member, name) == 0)
			return true;
	}
	return false;
}

/* False when there are more than the table holds. */
static bool find_supplementary(const char *path, struct config_user *u)
{
	__attribute__((cleanup(free_text))) char *text = read_text(path);
	char *rest = text, *f[GROUP_PARTS];

	while (text && next_line(&rest, f, GROUP_PARTS)) {
		gid_t gid;

		if (!parse_id(f[2], &gid) || gid == u->gid || !lists(f[3], u->name))
			continue;
		if (u->group_count == sizeof u->groups / sizeof *u->groups)
			return false;
		u->groups[u->group_count++] = gid;
	}
	return true;
}

void user_of_uid(const struct user_files *files, uid_t uid, struct config_user *ret)
{
	if (find_user(files->passwd, NULL, uid, ret))
		return;
	*ret = (struct config_user){.set = true, .uid = uid, .gid = uid, .home = "/", .shell = "/bin/sh"};
	snprintf(ret->name, sizeof ret->name, "%u", uid);
}

int user_parse(const struct user_files *files, const char *spec, struct config_user *ret,
	       const char **ret_why)
{
	const char *colon = strchr(spec, ':');
	size_t length = colon ? (size_t)(colon - spec) : strlen(spec);
	struct config_user u = {0};
	char who[sizeof u.name];
	uid_t uid;

	*ret_why = "must be a user's name or number, with a group after a colon if wanted";
	if (length == 0 || length >= sizeof who)
		return -EINVAL;
	memcpy(who, spec, length);
	who[length] = '\0';
	if (parse_id(who, &uid)) {
		user_of_uid(files, uid, &u);
	} else if (!find_user(files->passwd, who, 0, &u)) {
		*ret_why = "names a user that /etc/passwd does not have";
		return -EINVAL;
	}
	if (colon && !parse_id(colon + 1, &u.gid) && !find_group(files->group, colon + 1, &u.gid)) {
		*ret_why = "names a group that /etc/group does not have";
		return -EINVAL;
	}
	if (!colon && !find_supplementary(files->group, &u)) {
		*ret_why = "names a user of more than 32 supplementary groups; name one group after a colon";
		return -EINVAL;
	}
	*ret = u;
	return 0;
}
