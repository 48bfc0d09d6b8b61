#include "execd/slot/kill_sweep.h"

#include "common/buf.h"
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROC_PATH 64

/* struct linux_dirent64, as getdents64(2) describes it. */
struct dirent_record {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

/* A walk: breadth first, what was found so far is the queue. */
struct walk {
	pid_t root;
	bool (*spare)(pid_t child);
	unsigned max;
	unsigned count;
	unsigned at; /* whose children are being read; count of verified parents is count itself */
	pid_t pids[SWEEP_MAX];
};

static struct walk walk;

size_t sweep_parse_children(const char *text, size_t size, bool last, pid_t *ret, size_t max,
			    size_t *ret_rest)
{
	size_t count = 0, start = 0;
	long value = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			value = value < INT32_MAX / 10 ? value * 10 + (text[i] - '0') : INT32_MAX;
			continue;
		}
		if (value > 0 && count < max)
			ret[count++] = (pid_t)value;
		value = 0;
		start = i + 1;
	}
	if (last && value > 0 && count < max)
		ret[count++] = (pid_t)value;
	*ret_rest = last ? 0 : size - start;
	return count;
}

pid_t sweep_parse_parent(const char *text, size_t size)
{
	const char *p = memrchr(text, ')', size);
	const char *end = text + size;
	long value = 0;

	/* ") S 123 …" */
	if (!p || end - p < 5 || p[1] != ' ' || p[3] != ' ')
		return 0;
	for (p += 4; p < end && *p >= '0' && *p <= '9'; p++)
		value = value < INT32_MAX / 10 ? value * 10 + (*p - '0') : INT32_MAX;
	return (pid_t)value;
}

static int read_parent(pid_t pid, pid_t *ret)
{
	char path[PROC_PATH], text[512];
	ssize_t n;
	FD_CLOSE int fd = -1;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof text);
	if (n < 0)
		return -errno;
	*ret = sweep_parse_parent(text, (size_t)n);
	return 0;
}

static bool is_known(const struct walk *w, pid_t pid)
{
	if (pid == w->root)
		return true;
	for (unsigned i = 0; i < w->count; i++) {
		if (w->pids[i] == pid)
			return true;
	}
	return false;
}

/* Appends the children that one thread's file names. They are verified when they are touched. */
static void read_children_file(struct walk *w, int task, const char *tid)
{
	char path[PROC_PATH], text[4096];
	size_t have = 0;
	ssize_t n;
	FD_CLOSE int fd = -1;

	snprintf(path, sizeof path, "%.20s/children", tid);
	fd = openat(task, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	do {
		size_t rest, found, first = w->count;

		n = read(fd, text + have, sizeof text - have);
		if (n < 0)
			return;
		found = sweep_parse_children(text, have + (size_t)n, n == 0, w->pids + w->count,
					     w->max - w->count, &rest);
		memmove(text, text + have + (size_t)n - rest, rest);
		have = rest;
		for (size_t i = 0; i < found; i++) {
			pid_t child = w->pids[first + i];

			if (w->at > 0 || !w->spare || !w->spare(child))
				w->pids[w->count++] = child;
		}
	} while (n > 0 && w->count < w->max);
}

/* Calls visit for each thread id of pid. 0 or -errno. */
static int each_thread(pid_t pid, void (*visit)(void *owner, int task, const char *tid), void *owner)
{
	char path[PROC_PATH];
	_Alignas(struct dirent_record) char entries[2048];
	long n;
	FD_CLOSE int task = -1;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	task = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (task < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, task, entries, sizeof entries)) > 0) {
		for (long i = 0; i < n;) {
			const struct dirent_record *e =
			    (const struct dirent_record *)(const void *)(entries + i);

			if (e->name[0] != '.')
				visit(owner, task, e->name);
			i += e->reclen;
		}
	}
	return n < 0 ? -errno : 0;
}

static void visit_children(void *owner, int task, const char *tid)
{
	read_children_file(owner, task, tid);
}

/* Fills walk.pids with the descendants of root. 0 or -errno. */
static int find_descendants(pid_t root, bool (*spare)(pid_t child), unsigned max)
{
	int err;

	walk.root = root;
	walk.spare = spare;
	walk.max = max < SWEEP_MAX ? max : SWEEP_MAX;
	walk.count = walk.at = 0;
	err = each_thread(root, visit_children, &walk);
	if (err < 0)
		return err;
	while (walk.at < walk.count && walk.count < walk.max) {
		pid_t pid = walk.pids[walk.at++];

		each_thread(pid, visit_children, &walk);
	}
	return 0;
}

/* A hold on a process that is still below root: its pidfd, or -1 and *ret_own_child when pidfds are refused
 * and it is an unreaped child of ours, whose number cannot be given away. -ESRCH: gone, or not one of ours
 * any more. */
static int hold(pid_t pid, bool *ret_own_child)
{
	FD_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	int refused = fd < 0 ? errno : 0;
	pid_t parent;

	*ret_own_child = false;
	if (refused == ESRCH || refused == EINVAL)
		return -ESRCH;
	if (read_parent(pid, &parent) < 0 || !is_known(&walk, parent))
		return -ESRCH;
	if (parent == walk.root && walk.spare && walk.spare(pid))
		return -ESRCH;
	*ret_own_child = parent == getpid();
	if (fd >= 0 && syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) < 0 && errno == ESRCH)
		return -ESRCH;
	return fd_steal(&fd);
}

static void idle_thread(void *owner, int task, const char *tid)
{
	struct sched_param param = {0};
	int number = 0;

	(void)owner;
	(void)task;
	for (; *tid >= '0' && *tid <= '9'; tid++)
		number = number * 10 + (*tid - '0');
	sched_setscheduler(number, SCHED_IDLE, &param);
}

/* RLIMIT_NPROC 0 cannot be undone without CAP_SYS_RESOURCE; it does not bind uid 0. SCHED_IDLE cannot be
 * undone either. */
static void restrain(pid_t pid, bool idle)
{
	static const struct rlimit none = {0, 0};

	prlimit(pid, RLIMIT_NPROC, &none, NULL);
	if (idle)
		each_thread(pid, idle_thread, NULL);
}

static void kill_held(int pidfd, bool own_child, pid_t pid)
{
	if (pidfd >= 0)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	else if (own_child)
		kill(pid, SIGKILL);
}

void sweep_begin(struct sweep *sweep, pid_t root, bool (*spare)(pid_t child))
{
	*sweep = (struct sweep){.root = root, .spare = spare};
}

int sweep_pass(struct sweep *sweep, unsigned max)
{
	bool own_child;
	int err = find_descendants(sweep->root, sweep->spare, max);

	if (err < 0)
		return err;
	sweep->grew = sweep->passes > 0 && walk.count >= sweep->found;
	for (unsigned i = 0; i < walk.count; i++) {
		FD_CLOSE int fd = hold(walk.pids[i], &own_child);

		if (fd >= 0 || own_child)
			restrain(walk.pids[i], sweep->grew);
	}
	sweep->passes++;
	sweep->found = walk.count;
	for (unsigned i = 0; i < walk.count; i++) {
		FD_CLOSE int fd = hold(walk.pids[i], &own_child);

		kill_held(fd, own_child, walk.pids[i]);
	}
	return (int)walk.count;
}

unsigned sweep_count(const struct sweep *sweep)
{
	return find_descendants(sweep->root, sweep->spare, SWEEP_MAX) < 0 ? 0 : walk.count;
}
