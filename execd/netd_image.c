#include "execd/netd_image.h"

#include "common/fd.h"
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

#define IMAGE_MAX (256u * 1024 * 1024)
#define SEALS     (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int find(char ret_path[PATH_MAX])
{
	static const char elsewhere[] = LIBEXECDIR "/netd";
	static const char name[] = "netd";
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - sizeof name);
	char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;

	if (slash) {
		memcpy(slash + 1, name, sizeof name);
		if (is_program(self)) {
			memcpy(ret_path, self, strlen(self) + 1);
			return 0;
		}
	}
	if (!is_program(elsewhere))
		return -ENOENT;
	memcpy(ret_path, elsewhere, sizeof elsewhere);
	return 0;
}

/* Kernels before 6.3 do not know MFD_EXEC, and need none. */
static int make_memfd(void)
{
	int fd = memfd_create("netd", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("netd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

static int copy_all(int from, int to, size_t size)
{
	while (size > 0) {
		ssize_t n = sendfile(to, from, NULL, size);

		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		size -= (size_t)n;
	}
	return 0;
}

static int copy_sealed(int from, size_t size)
{
	FD_CLOSE int fd = make_memfd();
	int err;

	if (fd < 0)
		return fd;
	err = copy_all(from, fd, size);
	if (err < 0)
		return err;
	if (fchmod(fd, 0111) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	if (fcntl(fd, F_GET_SEALS) != SEALS)
		return -EPERM;
	return fd_steal(&fd);
}

int netd_image_open(struct netd_image *ret)
{
	struct netd_image image = {.fd = -1};
	size_t size;
	int err = find(image.path);

	if (err < 0)
		return err;
	FD_CLOSE int file = fd_open_regular(AT_FDCWD, image.path, IMAGE_MAX, &size);
	if (file < 0 && file != -EACCES)
		return file;
	if (file >= 0) {
		image.fd = copy_sealed(file, size);
		if (image.fd < 0)
			log_warn("no sealed copy of netd: it is run from its file",
				 LOG_STR("path", image.path), LOG_ERR(image.fd));
		if (image.fd < 0)
			image.fd = -1;
	}
	*ret = image;
	return 0;
}
