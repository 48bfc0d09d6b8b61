#include "netd/jail.h"

#include "common/fd.h"
#include "common/landlock.h"
#include "common/log.h"
#include "policy/policy.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The channel, the loop, the relay's socket, credentials, the DNS, stderr; and room. */
#define DESCRIPTORS_BASE 64u
#define DESCRIPTORS_EXEC 3u

#define DNS_PORT 53

static int no_new_privs(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -EPERM;
}

static int not_dumpable(void)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : -EPERM;
}

static int no_core(void)
{
	const struct rlimit none = {0, 0};
	struct rlimit now;

	if (setrlimit(RLIMIT_CORE, &none) < 0 || getrlimit(RLIMIT_CORE, &now) < 0)
		return -errno;
	return now.rlim_cur == 0 && now.rlim_max == 0 ? 0 : -EPERM;
}

/* Never more than there may be already. The soft limit is enough: no call to change it is left. */
static int few_descriptors(rlim_t most)
{
	struct rlimit now;
	rlim_t wanted;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return -errno;
	wanted = now.rlim_cur = now.rlim_max < most ? now.rlim_max : most;
	if (setrlimit(RLIMIT_NOFILE, &now) < 0 || getrlimit(RLIMIT_NOFILE, &now) < 0)
		return -errno;
	return now.rlim_cur == wanted ? 0 : -EPERM;
}

/* All sets empty, by the plain calls: netd links no libcap. uid 0 got them back at execve, whoever dropped
 * them before. */
static int no_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capset, &header, sets) < 0)
		return -errno;
	memset(sets, 0xff, sizeof sets);
	if (syscall(SYS_capget, &header, sets) < 0)
		return -errno;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		if (sets[i].effective || sets[i].permitted || sets[i].inheritable)
			return -EPERM;
	}
	return 0;
}

static int allow_ports(int ruleset, int abi, const struct settings *settings)
{
	int r = landlock_allow_port(ruleset, abi, LANDLOCK_NET_CONNECT, DNS_PORT);

	if (r == 0)
		r = landlock_allow_port(ruleset, abi, LANDLOCK_NET_CONNECT, settings->relay_port);
	if (r == 0 && settings->proxy_host[0] != '\0')
		r = landlock_allow_port(ruleset, abi, LANDLOCK_NET_CONNECT, settings->proxy_port);
	return r;
}

/* No rule for any file: what dialling reads was read before (transport_prepare). *ret_abi is 0 where there is
 * no Landlock to enter. */
static int enter_landlock(const struct settings *settings, int *ret_abi)
{
	static const struct landlock_world world = {
	    .fs = LANDLOCK_FS_ALL,
	    .net = LANDLOCK_NET_BIND | LANDLOCK_NET_CONNECT,
	    .scoped = LANDLOCK_SCOPED_ABSTRACT | LANDLOCK_SCOPED_SIGNAL,
	};
	int abi = landlock_abi();
	FD_CLOSE int ruleset = landlock_create(abi, &world, false);
	int r;

	if (ruleset == -EOPNOTSUPP) {
		*ret_abi = 0;
		return 0;
	}
	if (ruleset < 0)
		return ruleset;
	r = allow_ports(ruleset, abi, settings);
	if (r == 0)
		r = landlock_enter(ruleset, abi, true);
	if (r == 0)
		*ret_abi = abi;
	return r;
}

/* A trapped call was not made, whatever happens here: the kernel has skipped it. The signal is synchronous,
 * so nothing is interrupted half-way that log_emit would need. The process then dies of a call that the
 * policy answers by KILL_PROCESS, so that execd sees SIGSYS; whoever took netd over can neither replace this
 * handler (rt_sigaction is not listed) nor return from it (rt_sigreturn is not either). */
static _Noreturn void on_sigsys(int signo, siginfo_t *info, void *context)
{
	const char *name = policy_call_name(info->si_syscall);

	(void)signo;
	(void)context;
	log_error("system call refused by the seccomp policy", LOG_STR("call", name ? name : "unknown"),
		  LOG_I64("number", info->si_syscall));
	syscall(SYS_execve, NULL, NULL, NULL);
	_exit(128 + SIGSYS);
}

static int catch_sigsys(void)
{
	struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	if (sigaction(SIGSYS, &action, NULL) < 0 || sigprocmask(SIG_UNBLOCK, &set, NULL) < 0)
		return -errno;
	return 0;
}

static const char *yes_no(bool yes)
{
	return yes ? "yes" : "no";
}

static int failed(const char *step, int err)
{
	log_error("cannot be jailed", LOG_STR("step", step), LOG_ERR(err));
	return err;
}

int jail_enter(const struct settings *settings)
{
	int abi = 0, r;

	if ((r = no_new_privs()) < 0)
		return failed("no_new_privs", r);
	if ((r = not_dumpable()) < 0)
		return failed("dumpable", r);
	if ((r = no_core()) < 0)
		return failed("core", r);
	if ((r = few_descriptors(DESCRIPTORS_BASE + DESCRIPTORS_EXEC * settings->capacity)) < 0)
		return failed("descriptors", r);
	if ((r = no_capabilities()) < 0)
		return failed("capabilities", r);
	if ((r = enter_landlock(settings, &abi)) < 0)
		return failed("landlock", r);
	if ((r = catch_sigsys()) < 0)
		return failed("sigsys", r);
	if ((r = seccomp_load(&policy_netd)) < 0)
		return failed("seccomp", r);
	log_info("jailed", LOG_I64("landlock_abi", abi), LOG_STR("files", yes_no(abi > 0)),
		 LOG_STR("ports", yes_no(abi >= LANDLOCK_ABI_PORTS)),
		 LOG_STR("signals", yes_no(abi >= LANDLOCK_ABI_SCOPE)));
	return 0;
}
