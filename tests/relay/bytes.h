/* A growing queue of bytes: added at the end, dropped from the front. Running out of memory ends the program:
 * this is test code. */
#ifndef TESTS_RELAY_BYTES_H
#define TESTS_RELAY_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct relay_bytes {
	uint8_t *at; /* the first byte that is still there; NULL while nothing was ever added */
	size_t size;
	uint8_t *block;
	size_t room; /* of the block */
};

void relay_bytes_add(struct relay_bytes *b, const void *data, size_t size);

/* Makes size bytes of room at the end and counts them in; the caller fills what is returned. */
uint8_t *relay_bytes_extend(struct relay_bytes *b, size_t size);

/* size is at most b->size. */
void relay_bytes_drop(struct relay_bytes *b, size_t size);

/* Back to empty, the memory given back. */
void relay_bytes_free(struct relay_bytes *b);

#endif
