#include "tests/lib/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_file(const char *folder, int folder_size, const char *file, const char *text)
{
	char path[160];
	bool good;
	int fd;

	snprintf(path, sizeof path, "%.*s/%s", folder_size, folder, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return good;
}

static bool enter(struct cgroup *ret, const char *root, const char *limit, const char *value)
{
	int size = snprintf(ret->folder, sizeof ret->folder, "%s/worker-test-%d", root, getpid());

	if (mkdir(ret->folder, 0755) < 0)
		return false;
	if (write_file(ret->folder, size, limit, value) && write_file(ret->folder, size, "cgroup.procs", "0"))
		return true;
	rmdir(ret->folder);
	return false;
}

bool cgroup_enter_memory(struct cgroup *ret, const char *bytes)
{
	return enter(ret, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", bytes) ||
	       enter(ret, "/sys/fs/cgroup", "memory.max", bytes);
}

bool cgroup_enter_pids(struct cgroup *ret, const char *count)
{
	return enter(ret, "/sys/fs/cgroup/pids", "pids.max", count) ||
	       enter(ret, "/sys/fs/cgroup", "pids.max", count);
}

bool cgroup_leave(const struct cgroup *cgroup)
{
	const char *end = strrchr(cgroup->folder, '/');

	return write_file(cgroup->folder, (int)(end - cgroup->folder), "cgroup.procs", "0") &&
	       rmdir(cgroup->folder) == 0;
}
