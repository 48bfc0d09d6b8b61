/* The program netd as it was when execd started: a tenant who may write its file later changes nothing. */
#ifndef EXECD_NETD_IMAGE_H
#define EXECD_NETD_IMAGE_H

#include <limits.h>

struct netd_image {
	int fd;              /* a sealed memfd of mode 0111, or -1: execute path */
	char path[PATH_MAX]; /* where it was found */
};

/* Looks for netd beside execd, then in LIBEXECDIR. Mode 0111 makes the kernel start it non-dumpable, so that
 * nobody of the same uid can open its memory between execve and its first prctl. A file that may be executed
 * but not read has that property by itself, and is executed by path; so is any file where the system forbids
 * executing a memfd, which is logged. 0; -ENOENT; or -errno. */
int netd_image_open(struct netd_image *ret);

#endif
