#include "tests/lib/memory.h"

#include "common/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAPPING_MAX (64ul << 20)

static int count_in(const char *at, size_t size, const char *text)
{
	const char *end = at + size;
	size_t text_size = strlen(text);
	int count = 0;

	while ((at = memmem(at, (size_t)(end - at), text, text_size))) {
		count++;
		at += text_size;
	}
	return count;
}

int memory_count(pid_t pid, const char *text)
{
	char path[64], line[512], rights[8];
	FD_CLOSE int fd = -1;
	unsigned long from, to;
	int count = 0;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (fd < 0 || !maps) {
		if (maps)
			fclose(maps);
		return -1;
	}
	while (fgets(line, sizeof line, maps)) {
		char *bytes;
		ssize_t n;

		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || rights[0] != 'r' ||
		    to - from > MAPPING_MAX)
			continue;
		bytes = malloc(to - from);
		n = bytes ? pread(fd, bytes, to - from, (off_t)from) : -1;
		if (n > 0)
			count += count_in(bytes, (size_t)n, text);
		free(bytes);
	}
	fclose(maps);
	return count;
}
