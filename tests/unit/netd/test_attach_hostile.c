/* Relays that flood, or break gRPC or HTTP/2: grpc-client.md 6, 11, 12. */
#include "tests/lib/script.h"

#include <criterion/criterion.h>
#include <string.h>

SCRIPT_WORLD

Test(attach_hostile, refuses_broken_messages)
{
	script_begin();
	script_response();
	script_frame(SCRIPT_DATA, 0, 1, "\1\0\0\0\2\x0a\0", 7);
	script_expect("compressed", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script_begin();
	script_response();
	script_frame(SCRIPT_DATA, 0, 1, "\0\4\0\0\1", 5);
	script_expect("64 MiB and a byte", CHANNEL_CLOSE_FLOOD, GRPC_RESOURCE_EXHAUSTED);
	script_begin();
	script_response();
	script_frame(SCRIPT_DATA, SCRIPT_END_STREAM, 1, "\0\0\0\0\5ab", 7);
	script_expect("the end inside a message", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script_begin();
	script_response();
	script_frame(SCRIPT_DATA, 0, 1, "\0\0\0\0\5ab", 7);
	script_trailers("0", "");
	script_expect("trailers inside a message", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script_begin();
	script_response();
	script_message(0, "\x0a\x05\x08", 3);
	script_expect("not protobuf", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
}

Test(attach_hostile, bounds_informational_responses)
{
	for (unsigned count = H2_INFORMATIONAL - 1; count <= H2_INFORMATIONAL + 1; count++) {
		script_begin();
		for (unsigned i = 0; i < count; i++)
			script_headers(0, ":status", "103", "link", "x", NULL);
		script_response();
		script_trailers("0", "");
		if (count <= H2_INFORMATIONAL)
			script_expect("1xx", CHANNEL_CLOSE_STATUS, GRPC_OK);
		else
			script_expect("1xx", CHANNEL_CLOSE_FLOOD, GRPC_UNAVAILABLE);
	}
}

Test(attach_hostile, bounds_header_bombs)
{
	static uint8_t block[16000];
	size_t n = 0;

	script_begin();
	script_response();
	/* one entry of 3,900 bytes in the dynamic table, then named again and again */
	memcpy(block,
	       "\x40\x01"
	       "a\x7f\xbd\x1d",
	       6);
	n = 6 + 3900;
	memset(block + 6, 'v', 3900);
	memset(block + n, 0xbe, 12000);
	script_frame(SCRIPT_HEADERS, SCRIPT_END_STREAM | SCRIPT_END_HEADERS, 1, block, n + 12000);
	script_expect("a bomb", CHANNEL_CLOSE_FLOOD, GRPC_UNAVAILABLE);
	cr_assert_leq(script_attach.h2.memory, H2_MEMORY);
}

static void flood(const char *what, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
		  size_t size, unsigned count, bool drowned)
{
	script_begin();
	script_response();
	for (unsigned i = 0; i < count; i++)
		script_frame(type, flags, stream, payload, size);
	script_trailers("0", "");
	if (drowned)
		script_expect(what, CHANNEL_CLOSE_FLOOD, GRPC_UNAVAILABLE);
	else
		script_expect(what, CHANNEL_CLOSE_STATUS, GRPC_OK);
}

Test(attach_hostile, bounds_frames_that_carry_nothing)
{
	static const uint8_t padding[256] = {255};
	unsigned below = H2_IDLE_FRAMES - 10, above = 3 * H2_IDLE_FRAMES;

	flood("empty DATA", SCRIPT_DATA, 0, 1, "", 0, below, false);
	flood("empty DATA", SCRIPT_DATA, 0, 1, "", 0, above, true);
	flood("padding", SCRIPT_DATA, SCRIPT_PADDED, 1, padding, sizeof padding, below, false);
	flood("padding", SCRIPT_DATA, SCRIPT_PADDED, 1, padding, sizeof padding, above, true);
	flood("PING", SCRIPT_PING, 0, 0, "12345678", 8, below, false);
	flood("PING", SCRIPT_PING, 0, 0, "12345678", 8, above, true);
	flood("SETTINGS", SCRIPT_SETTINGS, 0, 0, "", 0, below, false);
	flood("SETTINGS", SCRIPT_SETTINGS, 0, 0, "", 0, above, true);
}

Test(attach_hostile, refuses_what_breaks_http2)
{
	static uint8_t big[16385];

	script_begin();
	script_response();
	script_frame(SCRIPT_DATA, 0, 1, big, sizeof big);
	script_expect("a frame too big", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script_begin();
	script_response();
	script_u32(SCRIPT_WINDOW_UPDATE, 0, 0x7fffffff);
	script_expect("the connection's window overflows", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script_begin();
	script_response();
	script_frame(SCRIPT_SETTINGS, 0, 0, "\0\4\xff\xff\xff\xff", 6);
	script_expect("a window over 2^31", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script_begin();
	script_frame(SCRIPT_SETTINGS, SCRIPT_ACK, 0, "", 0);
	script_response();
	script_frame(SCRIPT_PUSH_PROMISE, SCRIPT_END_HEADERS, 1, "\0\0\0\2\x82\x84\x86", 7);
	script_expect("a push", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script_begin();
	script_frame(SCRIPT_DATA, 0, 1, "xx", 2);
	script_expect("DATA before HEADERS", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script_begin();
	script_response();
	script_frame(SCRIPT_HEADERS, SCRIPT_END_HEADERS, 1, "\xff\xff\xff\xff\xff\xff", 6);
	script_expect("HPACK that cannot be", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script_begin();
	script_headers(0, "content-type", "application/grpc", NULL);
	script_expect("no :status", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script_begin();
	script_response();
	script_u32(SCRIPT_WINDOW_UPDATE, 1, 0);
	script_expect("a window update of nothing", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
}
