#include "netd/h2.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void *take(size_t n, void *user)
{
	size_t *used = user;
	void *p;

	if (n > H2_MEMORY || *used + n > H2_MEMORY)
		return NULL;
	p = malloc(n);
	if (p)
		*used += malloc_usable_size(p);
	return p;
}

static void give(void *p, void *user)
{
	size_t *used = user;
	size_t n;

	if (!p)
		return;
	n = malloc_usable_size(p);
	*used -= n;
	explicit_bzero(p, n);
	free(p);
}

static void *take_zeroed(size_t count, size_t size, void *user)
{
	size_t n;
	void *p;

	if (__builtin_mul_overflow(count, size, &n))
		return NULL;
	p = take(n, user);
	if (p)
		memset(p, 0, n);
	return p;
}

static void *resize(void *p, size_t n, void *user)
{
	void *moved = take(n, user);
	size_t old = p ? malloc_usable_size(p) : 0;

	if (!moved)
		return NULL;
	if (p)
		memcpy(moved, p, old < n ? old : n);
	give(p, user);
	return moved;
}

void h2_memory_init(nghttp2_mem *ret, size_t *used)
{
	*used = 0;
	*ret = (nghttp2_mem){
	    .mem_user_data = used,
	    .malloc = take,
	    .free = give,
	    .calloc = take_zeroed,
	    .realloc = resize,
	};
}
