#include "tests/relay/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void grow(struct relay_bytes *b, size_t wanted)
{
	size_t room = b->room ? b->room : 256;
	uint8_t *block;

	while (room < wanted)
		room *= 2;
	block = malloc(room);
	if (!block) {
		perror("relay: malloc");
		abort();
	}
	if (b->size > 0)
		memcpy(block, b->at, b->size);
	free(b->block);
	b->block = b->at = block;
	b->room = room;
}

uint8_t *relay_bytes_extend(struct relay_bytes *b, size_t size)
{
	size_t before = b->block ? (size_t)(b->at - b->block) : 0;
	uint8_t *end;

	if (!b->block || b->size + size > b->room) {
		grow(b, b->size + size);
	} else if (before + b->size + size > b->room) {
		memmove(b->block, b->at, b->size);
		b->at = b->block;
	}
	end = b->at + b->size;
	b->size += size;
	return end;
}

void relay_bytes_add(struct relay_bytes *b, const void *data, size_t size)
{
	if (size > 0)
		memcpy(relay_bytes_extend(b, size), data, size);
}

void relay_bytes_drop(struct relay_bytes *b, size_t size)
{
	b->at += size;
	b->size -= size;
	if (b->size == 0)
		b->at = b->block;
}

void relay_bytes_free(struct relay_bytes *b)
{
	free(b->block);
	*b = (struct relay_bytes){0};
}
