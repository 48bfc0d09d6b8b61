#include "tests/lib/shapes.h"

#include "common/clock.h"
#include "common/fd.h"
#include "tests/lib/slot_rig.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const shapes_names[] = {"plain", "daemon",  "stopped", "immune",    "renamed", "swarm",   "tight",
				    "bomb",  "vforks",  "threads", "guardians", "reaper",  "brother", "lowly",
				    "held",  "setsids", "setsid",  "nohup",     "alias",   "refill",  NULL};

/* Shapes that a shell makes; $H is hostile, $F the file. All others are hostile's own. */
static const struct {
	const char *name;
	const char *command;
} by_shell[] = {
    {"nohup", "nohup $H plain $F >/dev/null 2>&1"},
    {"setsid", "setsid -f setsid -f setsid -f setsid -f $H plain $F"},
    {"alias", "(exec -a '[kworker/u8:3]' $H plain $F)"},
    {"caged", "HOSTILE_BOUND=1 $H refill $F"},
    {"tireless-alone", "HOSTILE_SETSID=1 $H tireless $F"},
};

static unsigned count_marks(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : (unsigned)((size_t)st.st_size / sizeof(pid_t));
}

/* Numbers come round again while chains run, as processes of somebody else or even as threads: only what
 * names our file on its command line is a survivor, and the test signals nobody. */
static bool lives(pid_t pid, const char *file)
{
	char path[64], text[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof text);
	close(fd);
	return n > 0 && memmem(text, (size_t)n, file, strlen(file));
}

static int compare(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

static unsigned count_survivors(const char *path)
{
	static pid_t pids[1 << 20];
	unsigned survivors = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, pids, sizeof pids);
	size_t count = n < 0 ? 0 : (size_t)n / sizeof *pids;

	if (fd >= 0)
		close(fd);
	qsort(pids, count, sizeof *pids, compare);
	for (size_t i = 0; i < count; i++) {
		if ((i == 0 || pids[i] != pids[i - 1]) && lives(pids[i], path))
			survivors++;
	}
	return survivors;
}

static void make_file(char path[64])
{
	int fd;

	strcpy(path, "/tmp/hostile.XXXXXX");
	fd = mkstemp(path);
	cr_assert(fd >= 0);
	cr_assert_eq(fchmod(fd, 0666), 0);
	close(fd);
}

static void until_marks(const char *path, unsigned slot, unsigned marks)
{
	uint64_t end = clock_now_ms() + RIG_WAIT_MS;

	while (count_marks(path) < marks) {
		cr_assert(clock_now_ms() < end, "the shape does not start: %s", rig_execs[slot].err);
		rig_pass();
	}
}

static void write_command(char *to, size_t size, const char *shape, const char *path, bool by_exit)
{
	const char *build = getenv("BUILD"), *command = NULL;
	char own[64];

	for (size_t i = 0; i < sizeof by_shell / sizeof *by_shell; i++) {
		if (strcmp(by_shell[i].name, shape) == 0)
			command = by_shell[i].command;
	}
	snprintf(own, sizeof own, "$H %s $F", shape);
	/* by_exit: the leader exits once a line comes in. */
	snprintf(to, size, "H=%s/tests/hostile F=%s; %s%s", build ? build : "build", path,
		 command ? command : own, by_exit ? " & read x; exit 3" : "; sleep 1000");
}

void shapes_run(const char *shape, bool by_exit, struct shapes_result *ret)
{
	char path[64], command[512];
	unsigned slot;
	uint64_t from;

	make_file(path);
	write_command(command, sizeof command, shape, path, by_exit);
	slot = rig_run_open(command);
	until_marks(path, slot, strncmp(shape, "tireless", 8) == 0 ? SHAPES_TIRELESS : 1);
	rig_for(60);
	ret->marks = count_marks(path);
	from = clock_now_us();
	if (by_exit)
		fd_close(&rig_execs[slot].ours[0]);
	else
		slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	ret->kill_us = clock_now_us() - from;
	ret->survivors = count_survivors(path);
	ret->marks_after = count_marks(path);
	rig_for(30);
	ret->marks_after = count_marks(path) - ret->marks_after;
	ret->wait_status = rig_execs[slot].wait_status;
	ret->still_alive = rig_execs[slot].still_alive;
	memcpy(ret->order, rig_execs[slot].order, sizeof ret->order);
	rig_release(slot);
	unlink(path);
}
