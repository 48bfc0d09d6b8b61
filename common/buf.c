#include "common/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_text_init(struct buf_text *t, char *at, size_t size)
{
	*t = (struct buf_text){.at = at, .size = size};
	if (size > 0)
		at[0] = '\0';
}

void buf_text_add(struct buf_text *t, const char *s, size_t n)
{
	size_t room = t->size > t->used + 1 ? t->size - t->used - 1 : 0;

	if (n > room) {
		n = room;
		t->full = true;
	}
	if (t->size == 0)
		return;
	memcpy(t->at + t->used, s, n);
	t->used += n;
	t->at[t->used] = '\0';
}

void buf_text_addz(struct buf_text *t, const char *s)
{
	buf_text_add(t, s, strlen(s));
}

void buf_text_addf(struct buf_text *t, const char *format, ...)
{
	char piece[1024];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(piece, sizeof piece, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof piece) {
		n = (int)sizeof piece - 1;
		t->full = true;
	}
	buf_text_add(t, piece, (size_t)n);
}
