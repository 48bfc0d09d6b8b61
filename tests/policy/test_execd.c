/* execd's own filter: it and its helpers keep what they do, netd starts, and the commands' filter still fits
 * on top. */
#include "common/landlock.h"
#include "policy/policy.h"
#include "tests/lib/filter.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(execd, .timeout = 60);

/* CHILD: what the sweep does to a descendant, then its death. */
static int sweep_one(void)
{
	const struct rlimit none = {0, 0};
	const struct sched_param idle = {0};
	siginfo_t info;
	pid_t pid = fork();
	int fd;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 || prlimit(pid, RLIMIT_NPROC, &none, NULL) < 0 ||
	    sched_setscheduler(pid, SCHED_IDLE, &idle) < 0)
		return 1;
	if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0 ||
	    waitid(P_PID, (id_t)pid, &info, WEXITED) < 0)
		return 2;
	return info.si_status == SIGKILL ? 0 : 3;
}

/* CHILD */
static int work(void *arg)
{
	int sockets[2], pipes[2], abi = landlock_abi();
	const struct landlock_world world = {.scoped = LANDLOCK_SCOPED_SIGNAL};

	(void)arg;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0 || pipe2(pipes, O_CLOEXEC) < 0)
		return 10;
	if (epoll_create1(EPOLL_CLOEXEC) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0) < 0)
		return 11;
	if (abi >= LANDLOCK_ABI_SCOPE && landlock_create(abi, &world, false) < 0)
		return 12;
	if (setresuid(getuid(), getuid(), getuid()) < 0 || setresgid(getgid(), getgid(), getgid()) < 0)
		return 13;
	return sweep_one();
}

Test(execd, keeps_what_it_does_itself)
{
	int status = filter_run_one(&policy_execd, work, NULL);

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
}

static char netd[4096];

/* CHILD: through a descriptor, as execd does. */
static int start_netd(void *arg)
{
	const char *const argv[] = {"netd", "--version", NULL}, *const envp[] = {NULL};
	int fd = open(netd, O_PATH | O_CLOEXEC);

	(void)arg;
	syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
	return 111;
}

/* Its dynamic linker and libraries start under it. */
Test(execd, lets_netd_start)
{
	const char *build = getenv("BUILD");
	int status;

	snprintf(netd, sizeof netd, "%s/netd", build ? build : "build");
	if (access(netd, X_OK) < 0)
		cr_skip("no %s", netd);
	status = filter_run_one(&policy_execd, start_netd, NULL);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
}
