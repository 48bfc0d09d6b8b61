#include "tests/lib/memory.h"

#include "common/fd.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdbool.h>
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

/* Calls look for each mapping's bytes, until it says false. -1: it may not be looked at. */
static int each_mapping(pid_t pid, bool (*look)(void *owner, const char *at, size_t size), void *owner)
{
	char path[64], line[512], rights[8];
	FD_CLOSE int fd = -1;
	unsigned long from, to;
	bool goes_on = true;
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
	while (goes_on && fgets(line, sizeof line, maps)) {
		char *bytes;
		ssize_t n;

		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || rights[0] != 'r' ||
		    to - from > MAPPING_MAX)
			continue;
		bytes = malloc(to - from);
		n = bytes ? pread(fd, bytes, to - from, (off_t)from) : -1;
		if (n > 0)
			goes_on = look(owner, bytes, (size_t)n);
		free(bytes);
	}
	fclose(maps);
	return 0;
}

struct counting {
	const char *text;
	int count;
};

static bool count_more(void *owner, const char *at, size_t size)
{
	struct counting *c = owner;

	c->count += count_in(at, size, c->text);
	return true;
}

int memory_count(pid_t pid, const char *text)
{
	struct counting c = {text, 0};

	return each_mapping(pid, count_more, &c) < 0 ? -1 : c.count;
}

void memory_seek(struct memory_search *search, const char *of, const void *bytes, size_t size)
{
	for (size_t at = 0; at + MEMORY_PIECE <= size; at += MEMORY_STRIDE) {
		struct memory_piece *p = &search->pieces[search->count++];

		cr_assert_lt(search->count, MEMORY_PIECES);
		memcpy(p->bytes, (const char *)bytes + at, MEMORY_PIECE);
		p->of = of;
	}
}

void memory_seek_number(struct memory_search *search, const char *of, const void *bytes, size_t size)
{
	uint8_t reversed[1024];
	const uint8_t *b = bytes;

	cr_assert_leq(size, sizeof reversed);
	for (size_t i = 0; i < size; i++)
		reversed[i] = b[size - 1 - i];
	memory_seek(search, of, bytes, size);
	memory_seek(search, of, reversed, size);
}

struct finding {
	const struct memory_search *search;
	int first[65536]; /* piece that begins with these two bytes, + 1 */
	int next[MEMORY_PIECES];
	const char *found;
};

static unsigned begin_of(const void *bytes)
{
	const uint8_t *b = bytes;

	return (unsigned)b[0] << 8 | b[1];
}

static bool find_more(void *owner, const char *at, size_t size)
{
	struct finding *f = owner;

	for (size_t i = 0; i + MEMORY_PIECE <= size; i++) {
		for (int k = f->first[begin_of(at + i)]; k > 0; k = f->next[k - 1]) {
			const struct memory_piece *p = &f->search->pieces[k - 1];

			if (memcmp(at + i, p->bytes, MEMORY_PIECE) == 0) {
				f->found = p->of;
				return false;
			}
		}
	}
	return true;
}

const char *memory_find(pid_t pid, const struct memory_search *search)
{
	static struct finding f;

	f = (struct finding){.search = search, .found = ""};
	for (size_t i = 0; i < search->count; i++) {
		int *head = &f.first[begin_of(search->pieces[i].bytes)];

		f.next[i] = *head;
		*head = (int)i + 1;
	}
	return each_mapping(pid, find_more, &f) < 0 ? NULL : f.found;
}
