#include "execd/slot/proc.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

static int held = -1;

/* The numbers of NSpid are ours in its namespace and in each below it, down to our own (proc(5)): more than
 * one where it is of one above, whatever the first happens to be. A kernel without namespaces has no such
 * line. */
static bool is_of_one_namespace(int proc)
{
	char text[4096];
	FD_CLOSE int fd = openat(proc, "self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof text - 1);
	const char *at;

	if (n <= 0)
		return false;
	text[n] = '\0';
	at = strstr(text, "\nNSpid:");
	if (!at)
		return true;
	at += strlen("\nNSpid:");
	at += strspn(at, " \t");
	at += strspn(at, "0123456789");
	return *at == '\n';
}

static bool names_us(int proc)
{
	char is[16], should[16];
	ssize_t n = readlinkat(proc, "self", is, sizeof is - 1);

	snprintf(should, sizeof should, "%d", getpid());
	is[n > 0 ? n : 0] = '\0';
	return strcmp(is, should) == 0;
}

static int look(int proc, const char **ret_why)
{
	struct statfs fs;

	*ret_why = "no proc file system is mounted there";
	if (fstatfs(proc, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return -ENOENT;
	*ret_why = "it is of another PID namespace";
	if (!names_us(proc) || !is_of_one_namespace(proc))
		return -EXDEV;
	*ret_why = "it lists no children (CONFIG_PROC_CHILDREN)";
	return faccessat(proc, "thread-self/children", R_OK, 0) < 0 ? -EOPNOTSUPP : 0;
}

int proc_open(const char **ret_why)
{
	FD_CLOSE int fd = -1;
	int err;

	if (held >= 0)
		return 0;
	*ret_why = "it cannot be opened";
	fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	err = fd < 0 ? -errno : look(fd, ret_why);
	if (err == 0)
		held = fd_steal(&fd);
	return err;
}

int proc_fd(void)
{
	const char *why;
	int err = proc_open(&why);

	return err < 0 ? err : held;
}
