/* A file that execd writes for its operator: the audit trail, the status. Its folder is looked up once, at
 * the start; the name in it may be looked up again, while commands run that may be able to write there. */
#ifndef EXECD_OWN_FILE_H
#define EXECD_OWN_FILE_H

#include <limits.h>
#include <sys/types.h>

struct own_file {
	int fd; /* -1: not open */
	int folder_fd;
	char name[NAME_MAX + 1];
	int flags;
	mode_t mode;
};

#define OWN_FILE_INIT                                                                                        \
	{                                                                                                    \
		.fd = -1, .folder_fd = -1                                                                    \
	}

/* Opens path for writing, made with mode where missing; flags: O_APPEND or 0. Never through a symbolic link
 * in its last part, and never what has another name too: it may be another's file. 0; -EINVAL: not a regular
 * file; -EMLINK: it has another name; or -errno. */
int own_file_open(struct own_file *file, const char *path, int flags, mode_t mode);

/* By name again, after a rotation. What fails leaves the open one in place. The same errors. */
int own_file_open_again(struct own_file *file);

/* Would own_file_open fail? Nothing is made. The same errors. */
int own_file_check(const char *path);

void own_file_close(struct own_file *file);

#endif
