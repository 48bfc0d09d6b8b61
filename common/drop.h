/* Giving up privileges, for good. Each step is read back and none fails softly: a process that could not drop
 *does not go on. No memory is allocated, so it may be called between fork and exec in a program of one
 *thread.
 *
 * The order, and why (capabilities(7), credentials(7)):
 *	bounding set	first: it needs CAP_SETPCAP, which a change of uid takes away
 *	securebits	NOROOT, locked: from here on uid 0 means nothing to execve
 *	groups, gid, uid
 *	capabilities	after the ids, whose change clears or keeps them
 *	no_new_privs	what a setuid file could give back is gone
 *	dumpable 0	last: changes of ids and capabilities reset it. No core, no ptrace, no /proc/<pid>/mem
 *for peers and then it tries to get back. */
#ifndef COMMON_DROP_H
#define COMMON_DROP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DROP_CAP(n) (UINT64_C(1) << (n))

struct drop {
	bool change_ids; /* else uid, gid and groups stay as they are, and the four fields below are not read
			  */
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* supplementary ones */
	size_t group_count;
	uint64_t keep;     /* capabilities that stay permitted and effective: bit n is capability n */
	uint64_t bounding; /* what stays in the bounding set, keep included by itself */
	bool ambient;      /* keep survives an execve too (inheritable and ambient set) */
};

/* Does all of it for the calling process. 0, or -errno with *ret_step naming the step that failed (static);
 * the process is then half-way and must not go on. Where CAP_SETPCAP is not held the bounding set and the
 * securebits cannot be changed and stay: no_new_privs makes both void. Ids that are in force already need no
 * privilege. */
int drop_privileges(const struct drop *d, const char **ret_step);

/* The permitted capabilities of the calling process, bit n being capability n. */
uint64_t drop_permitted(void);

/* Effective and permitted both hold capability n. */
bool drop_holds(unsigned capability);

/* Capability by name, "cap_net_raw", "CAP_NET_RAW" or "net_raw"; -EINVAL for one that libcap or the kernel
 * does not know. */
int drop_capability_by_name(const char *name, size_t length);

#endif
