/* Whether the kernel's out-of-memory killer has been at work in our memory cgroup: memory.events of version
 * 2, oom_kill in memory.oom_control of version 1. Opened once, read when a leader, or what it ran last, dies
 * by a SIGKILL that was not ours. */
#include "common/fd.h"
#include "execd/slots_pool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int oom_fd = -1;

static int try_open(const char *root, const char *path, const char *file)
{
	char full[1024];
	int n = snprintf(full, sizeof full, "%s%s/%s", root, path, file);

	return n > 0 && (size_t)n < sizeof full ? open(full, O_RDONLY | O_CLOEXEC) : -1;
}

/* A line of /proc/self/cgroup: number:controllers:path. In a container the path may be the host's, and the
 * file at the root of the mount is ours. */
static int open_for_line(char *line)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	bool v2 = controllers && controllers[1] == ':';
	const char *root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
	const char *file = v2 ? "memory.events" : "memory.oom_control";
	int fd;

	if (!path)
		return -1;
	*path++ = '\0';
	if (!v2 && strcmp(controllers + 1, "memory") != 0)
		return -1;
	fd = try_open(root, strcmp(path, "/") == 0 ? "" : path, file);
	return fd >= 0 ? fd : try_open(root, "", file);
}

void oom_open(void)
{
	char text[4096];
	FD_CLOSE int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? fd_read_full(fd, text, sizeof text - 1) : -1;
	char *save = NULL;

	if (n <= 0)
		return;
	text[n] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line && oom_fd < 0; line = strtok_r(NULL, "\n", &save))
		oom_fd = open_for_line(line);
}

uint64_t oom_kills(void)
{
	char text[1024];
	ssize_t n = oom_fd >= 0 ? pread(oom_fd, text, sizeof text - 1, 0) : -1;
	const char *at;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strstr(text, "oom_kill ");
	return at ? strtoull(at + strlen("oom_kill "), NULL, 10) : 0;
}
