#include "execd/slot/dying.h"

#include "common/fd.h"
#include "execd/slot/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PF_EXITING  0x4ul /* include/linux/sched.h */
#define FIELD_FLAGS 9
#define FIELD_PEND  31

static bool is_dead(char state)
{
	return state == 'Z' || state == 'X';
}

bool dying_parse(const char *text, size_t size)
{
	const char *end = text + size, *p = memrchr(text, ')', size);
	unsigned long field[FIELD_PEND + 1] = {0};
	char state;

	if (!p || end - p < 3)
		return false;
	state = p[2];
	p += 3;
	for (int i = 4; i <= FIELD_PEND; i++) {
		if (p >= end || *p != ' ')
			return false;
		for (p++; p < end && *p != ' '; p++) {
			if (*p >= '0' && *p <= '9')
				field[i] = field[i] * 10 + (unsigned long)(*p - '0');
		}
	}
	return is_dead(state) || (field[FIELD_FLAGS] & PF_EXITING) ||
	       (state == 'R' && (field[FIELD_PEND] >> (SIGKILL - 1) & 1));
}

struct look {
	pid_t pid;
	bool lives;
};

static void look_at_thread(pid_t tid, void *owner)
{
	struct look *look = owner;
	char path[64], text[512];
	ssize_t n;
	FD_CLOSE int fd = -1;

	snprintf(path, sizeof path, "%d/task/%d/stat", look->pid, tid);
	fd = openat(proc_fd(), path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text);
	if (n < 0)
		look->lives |= errno != ENOENT && errno != ESRCH;
	else
		look->lives |= !dying_parse(text, (size_t)n);
}

bool dying_only(const struct descendant *d)
{
	struct look look = {.pid = d->pid};
	int err = descendants_threads(d, look_at_thread, &look);

	return err < 0 ? err == -ENOENT || err == -ESRCH : !look.lives;
}

static void count(const struct descendant *d, void *owner)
{
	int *others = owner;

	*others += !dying_only(d);
}

int dying_count_others(pid_t root, bool (*spare)(pid_t child), unsigned max)
{
	FD_CLOSE int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int others = 0, found;

	/* Without pidfds a walk sees none but our own children. */
	if (self < 0)
		return -errno;
	found = descendants_walk(root, spare, max, count, &others);
	return found < 0 ? found : others;
}
