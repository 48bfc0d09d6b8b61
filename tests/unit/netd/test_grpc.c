#include "netd/grpc.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t put_message(uint8_t *at, const void *body, size_t size)
{
	at[0] = 0;
	at[1] = (uint8_t)(size >> 24);
	at[2] = (uint8_t)(size >> 16);
	at[3] = (uint8_t)(size >> 8);
	at[4] = (uint8_t)size;
	memcpy(at + 5, body, size);
	return 5 + size;
}

struct seen {
	char text[256]; /* the messages, each followed by '|' */
	size_t used;
};

static void feed(struct grpc_reader *r, const uint8_t *at, size_t size, struct seen *seen)
{
	while (size > 0) {
		size_t used = 0, n;
		int step = grpc_reader_feed(r, at, size, &used);
		uint8_t *message;

		cr_assert(step >= 0 && used > 0);
		at += used;
		size -= used;
		if (step != GRPC_STEP_MESSAGE)
			continue;
		message = grpc_reader_take(r, &n);
		cr_assert(n == 0 || message);
		memcpy(seen->text + seen->used, message ? message : (const uint8_t *)"", n);
		seen->used += n;
		seen->text[seen->used++] = '|';
		free(message);
	}
}

Test(grpc, reassembles_messages_from_every_pair_of_splits)
{
	uint8_t bytes[64];
	size_t n = 0;

	n += put_message(bytes + n, "first", 5);
	n += put_message(bytes + n, "", 0);
	n += put_message(bytes + n, "x", 1);
	n += put_message(bytes + n, "the last one", 12);
	for (size_t one = 0; one <= n; one++) {
		for (size_t two = one; two <= n; two++) {
			struct grpc_reader r = {0};
			struct seen seen = {0};

			feed(&r, bytes, one, &seen);
			feed(&r, bytes + one, two - one, &seen);
			feed(&r, bytes + two, n - two, &seen);
			cr_assert_str_eq(seen.text, "first||x|the last one|");
			cr_assert_not(grpc_reader_inside(&r));
			grpc_reader_free(&r);
		}
	}
}

Test(grpc, reassembles_messages_byte_by_byte_and_knows_when_it_is_inside_one)
{
	struct grpc_reader r = {0};
	struct seen seen = {0};
	uint8_t bytes[16];
	size_t n = put_message(bytes, "abc", 3);

	for (size_t i = 0; i < n; i++) {
		cr_assert_eq(grpc_reader_inside(&r), i > 0);
		feed(&r, bytes + i, 1, &seen);
	}
	cr_assert_not(grpc_reader_inside(&r));
	cr_assert_str_eq(seen.text, "abc|");
}

Test(grpc, refuses_the_compressed_flag)
{
	struct grpc_reader r = {0};
	size_t used;

	cr_assert_eq(grpc_reader_feed(&r, (const uint8_t *)"\1\0\0\0\1x", 6, &used), -EBADMSG);
	cr_assert_null(r.message);
}

static int begin_message(struct grpc_reader *r, uint32_t length)
{
	uint8_t prefix[5] = {0, (uint8_t)(length >> 24), (uint8_t)(length >> 16), (uint8_t)(length >> 8),
			     (uint8_t)length};
	size_t used;

	*r = (struct grpc_reader){0};
	return grpc_reader_feed(r, prefix, sizeof prefix, &used);
}

Test(grpc, allocates_up_to_the_limit_reads_through_up_to_the_next_and_fails_beyond)
{
	struct grpc_reader r;

	cr_assert_eq(begin_message(&r, LIMIT_MESSAGE - 1), GRPC_STEP_MORE);
	cr_assert_not_null(r.message);
	grpc_reader_free(&r);
	cr_assert_eq(begin_message(&r, LIMIT_MESSAGE), GRPC_STEP_MORE);
	cr_assert_not_null(r.message);
	grpc_reader_free(&r);
	cr_assert_eq(begin_message(&r, LIMIT_MESSAGE + 1), GRPC_STEP_MORE);
	cr_assert_null(r.message);
	cr_assert_eq(begin_message(&r, LIMIT_MESSAGE_SKIP), GRPC_STEP_MORE);
	cr_assert_null(r.message);
	cr_assert_eq(begin_message(&r, LIMIT_MESSAGE_SKIP + 1), -EMSGSIZE);
	cr_assert_null(r.message);
	cr_assert_eq(begin_message(&r, UINT32_MAX), -EMSGSIZE);
}

Test(grpc, reads_a_long_message_through_and_goes_on_with_the_next)
{
	static uint8_t piece[65536];
	struct grpc_reader r;
	struct seen seen = {0};
	uint8_t next[16];
	uint32_t left = LIMIT_MESSAGE + 1;
	uint32_t body = left - 5; /* of the Exec: its tag and a length of four bytes come first */
	size_t used;

	cr_assert_eq(begin_message(&r, left), GRPC_STEP_MORE);
	piece[0] = 1 << 3 | 2;
	for (int i = 0; i < 4; i++)
		piece[1 + i] = (uint8_t)((body >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0));
	memcpy(piece + 5, "\x08\x2a\x1a", 3); /* req_id 42, then stdin over the rest */
	body -= 2 + 1 + 4;
	for (int i = 0; i < 4; i++)
		piece[8 + i] = (uint8_t)((body >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0));
	while (left > 0) {
		size_t n = left < sizeof piece ? left : sizeof piece;
		int step = grpc_reader_feed(&r, piece, n, &used);

		cr_assert_eq(used, n);
		left -= (uint32_t)n;
		cr_assert_eq(step, left > 0 ? GRPC_STEP_MORE : GRPC_STEP_SKIPPED);
		memset(piece, 0, sizeof piece);
	}
	cr_assert_eq(r.skim.kind, FRAMES_EXEC);
	cr_assert(r.skim.has_req_id && r.skim.req_id == 42);
	feed(&r, next, put_message(next, "next", 4), &seen);
	cr_assert_str_eq(seen.text, "next|");
}

static uint8_t parse(const char *s)
{
	return grpc_code_parse((const uint8_t *)s, strlen(s));
}

Test(grpc, parses_a_status_strictly)
{
	char text[4];

	for (int i = 0; i <= 16; i++) {
		snprintf(text, sizeof text, "%d", i);
		cr_assert_eq(parse(text), i);
	}
	cr_assert_eq(parse("17"), GRPC_UNKNOWN);
	cr_assert_eq(parse("99"), GRPC_UNKNOWN);
	cr_assert_eq(parse(""), GRPC_UNKNOWN);
	cr_assert_eq(parse("-1"), GRPC_UNKNOWN);
	cr_assert_eq(parse("0x"), GRPC_UNKNOWN);
	cr_assert_eq(parse("100"), GRPC_UNKNOWN);
	cr_assert_eq(parse(" 0"), GRPC_UNKNOWN);
}

Test(grpc, maps_http_statuses)
{
	static const struct {
		unsigned http;
		uint8_t code;
	} map[] = {{400, 13}, {401, 16}, {403, 7}, {404, 12}, {429, 14}, {431, 13}, {502, 14}, {503, 14},
		   {504, 14}, {200, 2},  {500, 2}, {301, 2},  {405, 2},  {0, 2},    {599, 2}};

	for (size_t i = 0; i < sizeof map / sizeof *map; i++)
		cr_assert_eq(grpc_code_of_http(map[i].http), map[i].code, "HTTP %u", map[i].http);
}

Test(grpc, maps_resets_and_none_is_ok)
{
	for (uint32_t code = 0; code < 300; code++) {
		uint8_t want = code == 7 ? 14 : code == 8 ? 1 : code == 11 ? 8 : code == 12 ? 7 : 13;

		cr_assert_eq(grpc_code_of_reset(code), want, "RST_STREAM %u", code);
	}
}

Test(grpc, names_every_code)
{
	cr_assert_str_eq(grpc_code_name(0), "OK");
	cr_assert_str_eq(grpc_code_name(7), "PERMISSION_DENIED");
	cr_assert_str_eq(grpc_code_name(16), "UNAUTHENTICATED");
	cr_assert_str_eq(grpc_code_name(255), "none");
	for (unsigned i = 0; i <= GRPC_LAST; i++)
		cr_assert_not_null(grpc_code_name((uint8_t)i));
}

static void decodes(const char *from, size_t size, const char *want)
{
	char at[16];
	size_t n = grpc_message_decode((const uint8_t *)from, strlen(from), at, size);

	cr_assert_str_eq(at, want);
	cr_assert_eq(n, strlen(want));
}

Test(grpc, decodes_messages_and_leaves_broken_escapes)
{
	decodes("plain", 16, "plain");
	decodes("a%20b%0A", 16, "a b\n");
	decodes("%e2%82%AC", 16, "\xe2\x82\xac");
	decodes("%", 16, "%");
	decodes("%4", 16, "%4");
	decodes("%zz%41", 16, "%zzA");
	decodes("100%25", 16, "100%");
	decodes("123456789", 4, "123");
	decodes("%41%42%43", 3, "AB");
	decodes("", 16, "");
}

Test(grpc, knows_its_content_type)
{
	static const char *const good[] = {"application/grpc", "application/grpc+proto",
					   "application/grpc;charset=x", "Application/GRPC"};
	static const char *const bad[] = {"application/grp", "application/grpcx", "text/html", "",
					  "application/grpc-web"};

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		cr_assert(grpc_content_type((const uint8_t *)good[i], strlen(good[i])), "%s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		cr_assert_not(grpc_content_type((const uint8_t *)bad[i], strlen(bad[i])), "%s", bad[i]);
}
