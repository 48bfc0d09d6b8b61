/* Why the commands' policy lets FIOASYNC and F_SETOWN be: a signal that a descriptor sends obeys the same
 * rules as kill(2), Landlock's scope included. Were this not so, they would be a way to end execd. */
#include "common/landlock.h"
#include "policy/policy.h"
#include "tests/lib/bound.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum way { BY_KILL, BY_FCNTL, BY_IOCTL };

static bool enter_scope(void)
{
	const struct landlock_world world = {.scoped = LANDLOCK_SCOPED_SIGNAL};
	int abi = landlock_abi(), ruleset;

	ruleset = landlock_create(abi, &world, false);
	return ruleset >= 0 && landlock_enter(ruleset, abi, true) == 0;
}

/* CHILD: aims SIGUSR1 at the parent. 0 when every call of it succeeded. */
static int aim(enum way way)
{
	pid_t parent = getppid();
	int on = 1, fds[2];

	if (way == BY_KILL)
		return kill(parent, SIGUSR1) < 0;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0 || fcntl(fds[0], F_SETSIG, SIGUSR1) < 0)
		return 2;
	if (way == BY_FCNTL && (fcntl(fds[0], F_SETOWN, parent) < 0 || fcntl(fds[0], F_SETFL, O_ASYNC) < 0))
		return 3;
	if (way == BY_IOCTL && (ioctl(fds[0], SIOCSPGRP, &parent) < 0 || ioctl(fds[0], FIOASYNC, &on) < 0))
		return 4;
	return write(fds[1], "x", 1) == 1 ? 0 : 5;
}

/* Did the parent get it from a child below the commands' filter? */
static bool arrives(enum way way, bool scoped)
{
	const struct timespec none = {0};
	sigset_t set;
	int status;
	pid_t pid;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid = bound_fork();
	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if ((scoped && !enter_scope()) || seccomp_load(&policy_commands) < 0)
			_exit(100);
		_exit(aim(way));
	}
	cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), scoped && way == BY_KILL ? 1 : 0, "way %d: %d", (int)way,
		     WEXITSTATUS(status));
	/* It is sent by the write, which has ended: pending now or never. */
	return sigtimedwait(&set, NULL, &none) == SIGUSR1;
}

Test(sigio, is_sent_without_a_scope, .timeout = 30)
{
	cr_assert(arrives(BY_KILL, false));
	cr_assert(arrives(BY_FCNTL, false));
	cr_assert(arrives(BY_IOCTL, false));
}

Test(sigio, is_kept_inside_the_scope, .timeout = 30)
{
	if (landlock_abi() < LANDLOCK_ABI_SCOPE)
		cr_skip("no Landlock with scopes");
	cr_assert_not(arrives(BY_KILL, true));
	cr_assert_not(arrives(BY_FCNTL, true));
	cr_assert_not(arrives(BY_IOCTL, true));
}
