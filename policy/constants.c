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

/* Few bits each, for the tests try every one. AF_INET_ANY: AF_INET6 is AF_INET with one bit more, and there
 * is no family above. SOCK_TYPE_PING: so is SOCK_RAW SOCK_DGRAM. SCHED_CLASS: without flags. */
static const struct constant constants[] = {
    C(AF_INET),
    C(AF_INET6),
    N(AF_INET_ANY, 0xf7),
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
    C(F_SETFD),
    C(F_SETFL),
    C(F_SETOWN),
    C(F_SETPIPE_SZ),
    N(IOPRIO_WHO_PROCESS, 1),
    C(IPPROTO_ICMP),
    C(IPPROTO_ICMPV6),
    C(IPPROTO_IP),
    C(IPPROTO_IPV6),
    C(IPPROTO_TCP),
    C(IPPROTO_UDP),
    N(NETLINK_ROUTE, 0),
    N(NETLINK_SOCK_DIAG, 4),
    C(O_ACCMODE),
    C(O_APPEND),
    C(O_ASYNC),
    C(O_CREAT),
    C(O_NONBLOCK),
    C(O_TRUNC),
    C(PRIO_PGRP),
    C(PRIO_PROCESS),
    C(PRIO_USER),
    C(PROT_EXEC),
    C(PROT_WRITE),
    C(PR_SET_DUMPABLE),
    C(PR_SET_NAME),
    C(SCHED_BATCH),
    N(SCHED_CLASS, 0xf),
    C(SCHED_IDLE),
    C(SCHED_OTHER),
    C(SIGABRT),
    C(SIG_BLOCK),
    C(SIG_SETMASK),
    C(SIG_UNBLOCK),
    C(SIOCOUTQ),
    C(SIOCSPGRP),
    C(SOCK_DGRAM),
    C(SOCK_RAW),
    C(SOCK_SEQPACKET),
    C(SOCK_STREAM),
    N(SOCK_TYPE_MASK, 0xf),
    N(SOCK_TYPE_PING, 0xe),
    C(SOL_SOCKET),
    C(SO_KEEPALIVE),
    C(TCGETS),
    C(TCP_FASTOPEN_CONNECT),
    C(TCP_KEEPIDLE),
    C(TCP_KEEPINTVL),
    C(TCP_NODELAY),
    C(TCP_NOTSENT_LOWAT),
    C(TCP_USER_TIMEOUT),
    C(TIOCGWINSZ),
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
