/* Landlock without a library: plain system calls, each safe between fork and exec, so that a ruleset can be
 * built early and entered late. What the running kernel does not know is left out of a ruleset, never
 * refused; what that costs is the caller's to say. Source: Documentation/userspace-api/landlock.rst,
 * include/uapi/linux/landlock.h.
 *
 * Two traps. A domain forbids rename and link across folders unless it handles LANDLOCK_FS_REFER and allows
 * it, whatever else it is for: landlock_create adds both from ABI 2 on, and below ABI 2 there is no way to
 * allow it. And a domain spreads by fork only, never to what runs already. */
#ifndef COMMON_LANDLOCK_H
#define COMMON_LANDLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Rights on files, with the bits of the kernel's header (which older C libraries lack in part). */
#define LANDLOCK_FS_EXECUTE    (1ull << 0)
#define LANDLOCK_FS_WRITE_FILE (1ull << 1)
#define LANDLOCK_FS_READ_FILE  (1ull << 2)
#define LANDLOCK_FS_READ_DIR   (1ull << 3)
#define LANDLOCK_FS_REFER      (1ull << 13) /* ABI 2 */
#define LANDLOCK_FS_TRUNCATE   (1ull << 14) /* ABI 3 */
#define LANDLOCK_FS_IOCTL_DEV  (1ull << 15) /* ABI 5 */
#define LANDLOCK_FS_ALL        ((1ull << 16) - 1)

#define LANDLOCK_NET_BIND    (1ull << 0) /* ABI 4, TCP only */
#define LANDLOCK_NET_CONNECT (1ull << 1)

#define LANDLOCK_SCOPED_ABSTRACT (1ull << 0) /* ABI 6: abstract unix sockets of processes outside */
#define LANDLOCK_SCOPED_SIGNAL   (1ull << 1)

#define LANDLOCK_ABI_REFER 2 /* from here on a domain need not break rename */
#define LANDLOCK_ABI_PORTS 4
#define LANDLOCK_ABI_SCOPE 6
#define LANDLOCK_ABI_QUIET 7

/* What a domain handles: denied unless a rule allows it (fs, net), or confined to the domain and those nested
 * in it (scoped). */
struct landlock_world {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

/* The kernel's ABI version, 1 or above; 0: no Landlock (not built in, not enabled, or filtered away). Not
 * cached. */
int landlock_abi(void);

/* What of world the ABI knows. With abi 0 or nothing left to handle all is 0. */
struct landlock_world landlock_known(int abi, const struct landlock_world *world);

/* A ruleset (CLOEXEC, the caller's) that handles what abi knows of world; LANDLOCK_FS_REFER is added and
 * allowed on "/". -EOPNOTSUPP below ABI 2, or when only a scope was asked for that the kernel does not have
 * and refer_only is false. refer_only: such a domain is still wanted, for it keeps ptrace and /proc/<pid> of
 * what is outside away. Else -errno. */
int landlock_create(int abi, const struct landlock_world *world, bool refer_only);

/* Allows fs (as far as abi knows it) on the folder or file path_fd (O_PATH will do) and all below. Name
 * folders: a rule sticks to an inode, and a file renamed into its place has none. For a file, rights that
 * only folders have are left out by the caller. 0 or -errno. */
int landlock_allow_path(int ruleset, int abi, uint64_t fs, int path_fd);

/* The same by path. -ENOENT for what is not there. */
int landlock_allow(int ruleset, int abi, uint64_t fs, const char *path);

/* Allows a TCP port for LANDLOCK_NET_CONNECT or LANDLOCK_NET_BIND. Below ABI 4 nothing is handled: 0. 0 or
 * -errno. */
int landlock_allow_port(int ruleset, int abi, uint64_t net, uint16_t port);

/* Enters, for good. no_new_privs must be set already (or CAP_SYS_ADMIN held). quiet: from ABI 7 on, what this
 * program is denied is not written to the audit log. The ruleset stays the caller's and can be entered again,
 * each time as a new domain. 0 or -errno; -E2BIG at the 17th layer. */
int landlock_enter(int ruleset, int abi, bool quiet);

#endif
