#include "execd/own_file.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The descriptor or -errno. */
static int open_name(const struct own_file *file, int flags)
{
	FD_CLOSE int fd =
	    openat(file->folder_fd, file->name,
		   O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags, file->mode);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return st.st_nlink == 1 ? fd_steal(&fd) : -EMLINK;
}

static int open_folder(struct own_file *file, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t length = slash ? (size_t)(slash - path) + 1 : 0;
	char folder[PATH_MAX] = ".";

	if (length >= sizeof folder || strlen(name) >= sizeof file->name)
		return -ENAMETOOLONG;
	if (slash) {
		memcpy(folder, path, length);
		folder[length] = '\0';
	}
	memcpy(file->name, name, strlen(name) + 1);
	file->folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return file->folder_fd < 0 ? -errno : 0;
}

int own_file_open(struct own_file *file, const char *path, int flags, mode_t mode)
{
	int err;

	own_file_close(file);
	file->flags = flags;
	file->mode = mode;
	err = open_folder(file, path);
	if (err == 0)
		err = own_file_open_again(file);
	if (err < 0)
		own_file_close(file);
	return err;
}

int own_file_open_again(struct own_file *file)
{
	int fd = open_name(file, O_CREAT | file->flags);

	if (fd < 0)
		return fd;
	fd_close(&file->fd);
	file->fd = fd;
	return 0;
}

int own_file_check(const char *path)
{
	struct own_file file = OWN_FILE_INIT;
	int err = open_folder(&file, path);

	if (err == 0)
		file.fd = err = open_name(&file, 0);
	if (err == -ENOENT && file.folder_fd >= 0)
		err = faccessat(file.folder_fd, ".", W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
	own_file_close(&file);
	return err < 0 ? err : 0;
}

void own_file_close(struct own_file *file)
{
	fd_close(&file->fd);
	fd_close(&file->folder_fd);
}
