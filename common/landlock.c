#include "common/landlock.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

#define CREATE_VERSION    1u /* LANDLOCK_CREATE_RULESET_VERSION */
#define RULE_PATH_BENEATH 1
#define RULE_NET_PORT     2
#define LOG_SAME_EXEC_OFF 1u /* LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF */
#define ATTR_SIZE_FS      8u
#define ATTR_SIZE_FS_NET  16u
#define ATTR_SIZE_SCOPED  24u

/* struct landlock_ruleset_attr and the rules' structs, as of ABI 6. */
struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

struct net_port_attr {
	uint64_t allowed_access;
	uint64_t port;
};

int landlock_abi(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);

	return version > 0 ? (int)version : 0;
}

static uint64_t known_fs(int abi)
{
	uint64_t fs = 0;

	if (abi >= 1)
		fs |= LANDLOCK_FS_REFER - 1;
	if (abi >= 2)
		fs |= LANDLOCK_FS_REFER;
	if (abi >= 3)
		fs |= LANDLOCK_FS_TRUNCATE;
	if (abi >= 5)
		fs |= LANDLOCK_FS_IOCTL_DEV;
	return fs;
}

struct landlock_world landlock_known(int abi, const struct landlock_world *world)
{
	struct landlock_world known = {.fs = world->fs & known_fs(abi)};

	if (abi >= LANDLOCK_ABI_PORTS)
		known.net = world->net & (LANDLOCK_NET_BIND | LANDLOCK_NET_CONNECT);
	if (abi >= LANDLOCK_ABI_SCOPE)
		known.scoped = world->scoped & (LANDLOCK_SCOPED_ABSTRACT | LANDLOCK_SCOPED_SIGNAL);
	return known;
}

static size_t attr_size(int abi)
{
	if (abi >= LANDLOCK_ABI_SCOPE)
		return ATTR_SIZE_SCOPED;
	return abi >= LANDLOCK_ABI_PORTS ? ATTR_SIZE_FS_NET : ATTR_SIZE_FS;
}

int landlock_create(int abi, const struct landlock_world *world, bool refer_only)
{
	struct landlock_world known = landlock_known(abi, world);
	struct ruleset_attr attr = {
	    .handled_access_fs = known.fs | LANDLOCK_FS_REFER,
	    .handled_access_net = known.net,
	    .scoped = known.scoped,
	};
	FD_CLOSE int ruleset = -1;
	int err;

	if (abi < LANDLOCK_ABI_REFER || (!refer_only && !known.fs && !known.net && !known.scoped))
		return -EOPNOTSUPP;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, attr_size(abi), 0);
	if (ruleset < 0)
		return -errno;
	err = landlock_allow(ruleset, abi, LANDLOCK_FS_REFER, "/");
	return err < 0 ? err : fd_steal(&ruleset);
}

int landlock_allow_path(int ruleset, int abi, uint64_t fs, int path_fd)
{
	struct path_beneath_attr attr = {.allowed_access = fs & known_fs(abi), .parent_fd = path_fd};

	if (!attr.allowed_access)
		return 0;
	return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0) < 0 ? -errno : 0;
}

int landlock_allow(int ruleset, int abi, uint64_t fs, const char *path)
{
	FD_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : landlock_allow_path(ruleset, abi, fs, fd);
}

int landlock_allow_port(int ruleset, int abi, uint64_t net, uint16_t port)
{
	struct net_port_attr attr = {.allowed_access = net, .port = port};

	if (abi < LANDLOCK_ABI_PORTS)
		return 0;
	return syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &attr, 0) < 0 ? -errno : 0;
}

int landlock_enter(int ruleset, int abi, bool quiet)
{
	unsigned flags = quiet && abi >= LANDLOCK_ABI_QUIET ? LOG_SAME_EXEC_OFF : 0;

	return syscall(SYS_landlock_restrict_self, ruleset, flags) < 0 ? -errno : 0;
}
