#include "tests/lib/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLEAN_TRIES   200
#define CLEAN_REST_US 10000

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
	int size = snprintf(ret->folder, sizeof ret->folder, "%s/worker-test-%.3s-%d", root, limit, getpid());

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

bool cgroup_enter_cpu(struct cgroup *ret)
{
	return enter(ret, "/sys/fs/cgroup/cpu", "cpu.shares", "262144");
}

bool cgroup_make_freezer(struct cgroup *ret)
{
	static const char *const roots[] = {"/sys/fs/cgroup/freezer", "/sys/fs/cgroup"};
	static const char *const files[] = {"freezer.state", "cgroup.freeze"};
	char path[160];

	for (size_t i = 0; i < 2; i++) {
		snprintf(ret->folder, sizeof ret->folder, "%s/worker-test-%d", roots[i], getpid());
		if (mkdir(ret->folder, 0755) < 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", ret->folder, files[i]);
		if (access(path, W_OK) == 0)
			return true;
		rmdir(ret->folder);
	}
	return false;
}

bool cgroup_enter(const struct cgroup *cgroup)
{
	return write_file(cgroup->folder, (int)strlen(cgroup->folder), "cgroup.procs", "0");
}

/* freezer.state says FREEZING for a while, cgroup.events frozen 0: both mean that a task still runs. */
static bool is_frozen(const struct cgroup *cgroup, bool first_version)
{
	char path[160], text[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/%s", cgroup->folder,
		 first_version ? "freezer.state" : "cgroup.events");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, first_version ? "FROZEN" : "frozen 1");
}

bool cgroup_freeze(const struct cgroup *cgroup, bool frozen)
{
	int size = (int)strlen(cgroup->folder);
	bool first = write_file(cgroup->folder, size, "freezer.state", frozen ? "FROZEN" : "THAWED");

	if (!first && !write_file(cgroup->folder, size, "cgroup.freeze", frozen ? "1" : "0"))
		return false;
	for (int tries = 0; is_frozen(cgroup, first) != frozen; tries++) {
		if (tries == 2000)
			return false;
		usleep(1000);
	}
	return true;
}

bool cgroup_remove(const struct cgroup *cgroup)
{
	return rmdir(cgroup->folder) == 0;
}

static bool go_out(const struct cgroup *cgroup)
{
	const char *end = strrchr(cgroup->folder, '/');

	return write_file(cgroup->folder, (int)(end - cgroup->folder), "cgroup.procs", "0");
}

/* CHILD */
static _Noreturn void clean(int alive, const struct cgroup *const *cgroups)
{
	char c;

	for (int i = 0; cgroups[i]; i++)
		go_out(cgroups[i]);
	(void)!read(alive, &c, 1);
	for (int tries = 0; *cgroups && tries < CLEAN_TRIES; tries++) {
		while (*cgroups && (rmdir((*cgroups)->folder) == 0 || errno != EBUSY))
			cgroups++;
		usleep(CLEAN_REST_US);
	}
	_exit(0);
}

bool cgroup_keep_clean(const struct cgroup *const *cgroups)
{
	int p[2], status;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		close(p[1]);
		pid = fork();
		if (pid == 0)
			clean(p[0], cgroups);
		_exit(pid < 0);
	}
	close(p[0]); /* the other end is closed by our death */
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool cgroup_leave(const struct cgroup *cgroup)
{
	return go_out(cgroup) && rmdir(cgroup->folder) == 0;
}
