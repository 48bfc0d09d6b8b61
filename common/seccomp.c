#include "common/seccomp.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int seccomp_load(const struct seccomp_program *program)
{
	/* The kernel only reads it; sock_fprog has no const. */
	union {
		const struct sock_filter *in;
		struct sock_filter *out;
	} insns = {.in = program->insns};
	struct sock_fprog prog = {.len = program->count, .filter = insns.out};

	/* The same as seccomp(SECCOMP_SET_MODE_FILTER, 0, &prog), which valgrind does not know. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) < 0 ? -errno : 0;
}

int seccomp_read_file(const char *path, struct seccomp_program *ret, const char **ret_why)
{
	FD_CLOSE int fd = -1;
	struct sock_filter *insns;
	size_t size = 0;
	ssize_t got;

	fd = fd_open_regular(AT_FDCWD, path, BPF_MAXINSNS * sizeof *insns, &size);
	if (fd < 0) {
		*ret_why = fd == -EINVAL  ? "not a regular file"
			   : fd == -EFBIG ? "longer than 4096 instructions"
					  : "cannot be opened";
		return fd;
	}
	if (size == 0 || size % sizeof *insns != 0) {
		*ret_why = size == 0 ? "empty" : "not a whole number of struct sock_filter (8 bytes each)";
		return -EINVAL;
	}
	insns = malloc(size);
	if (!insns) {
		*ret_why = "out of memory";
		return -ENOMEM;
	}
	got = fd_read_full(fd, insns, size);
	if (got != (ssize_t)size) {
		free(insns);
		*ret_why = "changed or failed while it was read";
		return got < 0 ? (int)got : -EIO;
	}
	*ret = (struct seccomp_program){.insns = insns, .count = (unsigned short)(size / sizeof *insns)};
	return 0;
}

/* CHILD. Under an unknown filter any call may fail or kill: what went wrong before bash runs is told by the
 * pipe's bytes, written before the filter is loaded where possible. */
static _Noreturn void try_child(const struct seccomp_program *program, const char *bash, int report)
{
	const char *const argv[] = {"bash", "-c", ":", NULL};
	const char *const envp[] = {NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int32_t err;

	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : seccomp_load(program);
	if (err < 0) {
		(void)!write(report, &err, sizeof err);
		_exit(126);
	}
	/* By the raw call: argv and envp are const here, execve(3)'s are not. */
	syscall(SYS_execve, bash, argv, envp);
	_exit(127);
}

/* Waits at most SECCOMP_TRY_MS for a child of ours, then kills it. Its wait status, or -1. */
static int try_wait(pid_t pid, int report)
{
	struct pollfd p = {.fd = report, .events = POLLIN};
	int status;

	/* The pipe closes when the child has executed bash, or died; so this is only the first half. */
	if (poll(&p, 1, SECCOMP_TRY_MS) != 1)
		kill(pid, SIGKILL);
	p = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	if (p.fd < 0 || poll(&p, 1, SECCOMP_TRY_MS) != 1)
		kill(pid, SIGKILL);
	fd_close(&p.fd);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return status;
}

int seccomp_try(const struct seccomp_program *program, const char *bash, const char **ret_why)
{
	struct sigaction default_action = {.sa_handler = SIG_DFL}, before;
	FD_CLOSE int ours = -1;
	FD_CLOSE int theirs = -1;
	int pipefd[2], status;
	int32_t err = 0;
	pid_t pid;

	*ret_why = "could not be tried";
	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return -errno;
	ours = pipefd[0];
	theirs = pipefd[1];
	/* Whoever started us may ignore it, and then there is no status to wait for. */
	sigaction(SIGCHLD, &default_action, &before);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		try_child(program, bash, theirs);
	fd_close(&theirs);
	status = try_wait(pid, ours);
	sigaction(SIGCHLD, &before, NULL);
	if (read(ours, &err, sizeof err) == sizeof err && err < 0) {
		*ret_why = err == -EINVAL ? "the kernel does not take it as a filter" : "cannot be loaded";
		return err;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		*ret_why = "bash cannot be executed under it";
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		*ret_why = "bash is killed by SIGSYS under it";
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		*ret_why = "bash does not end under it";
	else
		*ret_why = "bash does not work under it";
	return -EPERM;
}
