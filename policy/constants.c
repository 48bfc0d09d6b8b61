/* The names that a condition may use. Only constants that have one value on x86_64 and aarch64: no
 * O_DIRECTORY, O_NOFOLLOW, O_DIRECT or O_TMPFILE, which differ. */
#include "policy/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

struct constant {
	const char *name;
	uint32_t value;
};

#define C(name)                                                                                              \
	{                                                                                                    \
#name, (uint32_t)(name)                                                                      \
	}
/* Not in the headers of every C library. */
#define N(name, value)                                                                                       \
	{                                                                                                    \
#name, (uint32_t)(value)                                                                     \
	}

static const struct constant constants[] = {
    C(AF_INET),
    C(AF_INET6),
    C(AF_NETLINK),
    C(AF_UNIX),
    C(CLONE_NEWCGROUP),
    C(CLONE_NEWIPC),
    C(CLONE_NEWNET),
    C(CLONE_NEWNS),
    C(CLONE_NEWPID),
    N(CLONE_NEWTIME, 0x80),
    C(CLONE_NEWUSER),
    C(CLONE_NEWUTS),
    C(FIOASYNC),
    C(FIONBIO),
    C(FIONREAD),
    C(F_DUPFD),
    C(F_DUPFD_CLOEXEC),
    C(F_GETFD),
    C(F_GETFL),
    C(F_GETPIPE_SZ),
    C(F_SETFD),
    C(F_SETFL),
    C(F_SETPIPE_SZ),
    N(IOPRIO_WHO_PROCESS, 1),
    C(MADV_DONTDUMP),
    C(MADV_DONTNEED),
    C(MADV_FREE),
    C(O_ACCMODE),
    C(O_APPEND),
    C(O_ASYNC),
    C(O_CREAT),
    C(O_NONBLOCK),
    C(O_RDONLY),
    C(O_TRUNC),
    C(PRIO_PROCESS),
    C(PROT_EXEC),
    C(PR_GET_DUMPABLE),
    C(PR_SET_DUMPABLE),
    C(PR_SET_NAME),
    C(PR_SET_VMA),
    C(SIGABRT),
    N(SIOCOUTQ, SIOCOUTQ),
    C(SIOCSPGRP),
    C(SIG_UNBLOCK),
    C(SIG_BLOCK),
    C(SIG_SETMASK),
    C(SOCK_DGRAM),
    C(SOCK_STREAM),
    N(SOCK_TYPE, 0xf),
    C(TCGETS),
    N(TIOCGWINSZ, TIOCGWINSZ),
    C(TIOCLINUX),
    C(TIOCSETD),
    C(TIOCSTI),
};

static const struct constant errnos[] = {
    C(EACCES), C(EAFNOSUPPORT), C(EINVAL), C(ENOSYS), C(EPERM), C(EPROTONOSUPPORT), C(ENOTTY),
};

static int look_up(const struct constant *table, size_t count, const char *name, uint32_t *ret_value)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(table[i].name, name) == 0) {
			*ret_value = table[i].value;
			return 0;
		}
	}
	return -ENOENT;
}

int policy_constant(const char *name, uint32_t *ret_value)
{
	return look_up(constants, sizeof constants / sizeof *constants, name, ret_value);
}

int policy_errno(const char *name, uint32_t *ret_value)
{
	return look_up(errnos, sizeof errnos / sizeof *errnos, name, ret_value);
}
