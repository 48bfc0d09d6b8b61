#include "tests/lib/folder.h"

#include "common/fd.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void folder_make(char path[FOLDER_PATH_MAX])
{
	const char *base = getenv("TMPDIR");

	snprintf(path, FOLDER_PATH_MAX, "%s/sandbox-test.XXXXXX", base && base[0] ? base : "/tmp");
	cr_assert(mkdtemp(path), "mkdtemp %s: %m", path);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void folder_remove(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void folder_join(char path[FOLDER_PATH_MAX], const char *folder, const char *name)
{
	int n = snprintf(path, FOLDER_PATH_MAX, "%s/%s", folder, name);

	cr_assert(n > 0 && n < FOLDER_PATH_MAX);
}

void folder_write(const char *path, const void *data, size_t size)
{
	FD_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert(fd >= 0, "%s: %m", path);
	cr_assert(fd_write_full(fd, data, size) == 0, "%s", path);
}

void folder_touch(const char *folder, const char *name)
{
	char path[FOLDER_PATH_MAX];

	folder_join(path, folder, name);
	folder_write(path, "", 0);
}

void folder_copy(const char *from, const char *to, mode_t mode)
{
	FD_CLOSE int in = open(from, O_RDONLY | O_CLOEXEC);
	FD_CLOSE int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	char piece[64 * 1024];
	ssize_t n;

	cr_assert(in >= 0 && out >= 0, "%s, %s: %m", from, to);
	while ((n = fd_read_full(in, piece, sizeof piece)) > 0)
		cr_assert(fd_write_full(out, piece, (size_t)n) == 0, "%s", to);
	cr_assert(n == 0, "%s", from);
}

ssize_t folder_read(const char *path, char *at, size_t size)
{
	FD_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = fd_read_full(fd, at, size - 1);
	cr_assert(n >= 0, "%s", path);
	at[n] = '\0';
	return n;
}

off_t folder_size(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? -1 : st.st_size;
}
