/* What another process's memory holds. Needs root, where that process is not dumpable. */
#ifndef TESTS_LIB_MEMORY_H
#define TESTS_LIB_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How many times text is found in its readable memory (mappings over 64 MiB, a sanitizer's, are left out).
 * -1: it may not be looked at. */
int memory_count(pid_t pid, const char *text);

#define MEMORY_PIECE  12u /* bytes: no accident, and a part of a secret that gives something away */
#define MEMORY_STRIDE 8u
#define MEMORY_PIECES 4096u

/* Secrets cut into pieces, so that one that was overwritten in part is found too. */
struct memory_search {
	struct memory_piece {
		uint8_t bytes[MEMORY_PIECE];
		const char *of;
	} pieces[MEMORY_PIECES];
	size_t count;
};

/* A secret as it may stand in memory, and the same in reverse, as the limbs of a number are. of: its name,
 * which is kept. Fails the test when there are too many. */
void memory_seek(struct memory_search *search, const char *of, const void *bytes, size_t size);
void memory_seek_number(struct memory_search *search, const char *of, const void *bytes, size_t size);

/* The name of the first that is found; "" for none; NULL: it may not be looked at. */
const char *memory_find(pid_t pid, const struct memory_search *search);

#endif
