#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

void fd_close_between(unsigned first, unsigned last)
{
	struct rlimit has;
	unsigned end = FD_MOST;

	if (first > last || close_range(first, last, 0) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &has) == 0 && has.rlim_cur < end)
		end = (unsigned)has.rlim_cur;
	for (unsigned fd = first; fd <= last && fd < end; fd++)
		close((int)fd);
}

int fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

ssize_t fd_read_full(int fd, void *buf, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, (char *)buf + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

int fd_write_full(int fd, const void *buf, size_t size)
{
	size_t put = 0;

	while (put < size) {
		ssize_t n = write(fd, (const char *)buf + put, size - put);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		put += (size_t)n;
	}
	return 0;
}

int fd_open_regular(int dirfd, const char *path, size_t max, size_t *ret_size)
{
	FD_CLOSE int fd = openat(dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size < 0 || (size_t)st.st_size > max)
		return -EFBIG;
	if (ret_size)
		*ret_size = (size_t)st.st_size;
	return fd_steal(&fd);
}
