#include "tests/lib/process.h"

#include "common/clock.h"
#include "common/fd.h"
#include "tests/lib/bound.h"
#include "tests/lib/slow.h"
#include "tests/relay/relay.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* /proc says nothing when something ends there, so it is asked this often. */
#define ASK_MS 5

static ssize_t read_proc(pid_t pid, const char *name, char *at, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	FD_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = fd_read_full(fd, at, size - 1);
	if (n < 0)
		return -1;
	at[n] = '\0';
	return n;
}

void process_need_shown(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	if (access(path, F_OK) < 0 && process_lives(pid))
		cr_skip_test("/proc does not show process %d (hidepid?)", (int)pid);
}

/* name may be NULL. False: gone, or a zombie. */
static bool read_stat(pid_t pid, pid_t *ret_parent, char name[32])
{
	char text[1024], state;
	const char *open_at, *close_at;
	int parent;

	if (read_proc(pid, "stat", text, sizeof text) <= 0)
		return false;
	open_at = strchr(text, '(');
	close_at = strrchr(text, ')');
	if (!open_at || !close_at || sscanf(close_at + 1, " %c %d", &state, &parent) != 2)
		return false;
	if (name)
		snprintf(name, 32, "%.*s", (int)(close_at - open_at - 1), open_at + 1);
	*ret_parent = parent;
	return state != 'Z' && state != 'X';
}

static bool names(pid_t pid, const char *text)
{
	static char line[256 * 1024];
	ssize_t n = read_proc(pid, "cmdline", line, sizeof line);

	return n > 0 && memmem(line, (size_t)n, text, strlen(text)) != NULL;
}

/* Calls each for every process until it says false. */
static void walk(bool (*each)(pid_t pid, void *arg), void *arg)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;

	cr_assert(dir);
	while ((entry = readdir(dir))) {
		if (isdigit((unsigned char)entry->d_name[0]) && !each((pid_t)atoi(entry->d_name), arg))
			break;
	}
	closedir(dir);
}

struct search {
	const char *text;
	unsigned count;
};

static bool count_named(pid_t pid, void *arg)
{
	struct search *s = arg;
	pid_t parent;

	if (names(pid, s->text) && read_stat(pid, &parent, NULL))
		s->count++;
	return true;
}

unsigned process_count(const char *text)
{
	struct search s = {.text = text};

	walk(count_named, &s);
	return s.count;
}

static void pause_for(struct relay *relay, uint64_t ms)
{
	if (relay)
		relay_run(relay, ms);
	else
		poll(NULL, 0, (int)ms);
}

bool process_wait_count(struct relay *relay, const char *text, unsigned count, uint64_t timeout_ms)
{
	uint64_t deadline = clock_now_ms() + timeout_ms * slow_factor();

	while (process_count(text) != count) {
		if (clock_now_ms() >= deadline)
			return false;
		pause_for(relay, ASK_MS);
	}
	return true;
}

bool process_lives(pid_t pid)
{
	FD_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&ended, 1, 0) == 0;
}

bool process_wait_dead(struct relay *relay, pid_t pid, uint64_t timeout_ms)
{
	uint64_t deadline = clock_now_ms() + timeout_ms * slow_factor();

	while (process_lives(pid)) {
		if (clock_now_ms() >= deadline)
			return false;
		pause_for(relay, ASK_MS);
	}
	return true;
}

void process_kill(pid_t pid, int signal_number)
{
	cr_assert(pid > 1, "a signal to %d", (int)pid);
	kill(pid, signal_number);
}

struct family {
	pid_t *pids;
	size_t count;
	size_t room;
	pid_t parent;
	const char *name; /* NULL: any */
};

static bool add_child(pid_t pid, void *arg)
{
	struct family *f = arg;
	char name[32];
	pid_t parent;

	if (read_stat(pid, &parent, name) && parent == f->parent && f->count < f->room &&
	    (!f->name || strcmp(name, f->name) == 0))
		f->pids[f->count++] = pid;
	return f->count < f->room;
}

size_t process_children(pid_t parent, const char *name, pid_t *pids, size_t room)
{
	struct family f = {.pids = pids, .room = room, .parent = parent, .name = name};

	process_need_shown(parent);
	walk(add_child, &f);
	return f.count;
}

pid_t process_child(pid_t parent, const char *name)
{
	pid_t pid = 0;

	process_children(parent, name, &pid, 1);
	return pid;
}

size_t process_descendants(pid_t root, pid_t *pids, size_t room)
{
	struct family f = {.pids = pids, .room = room, .parent = root};

	process_need_shown(root);
	walk(add_child, &f);
	for (size_t i = 0; i < f.count; i++) {
		f.parent = pids[i];
		walk(add_child, &f);
	}
	return f.count;
}

size_t process_resident(pid_t pid)
{
	char text[256];
	unsigned long pages;

	process_need_shown(pid);
	if (read_proc(pid, "statm", text, sizeof text) <= 0 || sscanf(text, "%*u %lu", &pages) != 1)
		return 0;
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

size_t process_peak(pid_t pid)
{
	char text[4096];
	const char *line;

	process_need_shown(pid);
	if (read_proc(pid, "status", text, sizeof text) <= 0 || !(line = strstr(text, "\nVmHWM:")))
		return 0;
	return strtoul(line + strlen("\nVmHWM:"), NULL, 10) * 1024;
}

size_t process_descriptors(pid_t pid, const char *link)
{
	char path[64], target[64];
	size_t count = 0;
	DIR *folder;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	folder = opendir(path);
	if (!folder)
		return 0;
	for (struct dirent *e; (e = readdir(folder));) {
		ssize_t n = readlinkat(dirfd(folder), e->d_name, target, sizeof target - 1);

		target[n > 0 ? n : 0] = '\0';
		count += n >= 0 && (!link || strcmp(target, link) == 0);
	}
	closedir(folder);
	return count;
}

void process_adopt_orphans(void)
{
	cr_assert(prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) == 0);
}

static void name_and_kill(pid_t pid)
{
	char line[512] = "";
	ssize_t n = read_proc(pid, "cmdline", line, sizeof line);

	for (ssize_t i = 0; i + 1 < n; i++) {
		if (line[i] == '\0')
			line[i] = ' ';
	}
	fprintf(stderr, "left behind: %d %s\n", (int)pid, line);
	process_kill(pid, SIGKILL);
}

bool process_wait_no_children(struct relay *relay, uint64_t timeout_ms)
{
	uint64_t deadline = clock_now_ms() + timeout_ms * slow_factor();
	pid_t left[64];
	size_t count;

	for (;;) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid > 0)
			continue;
		if (pid < 0 && errno == ECHILD)
			return true;
		if (clock_now_ms() >= deadline)
			break;
		pause_for(relay, ASK_MS);
	}
	count = process_descendants(getpid(), left, sizeof left / sizeof *left);
	for (size_t i = 0; i < count; i++)
		name_and_kill(left[i]);
	return false;
}

static _Noreturn void become(const char *const *argv, const char *const *environment, int log_fd)
{
	char *const *args;
	char *const *env;

	memcpy(&args, &argv, sizeof args);
	memcpy(&env, &environment, sizeof env);
	dup2(log_fd, STDERR_FILENO);
	execve(args[0], args, env);
	_exit(127);
}

int process_run(const char *const *argv, const char *const *environment, char *log, size_t log_size,
		uint64_t timeout_ms)
{
	uint64_t deadline = clock_now_ms() + timeout_ms * slow_factor();
	int ends[2], status;
	size_t used = 0;
	pid_t pid;

	cr_assert(pipe2(ends, O_CLOEXEC) == 0);
	pid = bound_fork();
	cr_assert(pid >= 0);
	if (pid == 0)
		become(argv, environment, ends[1]);
	close(ends[1]);
	FD_CLOSE int log_fd = ends[0];
	for (;;) {
		struct pollfd p = {.fd = log_fd, .events = POLLIN};
		uint64_t now = clock_now_ms();
		ssize_t n;

		if (now >= deadline || poll(&p, 1, (int)(deadline - now)) == 0) {
			process_kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			log[used] = '\0';
			return -1;
		}
		n = used + 1 < log_size ? read(log_fd, log + used, log_size - 1 - used) : 0;
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	log[used] = '\0';
	waitpid(pid, &status, 0);
	return status;
}
