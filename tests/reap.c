/* reap SECONDS PROGRAM [ARGUMENT...]: runs a test suite so that nothing of it can outlive it or hang the run.
 *
 * The program's exit code is ours. After SECONDS it gets SIGTERM, 5 s later SIGKILL, and the exit code is
 * 124. We are a subreaper: whatever the suite leaves behind comes to us, gets SETTLE_MS to end by itself, is
 * then named, killed, and turns the exit code into 125. */
#include "tests/lib/slow.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SETTLE_MS 3000u
#define TERM_MS   5000
#define STEP_MS   20
#define EXIT_TIME 124
#define EXIT_LEFT 125

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void step(void)
{
	nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
}

/* Reaps what has ended. Returns false when there are no children at all; the suite's status goes to
 * *ret_status. */
static bool reap(pid_t suite, int *ret_status, bool *ret_ended)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid < 0)
			return false;
		if (pid == 0)
			return true;
		if (pid == suite) {
			*ret_status = status;
			*ret_ended = true;
		}
	}
}

static void name_process(pid_t pid)
{
	char path[64], line[256];
	FILE *f;
	size_t n;

	snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return;
	n = fread(line, 1, sizeof line - 1, f);
	fclose(f);
	for (size_t i = 0; i < n; i++)
		if (line[i] < ' ')
			line[i] = ' ';
	line[n] = '\0';
	fprintf(stderr, "left behind: pid %d: %s\n", (int)pid, line);
}

/* Kills our direct children; their children come to us next. named: say who they were. */
static void kill_children(bool named)
{
	char path[64];
	FILE *f;
	int pid;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	if (!f)
		return;
	while (fscanf(f, "%d", &pid) == 1) {
		if (named)
			name_process((pid_t)pid);
		kill((pid_t)pid, SIGKILL);
	}
	fclose(f);
}

/* Waits for the suite. True when it had to be stopped for its time. */
static bool wait_suite(pid_t suite, int64_t limit_ms, int *ret_status)
{
	int64_t end = now_ms() + limit_ms;
	bool ended = false, late = false;

	while (reap(suite, ret_status, &ended) && !ended) {
		if (now_ms() >= end) {
			kill(suite, late ? SIGKILL : SIGTERM);
			late = true;
			end = now_ms() + TERM_MS;
		}
		step();
	}
	return late;
}

/* True when processes were left that did not end by themselves. */
static bool sweep(void)
{
	int64_t settled = now_ms() + slow_ms(SETTLE_MS);
	bool left = false, ended;
	int status;

	while (reap(-1, &status, &ended)) {
		if (now_ms() >= settled) {
			kill_children(!left);
			left = true;
		}
		step();
	}
	return left;
}

static pid_t start(char **argv)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_TIME);
	execvp(argv[0], argv);
	fprintf(stderr, "reap: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

int main(int argc, char **argv)
{
	int status = 0;
	bool late;
	pid_t suite;

	if (argc < 3 || atoi(argv[1]) <= 0) {
		fprintf(stderr, "usage: reap SECONDS PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	suite = start(argv + 2);
	if (suite < 0) {
		perror("reap: fork");
		return 127;
	}
	late = wait_suite(suite, atoi(argv[1]) * 1000LL, &status);
	if (late)
		fprintf(stderr, "reap: stopped after %s s\n", argv[1]);
	if (sweep())
		return EXIT_LEFT;
	if (late)
		return EXIT_TIME;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
