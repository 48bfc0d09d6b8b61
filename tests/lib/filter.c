#include "tests/lib/filter.h"

#include "common/clock.h"
#include "common/fd.h"
#include "tests/lib/bound.h"
#include "tests/lib/slow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYSTEM_PATH  "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
#define NOT_LOADED   120
#define NOT_EXECUTED 127

static int wait_deadline(pid_t pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int status = -1;

	if (p.fd < 0 || poll(&p, 1, (int)slow_ms(FILTER_DEADLINE_MS)) != 1)
		kill(pid, SIGKILL);
	fd_close(&p.fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* CHILD */
static void load(const struct seccomp_program *const *filters)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (; *filters; filters++) {
		if (seccomp_load(*filters) < 0)
			_exit(NOT_LOADED);
	}
}

int filter_run(const struct seccomp_program *const *filters, int (*body)(void *arg), void *arg)
{
	pid_t pid = bound_fork();

	if (pid == 0) {
		load(filters);
		_exit(body(arg));
	}
	return pid < 0 ? -1 : wait_deadline(pid);
}

int filter_run_one(const struct seccomp_program *filter, int (*body)(void *arg), void *arg)
{
	const struct seccomp_program *const filters[] = {filter, NULL};

	return filter_run(filters, body, arg);
}

/* Until end of file or the deadline: what the command left in the background may hold the pipe open. */
static void collect(int fd, char *ret_out, size_t size)
{
	uint64_t end = clock_now_ms() + slow_ms(FILTER_DEADLINE_MS);
	char rest[4096];
	size_t used = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_now_ms();
		bool full = used == size - 1;
		ssize_t n;

		if (now >= end || poll(&p, 1, (int)(end - now)) != 1)
			break;
		n = full ? read(fd, rest, sizeof rest) : read(fd, ret_out + used, size - 1 - used);
		if (n <= 0)
			break;
		if (!full)
			used += (size_t)n;
	}
	ret_out[used] = '\0';
}

bool filter_finds(const char *name)
{
	char path[] = SYSTEM_PATH, *rest = path, *folder;
	char file[256];

	if (name[0] == '/')
		return access(name, F_OK) == 0;
	while ((folder = strsep(&rest, ":"))) {
		if (snprintf(file, sizeof file, "%s/%s", folder, name) < (int)sizeof file &&
		    access(file, X_OK) == 0)
			return true;
	}
	return false;
}

/* CHILD */
static _Noreturn void execute(const struct seccomp_program *const *filters, const char *script,
			      const char *folder, int out)
{
	int null = open("/dev/null", O_RDONLY);

	if (chdir(folder) < 0)
		_exit(NOT_EXECUTED);
	setpgid(0, 0);
	setenv("HOME", folder, 1);
	setenv("PATH", SYSTEM_PATH, 1);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	load(filters);
	execl("/bin/bash", "bash", "-c", script, (char *)NULL);
	_exit(NOT_EXECUTED);
}

static void remove_folder(const char *folder)
{
	pid_t pid = bound_fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", folder, (char *)NULL);
		_exit(NOT_EXECUTED);
	}
	if (pid > 0)
		wait_deadline(pid);
}

int filter_script(const struct seccomp_program *const *filters, const char *script, char *ret_out,
		  size_t size)
{
	char folder[] = "/tmp/filter.XXXXXX";
	int pipefd[2], status;
	pid_t pid;

	ret_out[0] = '\0';
	if (!mkdtemp(folder) || pipe2(pipefd, O_CLOEXEC) < 0)
		return -1;
	pid = bound_fork();
	if (pid == 0)
		execute(filters, script, folder, pipefd[1]);
	close(pipefd[1]);
	collect(pipefd[0], ret_out, size);
	close(pipefd[0]);
	status = pid < 0 ? -1 : wait_deadline(pid);
	/* What it left in the background. */
	if (pid > 0)
		kill(-pid, SIGKILL);
	remove_folder(folder);
	return status;
}
