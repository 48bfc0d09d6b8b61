/* What a process of another identity could do, found out by one: a throw-away child that becomes it. Modes,
 * ACLs, mounts without exec and user namespaces are then the kernel's to judge, not ours. */
#ifndef EXECD_PROBE_H
#define EXECD_PROBE_H

#include "common/drop.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* What to find out; a field that is NULL is left out. */
struct probe_question {
	const char *folder;        /* can it be entered */
	const char *path;          /* where names are looked for; parts that are not absolute are skipped */
	const char *const *names;  /* NULL-ended, at most 32 */
	const char *readable_file; /* can it be read */
	const char *writable_path; /* can it be written */
};

struct probe {
	int err;              /* of becoming the identity: 0 or -errno */
	char step[32];        /* of that, where it failed */
	int folder_err;       /* of entering folder: 0 or -errno */
	uint32_t found;       /* bit n: names[n] can be executed */
	char first[PATH_MAX]; /* where names[0] is, absolute; empty: nowhere */
	bool can_read;
	bool can_write;
};

/* 0, or -errno when no child could be had. */
int probe_as(const struct drop *drop, const struct probe_question *question, struct probe *ret);

#endif
