#include "execd/slot/descendants.h"

#include "common/fd.h"
#include "execd/slot/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PROC_PATH     64
#define PIDFS         0x50494446 /* f_type of a pidfd with an inode of its own */
#define CHILDREN_READ 4096

/* struct linux_dirent64, as getdents64(2) describes it. */
struct dirent_record {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

/* id 0: a child of ours, whose number cannot be given away. */
struct known {
	pid_t pid;
	unsigned long long id;
};

/* What was found is the queue. One walk at a time: the program has one thread. */
static struct walk {
	bool (*spare)(pid_t child);
	void (*visit)(const struct descendant *d, void *owner);
	void *owner;
	pid_t root;
	unsigned max;
	unsigned count;
	unsigned looked;     /* at others' children */
	unsigned recorded;   /* in found */
	int missed;          /* -errno of what could not be read though it may be there */
	struct known parent; /* whose children are being read */
	int parent_fd;       /* its pidfd; -1 for root and own children */
	struct known found[DESCENDANTS_MAX];
} walk;

static bool is_gone(int err)
{
	return err == -ENOENT || err == -ESRCH;
}

/* What cannot be read is not what is not there: no descriptors, no memory, no right. */
static void miss(int err)
{
	if (err < 0 && !is_gone(err) && walk.missed == 0)
		walk.missed = err;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static long add_digit(long value, char c)
{
	return value < INT32_MAX / 10 ? value * 10 + (c - '0') : INT32_MAX;
}

size_t descendants_parse_children(const char *text, size_t size, bool last, pid_t *ret, size_t max,
				  size_t *ret_rest)
{
	size_t count = 0, start = 0;
	long value = 0;

	for (size_t i = 0; i < size; i++) {
		if (is_digit(text[i])) {
			value = add_digit(value, text[i]);
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

/* Moves *at to the next field, which one space precedes, and over its digits. False at the end. */
static bool next_number(const char **at, const char *end, unsigned long long *ret)
{
	const char *p = memchr(*at, ' ', (size_t)(end - *at));

	*ret = 0;
	if (!p)
		return false;
	for (p++; p < end && is_digit(*p); p++)
		*ret = *ret * 10 + (unsigned)(*p - '0');
	*at = p;
	return true;
}

bool descendants_parse_stat(const char *text, size_t size, struct descendants_stat *ret)
{
	const char *end = text + size, *p = memrchr(text, ')', size);
	unsigned long long field[23];
	bool dead;

	if (!p || end - p < 3)
		return false;
	dead = p[2] == 'Z' || p[2] == 'X';
	for (int i = 3; i <= 22; i++) {
		if (!next_number(&p, end, &field[i]))
			return false;
	}
	if (field[4] > INT32_MAX)
		return false;
	*ret = (struct descendants_stat){
	    .parent = (pid_t)field[4], .zombie = dead && field[20] <= 1, .started = field[22]};
	return true;
}

static bool read_stat(pid_t pid, struct descendants_stat *ret)
{
	char path[PROC_PATH], text[512];
	ssize_t n;
	FD_CLOSE int fd = -1;

	snprintf(path, sizeof path, "%d/stat", pid);
	fd = openat(proc_fd(), path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text);
	if (n < 0)
		miss(-errno);
	return n > 0 && descendants_parse_stat(text, (size_t)n, ret);
}

/* -1: it is gone, or nobody here gets one. Where that is the rule nothing is missed by it: orphans come to us
 * all the same. */
static int open_pidfd(pid_t pid, bool *ret_gone)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	*ret_gone = fd < 0 && (errno == ESRCH || errno == EINVAL || errno == ENOENT);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		miss(-errno);
	return fd;
}

/* Of the process that a pidfd holds: never given to another while the system runs; 0 where the kernel has one
 * inode for all pidfds. */
static unsigned long long pidfd_id(int pidfd)
{
	static enum { UNKNOWN, UNIQUE, ONE_FOR_ALL } inodes;
	struct statfs fs;
	struct stat st;

	if (pidfd < 0)
		return 0;
	if (inodes == UNKNOWN && fstatfs(pidfd, &fs) == 0)
		inodes = fs.f_type == PIDFS ? UNIQUE : ONE_FOR_ALL;
	return inodes == UNIQUE && fstat(pidfd, &st) == 0 ? st.st_ino : 0;
}

/* Whether the pidfd is of the process that was found under this number. */
static bool is_same(const struct known *k, int pidfd)
{
	struct descendants_stat stat;
	unsigned long long id = pidfd_id(pidfd);

	if (id != 0)
		return id == k->id;
	return pidfd >= 0 && read_stat(k->pid, &stat) && stat.started == k->id;
}

static bool is_held(int pidfd)
{
	return pidfd >= 0 && (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 || errno != ESRCH);
}

static bool parent_is_held(void)
{
	return walk.parent.id == 0 || is_held(walk.parent_fd);
}

/* What there is no room for is visited all the same, only not descended to. */
static void take(const struct descendant *d, unsigned long long id)
{
	if (walk.recorded < walk.max)
		walk.found[walk.recorded++] = (struct known){.pid = d->pid, .id = id};
	walk.count++;
	if (walk.visit)
		walk.visit(d, walk.owner);
}

/* One of our own children, from our own list. No further look makes this fast, which matters: what flees by
 * forking comes to us, its subreaper, with every step. Nor is there a limit, for the newest come last: behind
 * thousands of zombies they would never have their turn. */
static void found_own(pid_t pid)
{
	if (!walk.spare || !walk.spare(pid))
		take(&(struct descendant){.pid = pid, .pidfd = -1, .own_child = true}, 0);
}

static void found_other(pid_t pid)
{
	bool gone;
	FD_CLOSE int fd = open_pidfd(pid, &gone);
	struct descendant d = {.pid = pid, .pidfd = fd};
	struct descendants_stat stat;

	if (walk.looked++ >= walk.max || gone)
		return;
	if (!read_stat(pid, &stat) || stat.zombie)
		return;
	/* Orphans come to us from below us, and from nowhere else. */
	d.own_child = walk.root == getpid() && stat.parent == walk.root;
	if (d.own_child && walk.spare && walk.spare(pid))
		return;
	/* In this order: the parent named is the one that lives now, so what was read is below it, and what
	 * was read is of the process that the pidfd holds. */
	if (!d.own_child && (fd < 0 || stat.parent != walk.parent.pid || !parent_is_held()))
		return;
	if (d.own_child || is_held(fd)) {
		unsigned long long id = pidfd_id(fd);

		take(&d, d.own_child ? 0 : id != 0 ? id : stat.started);
	}
}

static void found(pid_t pid)
{
	if (walk.parent.pid == getpid())
		found_own(pid);
	else
		found_other(pid);
}

static int read_children(int task, const char *tid)
{
	char path[PROC_PATH], text[CHILDREN_READ];
	pid_t pids[CHILDREN_READ / 2];
	size_t have = 0, rest;
	ssize_t n;
	FD_CLOSE int fd = -1;

	snprintf(path, sizeof path, "%.20s/children", tid);
	fd = openat(task, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		size_t count, size;

		n = read(fd, text + have, sizeof text - have);
		if (n < 0)
			return -errno;
		size = have + (size_t)n;
		count = descendants_parse_children(text, size, n == 0, pids, CHILDREN_READ / 2, &rest);
		memmove(text, text + size - rest, rest);
		have = rest;
		for (size_t i = 0; i < count; i++)
			found(pids[i]);
	} while (n > 0);
	return 0;
}

static int open_task(pid_t pid)
{
	char path[PROC_PATH];
	int task;

	snprintf(path, sizeof path, "%d/task", pid);
	task = openat(proc_fd(), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return task < 0 ? -errno : task;
}

/* Calls visit with the folder of a process's threads and the name of each in it. */
static int each_thread(int task, void (*visit)(int task, const char *tid, void *owner), void *owner)
{
	_Alignas(struct dirent_record) char entries[2048];
	long n;

	while ((n = syscall(SYS_getdents64, task, entries, sizeof entries)) > 0) {
		for (long i = 0; i < n;) {
			const struct dirent_record *e =
			    (const struct dirent_record *)(const void *)(entries + i);

			if (is_digit(e->name[0]))
				visit(task, e->name, owner);
			i += e->reclen;
		}
	}
	return n < 0 ? -errno : 0;
}

static void visit_children(int task, const char *tid, void *owner)
{
	(void)owner;
	miss(read_children(task, tid));
}

static int each_child(pid_t pid)
{
	FD_CLOSE int task = open_task(pid);

	return task < 0 ? task : each_thread(task, visit_children, NULL);
}

/* Of one that was found, if it is still the same. */
static void walk_below(const struct known *k)
{
	bool gone = false;
	FD_CLOSE int fd = k->id == 0 ? -1 : open_pidfd(k->pid, &gone);

	walk.parent = *k;
	walk.parent_fd = fd;
	if (k->id == 0 || (is_same(k, fd) && is_held(fd)))
		miss(each_child(k->pid));
}

int descendants_walk(pid_t root, bool (*spare)(pid_t child), unsigned max,
		     void (*visit)(const struct descendant *d, void *owner), void *owner)
{
	int err;

	walk.root = root;
	walk.parent = (struct known){.pid = root};
	walk.parent_fd = -1;
	walk.spare = spare;
	walk.visit = visit;
	walk.owner = owner;
	walk.max = max < DESCENDANTS_MAX ? max : DESCENDANTS_MAX;
	walk.count = walk.looked = walk.recorded = 0;
	walk.missed = 0;
	err = proc_fd();
	if (err >= 0)
		err = each_child(root);
	if (err < 0)
		return err;
	for (unsigned at = 0; at < walk.recorded; at++)
		walk_below(&walk.found[at]);
	return walk.missed < 0 ? walk.missed : (int)walk.count;
}

/* For one that was found: whether it is still there; its pidfd, if that is how it is known. */
static bool find_again(const struct known *k, int *ret_fd)
{
	bool gone;

	*ret_fd = -1;
	if (k->id == 0)
		return true;
	*ret_fd = open_pidfd(k->pid, &gone);
	return is_same(k, *ret_fd) && is_held(*ret_fd);
}

void descendants_back(void (*visit)(const struct descendant *d, void *owner), void *owner)
{
	for (unsigned at = walk.recorded; at > 0; at--) {
		const struct known *k = &walk.found[at - 1];
		FD_CLOSE int fd = -1;

		if (find_again(k, &fd))
			visit(&(struct descendant){.pid = k->pid, .pidfd = fd, .own_child = k->id == 0},
			      owner);
	}
}

struct thread_visit {
	void (*visit)(pid_t tid, void *owner);
	void *owner;
};

static void visit_thread(int task, const char *tid, void *owner)
{
	const struct thread_visit *v = owner;
	long number = 0;

	(void)task;
	for (; is_digit(*tid); tid++)
		number = add_digit(number, *tid);
	v->visit((pid_t)number, v->owner);
}

static bool descendant_lives(const struct descendant *d)
{
	return d->own_child || is_held(d->pidfd);
}

int descendants_threads(const struct descendant *d, void (*visit)(pid_t tid, void *owner), void *owner)
{
	struct thread_visit v = {visit, owner};
	FD_CLOSE int task = open_task(d->pid);

	if (task < 0)
		return task;
	return descendant_lives(d) ? each_thread(task, visit_thread, &v) : -ESRCH;
}

bool descendants_has_thread(const struct descendant *d, pid_t tid)
{
	bool has = syscall(SYS_tgkill, d->pid, tid, 0) == 0 || errno != ESRCH;

	return has && descendant_lives(d);
}
