#include "tests/lib/program.h"

#include "common/clock.h"
#include "common/fd.h"
#include "tests/lib/bound.h"
#include "tests/lib/process.h"
#include "tests/lib/slow.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_MS 10

const char *program_built(const char *name)
{
	static char path[PATH_MAX];
	const char *build = getenv("BUILD");
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *tests;

	cr_assert(n > 0);
	self[n] = '\0';
	tests = strstr(self, "/tests/");
	for (char *next = tests; next; next = strstr(next + 1, "/tests/"))
		tests = next;
	if (tests)
		*tests = '\0';
	cr_assert_lt(snprintf(path, sizeof path, "%s/%s",
			      tests   ? self
			      : build ? build
				      : "build",
			      name),
		     (int)sizeof path);
	return path;
}

/* CHILD */
_Noreturn static void become(const char *const argv[], const char *const environment[], int out,
			     void (*prepare)(void))
{
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	close(STDIN_FILENO);
	open("/dev/null", O_RDONLY);
	if (prepare)
		prepare();
	execvpe(argv[0], (char **)(uintptr_t)argv, (char **)(uintptr_t)environment);
	_exit(126);
}

void program_start(struct program *p, const char *const argv[], const char *const environment[],
		   void (*prepare)(void))
{
	int ends[2];

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	p->used = 0;
	p->said[0] = '\0';
	p->out = ends[0];
	p->pid = bound_fork();
	if (p->pid == 0)
		become(argv, environment, ends[1], prepare);
	cr_assert_gt(p->pid, 0);
	close(ends[1]);
	cr_assert_eq(fd_set_nonblock(p->out, true), 0);
}

/* False once all that can come has come. */
static bool collect(struct program *p)
{
	char dropped[4096];
	size_t room = sizeof p->said - 1 - p->used;
	ssize_t n = read(p->out, room ? p->said + p->used : dropped, room ? room : sizeof dropped);

	if (n > 0 && room) {
		p->used += (size_t)n;
		p->said[p->used] = '\0';
	}
	return n > 0 || (n < 0 && errno == EAGAIN);
}

bool program_wait_said(struct program *p, const char *text, unsigned timeout_ms)
{
	uint64_t end = clock_now_ms() + timeout_ms * slow_factor();
	struct pollfd f = {.fd = p->out, .events = POLLIN};
	bool open = true;

	while (!strstr(p->said, text)) {
		if (!open || clock_now_ms() >= end)
			return false;
		poll(&f, 1, STEP_MS);
		open = collect(p);
	}
	return true;
}

int program_wait_exit(struct program *p, unsigned timeout_ms)
{
	uint64_t end = clock_now_ms() + timeout_ms * slow_factor();
	int status;

	for (;;) {
		pid_t got = waitpid(p->pid, &status, WNOHANG);

		collect(p);
		if (got == p->pid)
			break;
		if (clock_now_ms() >= end)
			return -1;
		usleep(STEP_MS * 100);
	}
	/* What it left behind may hold the pipe: read what is there. */
	for (size_t before = SIZE_MAX; before != p->used;) {
		before = p->used;
		collect(p);
	}
	p->pid = 0;
	fd_close(&p->out);
	return status;
}

int program_run(struct program *p, const char *const argv[], const char *const environment[],
		void (*prepare)(void))
{
	int status;

	program_start(p, argv, environment, prepare);
	status = program_wait_exit(p, PROGRAM_WAIT_MS);
	if (status == -1)
		program_kill(p);
	return status;
}

void program_kill(struct program *p)
{
	if (p->pid <= 0)
		return;
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	p->pid = 0;
	fd_close(&p->out);
}

const char *program_status(pid_t pid, const char *key)
{
	static char line[256];
	char path[64];
	size_t n = strlen(key);
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f)) {
		if (strncmp(line, key, n) != 0 || line[n] != ':')
			continue;
		fclose(f);
		line[strcspn(line, "\n")] = '\0';
		return line + n + 1 + strspn(line + n + 1, " \t");
	}
	if (f)
		fclose(f);
	else
		process_need_shown(pid);
	return "";
}

pid_t program_child(pid_t parent, const char *name, unsigned timeout_ms)
{
	uint64_t end = clock_now_ms() + timeout_ms * slow_factor();
	pid_t pid;

	while ((pid = process_child(parent, name)) == 0 && clock_now_ms() < end)
		usleep(STEP_MS * 1000);
	return pid;
}
