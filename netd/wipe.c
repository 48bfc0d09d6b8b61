#include "netd/wipe.h"

#include <errno.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

static void *take(size_t size, const char *file, int line)
{
	(void)file, (void)line;
	return malloc(size);
}

static void give(void *p, const char *file, int line)
{
	(void)file, (void)line;
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

/* realloc would leave what was there, where it moves. */
static void *resize(void *p, size_t size, const char *file, int line)
{
	size_t old = p ? malloc_usable_size(p) : 0;
	void *moved;

	if (p && size > 0 && size <= old && size >= old / 2)
		return p;
	moved = size > 0 ? malloc(size) : NULL;
	if (size > 0 && !moved)
		return NULL;
	if (moved && p)
		memcpy(moved, p, size < old ? size : old);
	give(p, file, line);
	return moved;
}

int wipe_openssl(void)
{
	return CRYPTO_set_mem_functions(take, resize, give) ? 0 : -EBUSY;
}
