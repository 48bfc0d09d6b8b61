/* Descriptors: who owns them is visible in the code (FD_CLOSE, fd_steal). */
#ifndef COMMON_FD_H
#define COMMON_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Closes *fd when it is not below 0, and sets it to -1. Keeps errno. */
void fd_close(int *fd);

/* A descriptor that is closed when the variable goes out of scope. */
#define FD_CLOSE __attribute__((cleanup(fd_close)))

/* Hands over: returns *fd and leaves -1 behind. */
static inline int fd_steal(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Closes first to last, both included. Where close_range(2) is refused (Linux before 5.9, a filter) one by
 * one: up to the soft limit, and no further than FD_MOST. */
void fd_close_between(unsigned first, unsigned last);
#define FD_MOST 1048576u /* fs.nr_open, where nobody raised it; limits of a billion would take minutes */

/* Sets or clears O_NONBLOCK on the open file description. 0 or -errno. */
int fd_set_nonblock(int fd, bool on);

/* Reads until size bytes, end of file or an error; EINTR is retried. The count or -errno. */
ssize_t fd_read_full(int fd, void *buf, size_t size);

/* Writes all of buf to a blocking descriptor. 0 or -errno. */
int fd_write_full(int fd, const void *buf, size_t size);

/* Opens a file whose path others may influence: never blocks on a FIFO, never becomes a terminal, and what is
 * not a regular file or is larger than max is refused (-EINVAL, -EFBIG). The caller owns the descriptor;
 * O_NONBLOCK stays set, which regular files ignore. */
int fd_open_regular(int dirfd, const char *path, size_t max, size_t *ret_size);

#endif
