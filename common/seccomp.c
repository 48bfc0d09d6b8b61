#include "common/seccomp.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>

int seccomp_load(const struct seccomp_program *program)
{
	/* The kernel only reads it; sock_fprog has no const. */
	union {
		const struct sock_filter *in;
		struct sock_filter *out;
	} insns = {.in = program->insns};
	struct sock_fprog prog = {.len = program->count, .filter = insns.out};

	/* The same as seccomp(SECCOMP_SET_MODE_FILTER, 0, &prog), which valgrind does not know. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) < 0 ? -errno : 0;
}

int seccomp_read_file(const char *path, struct seccomp_program *ret, const char **ret_why)
{
	FD_CLOSE int fd = -1;
	struct sock_filter *insns;
	size_t size = 0;
	ssize_t got;

	fd = fd_open_regular(AT_FDCWD, path, BPF_MAXINSNS * sizeof *insns, &size);
	if (fd < 0) {
		*ret_why = fd == -EINVAL  ? "not a regular file"
			   : fd == -EFBIG ? "longer than 4096 instructions"
					  : "cannot be opened";
		return fd;
	}
	if (size == 0 || size % sizeof *insns != 0) {
		*ret_why = size == 0 ? "empty" : "not a whole number of struct sock_filter (8 bytes each)";
		return -EINVAL;
	}
	insns = malloc(size);
	if (!insns) {
		*ret_why = "out of memory";
		return -ENOMEM;
	}
	got = fd_read_full(fd, insns, size);
	if (got != (ssize_t)size) {
		free(insns);
		*ret_why = "changed or failed while it was read";
		return got < 0 ? (int)got : -EIO;
	}
	*ret = (struct seccomp_program){.insns = insns, .count = (unsigned short)(size / sizeof *insns)};
	return 0;
}
