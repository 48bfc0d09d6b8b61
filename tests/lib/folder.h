/* Temporary folders and small files for tests. Failures end the test. */
#ifndef TESTS_LIB_FOLDER_H
#define TESTS_LIB_FOLDER_H

#include <stddef.h>
#include <sys/types.h>

#define FOLDER_PATH_MAX 256

/* A new, empty folder under TMPDIR or /tmp, mode 0700. */
void folder_make(char path[FOLDER_PATH_MAX]);

/* With all that is in it. */
void folder_remove(const char *path);

/* path = folder/name. */
void folder_join(char path[FOLDER_PATH_MAX], const char *folder, const char *name);

void folder_write(const char *path, const void *data, size_t size);

/* An empty file. */
void folder_touch(const char *folder, const char *name);

void folder_copy(const char *from, const char *to, mode_t mode);

/* At most size - 1 bytes, NUL-terminated; the count, or -1 where there is no such file. */
ssize_t folder_read(const char *path, char *at, size_t size);

/* Size in bytes, -1 where there is no such file. */
off_t folder_size(const char *path);

#endif
