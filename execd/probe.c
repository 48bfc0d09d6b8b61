#include "execd/probe.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_executable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* The first name along path that can be executed; ret has PATH_MAX bytes. */
static bool look_up(const char *path, const char *name, char *ret)
{
	while (*path) {
		size_t n = strcspn(path, ":");

		if (path[0] == '/' && snprintf(ret, PATH_MAX, "%.*s/%s", (int)n, path, name) < PATH_MAX &&
		    is_executable(ret))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

/* CHILD */
static void look(struct probe *p, const struct probe_question *q)
{
	char found[PATH_MAX];

	if (q->folder && chdir(q->folder) < 0)
		p->folder_err = -errno;
	for (unsigned i = 0; q->names && q->names[i]; i++) {
		if (!look_up(q->path, q->names[i], found))
			continue;
		p->found |= 1u << i;
		if (i == 0)
			memcpy(p->first, found, strlen(found) + 1);
	}
	p->can_read = q->readable_file && faccessat(AT_FDCWD, q->readable_file, R_OK, AT_EACCESS) == 0;
	p->can_write = q->writable_path && faccessat(AT_FDCWD, q->writable_path, W_OK, AT_EACCESS) == 0;
}

/* CHILD */
_Noreturn static void run(int out, const struct drop *drop, const struct probe_question *question)
{
	const char *step = "";
	struct probe p = {.err = drop_privileges(drop, &step)};

	if (p.err < 0)
		snprintf(p.step, sizeof p.step, "%s", step);
	else
		look(&p, question);
	_exit(fd_write_full(out, &p, sizeof p) < 0);
}

int probe_as(const struct drop *drop, const struct probe_question *question, struct probe *ret)
{
	struct probe p;
	int ends[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	FD_CLOSE int in = ends[0];
	FD_CLOSE int out = ends[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		run(out, drop, question);
	fd_close(&out);
	n = fd_read_full(in, &p, sizeof p);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (n != sizeof p)
		return -ECHILD;
	*ret = p;
	return 0;
}
