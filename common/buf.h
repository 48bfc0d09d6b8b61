/* Little-endian byte accessors, and a bounded writer of text. */
#ifndef COMMON_BUF_H
#define COMMON_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint16_t buf_get_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t buf_get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t buf_get_u64(const uint8_t *p)
{
	return (uint64_t)buf_get_u32(p) | (uint64_t)buf_get_u32(p + 4) << 32;
}

static inline void buf_put_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void buf_put_u32(uint8_t *p, uint32_t v)
{
	buf_put_u16(p, (uint16_t)v);
	buf_put_u16(p + 2, (uint16_t)(v >> 16));
}

static inline void buf_put_u64(uint8_t *p, uint64_t v)
{
	buf_put_u32(p, (uint32_t)v);
	buf_put_u32(p + 4, (uint32_t)(v >> 32));
}

/* A string that is built in a caller's array and never overflows it: what does not fit sets full. Always
 * terminated when size is above 0. */
struct buf_text {
	char *at;
	size_t size;
	size_t used; /* without the NUL */
	bool full;
};

void buf_text_init(struct buf_text *t, char *at, size_t size);
void buf_text_add(struct buf_text *t, const char *s, size_t n);
void buf_text_addz(struct buf_text *t, const char *s);
void buf_text_addf(struct buf_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
