/* How a call and a connection end, and what the verdict is: grpc-client.md 8 to 11, 13, 20. */
#include "tests/lib/script.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SCRIPT_WORLD

Test(attach_ends, takes_the_status_of_complete_trailers)
{
	script_begin();
	script_headers(SCRIPT_END_STREAM, ":status", "200", "content-type", "application/grpc", "grpc-status",
		       "0", NULL);
	script_expect("OK right after Hello", CHANNEL_CLOSE_STATUS, GRPC_OK);
	for (int code = 0; code <= 16; code++) {
		char text[4];

		snprintf(text, sizeof text, "%d", code);
		script_begin();
		script_response();
		script_trailers(text, "b%61d");
		script_expect("trailers", CHANNEL_CLOSE_STATUS, (uint8_t)code);
		cr_assert_str_eq(script_attach.h2.message, "bad");
		cr_assert(script.shut);
	}
	script_begin();
	script_response();
	script_trailers("seven", "");
	script_expect("not a number", CHANNEL_CLOSE_STATUS, GRPC_UNKNOWN);
	script_begin();
	script_response();
	script_trailers("0", "");
	script_u32(SCRIPT_RST_STREAM, 1, 0);
	script_expect("trailers, then RST(0)", CHANNEL_CLOSE_STATUS, GRPC_OK);
	script_begin();
	script_headers(SCRIPT_END_STREAM, ":status", "503", "content-type", "text/html", "grpc-status", "5",
		       NULL);
	script_expect("a status beats HTTP's", CHANNEL_CLOSE_STATUS, 5);
	script_begin();
	script_response();
	script_headers(SCRIPT_END_STREAM, "grpc-status", "5", "grpc-message", "first", "grpc-status", "0",
		       NULL);
	script_trailers("0", "");
	script_expect("the first of two, and of two blocks", CHANNEL_CLOSE_STATUS, 5);
	cr_assert_str_eq(script_attach.h2.message, "first");
}

Test(attach_ends, a_status_in_a_block_that_is_not_complete_or_not_valid_does_not_count)
{
	static const uint8_t upper[] = {0x10, 11,  'g', 'r', 'p', 'c',  '-', 's', 't', 'a',
					't',  'u', 's', 1,   '0', 0x10, 1,   'X', 1,   'x'};

	script_begin();
	script_response();
	script_frame(SCRIPT_HEADERS, SCRIPT_END_STREAM | SCRIPT_END_HEADERS, 1, upper, sizeof upper);
	script_expect("an upper-case name", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script_begin();
	script_response();
	script_headers(0, "grpc-status", "0", NULL);
	script_expect("trailers without END_STREAM", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script_begin();
	script_response();
	script_frame(SCRIPT_HEADERS, SCRIPT_END_STREAM, 1, upper, 15);
	script_expect("a block that does not end", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
	script_begin();
	script_headers(0, ":status", "200", "content-type", "application/grpc", "grpc-status", "0", NULL);
	script_expect("a status in headers that are no trailers", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
}

/* Whatever half message came before it; but an OK there is a lie. */
Test(attach_ends, a_status_after_half_a_message_is_the_reason)
{
	script_begin();
	script_response();
	script_frame(SCRIPT_DATA, 0, 1, "\0\0\0\0\5ab", 7);
	script_trailers("8", "too%20much");
	script_expect("trailers inside a message", CHANNEL_CLOSE_STATUS, GRPC_RESOURCE_EXHAUSTED);
	cr_assert_str_eq(script_attach.h2.message, "too much");
}

/* So a relay refuses a token, or a second worker of one id. */
Test(attach_ends, an_ok_right_after_hello_is_asked_about)
{
	static const char ask[] = "is the token right for this id, or is the id attached elsewhere?";

	for (int late = 0; late <= 1; late++) {
		script_begin();
		script_later(ATTACH_REFUSED_MS - 1 + (unsigned)late);
		script_response();
		script_trailers("0", "");
		script_expect("OK", CHANNEL_CLOSE_STATUS, GRPC_OK);
		cr_assert_eq(!strstr(script.log, ask), late, "%s", script.log);
	}
	script_begin();
	script_response();
	script_message(0, "\x12\x02\x08\x07", 4);
	script_trailers("0", "");
	script_expect("OK after a frame", CHANNEL_CLOSE_STATUS, GRPC_OK);
	cr_assert_null(strstr(script.log, ask));
	script_begin();
	script_response();
	script_trailers("16", "");
	script_expect("not OK", CHANNEL_CLOSE_STATUS, GRPC_UNAUTHENTICATED);
	cr_assert_null(strstr(script.log, ask));
}

Test(attach_ends, maps_ends_without_a_status)
{
	static const struct {
		const char *http;
		uint8_t code;
	} map[] = {{"400", 13}, {"401", 16}, {"403", 7},  {"404", 12},
		   {"429", 14}, {"502", 14}, {"503", 14}, {"302", 2}};

	for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
		script_begin();
		script_headers(0, ":status", map[i].http, "content-type", "text/html", NULL);
		script_frame(SCRIPT_DATA, SCRIPT_END_STREAM, 1, "<h1>no</h1>", 11);
		script_expect(map[i].http, CHANNEL_CLOSE_STATUS, map[i].code);
		cr_assert_eq(script_attach.closed.http_status, strtoul(map[i].http, NULL, 10));
	}
	script_begin();
	script_headers(0, ":status", "200", "content-type", "text/html", NULL);
	script_frame(SCRIPT_DATA, 0, 1, "<h1>", 4);
	script_expect("200 but no gRPC", CHANNEL_CLOSE_STATUS, GRPC_UNKNOWN);
	script_begin();
	script_response();
	script_frame(SCRIPT_DATA, SCRIPT_END_STREAM, 1, "", 0);
	script_expect("END_STREAM without trailers", CHANNEL_CLOSE_STATUS, GRPC_UNKNOWN);
}

Test(attach_ends, maps_resets)
{
	static const struct {
		uint32_t h2;
		uint8_t code;
	} map[] = {{0, 13}, {2, 13}, {7, 14}, {8, 1}, {11, 8}, {12, 7}, {13, 13}, {99, 13}};

	for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
		script_begin();
		script_response();
		script_u32(SCRIPT_RST_STREAM, 1, map[i].h2);
		script_expect("reset", CHANNEL_CLOSE_RESET, map[i].code);
		cr_assert_eq(script_attach.closed.h2_error, map[i].h2);
	}
}

Test(attach_ends, tells_a_goaway_that_excludes_us_from_one_that_does_not)
{
	struct channel_header h;
	struct channel_closed c;

	script_begin();
	script_goaway(0, 0, "");
	script_expect("last stream 0", CHANNEL_CLOSE_GOAWAY, GRPC_UNAVAILABLE);
	script_begin();
	script_response();
	script_goaway(0x7fffffff, 0, "");
	script_goaway(1, 0, "");
	script_trailers("14", "");
	c = script_run();
	cr_assert(c.close_class == CHANNEL_CLOSE_STATUS && c.grpc_status == 14);
	cr_assert_eq(script_next(&h), CHANNEL_ATTACHED);
	cr_assert_eq(script_next(&h), CHANNEL_GOAWAY);
	cr_assert_eq(script_next(&h), CHANNEL_CLOSED);
}

Test(attach_ends, learns_from_too_many_pings)
{
	script_begin();
	script_response();
	script_goaway(1, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
	script_expect("too many pings", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
	cr_assert_eq(script_attach.closed.ping_ms, LIMIT_PING_CALM_MS);
	script_begin();
	script_response();
	script_goaway(1, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_others");
	script_expect("calm about something else", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
	cr_assert_eq(script_attach.closed.ping_ms, 0);
}

/* The peer ended the call and went away: our next write fails before we read what it said. */
Test(attach_ends, what_was_said_before_a_write_failed_counts)
{
	script_begin();
	script.write_error = -EPIPE;
	script.after_error = script.size;
	script_response();
	script_message(0, "\x12\x02\x08\x07", 4);
	script_trailers("7", "go%20away");
	script_run();
	cr_assert_eq(script_attach.closed.close_class, CHANNEL_CLOSE_STATUS);
	cr_assert_eq(script_attach.closed.grpc_status, 7);
	script_end();
	script_begin();
	script.write_error = -ECONNRESET;
	script.after_error = script.size;
	script_goaway(0, 0, "");
	script_run();
	cr_assert_eq(script_attach.closed.close_class, CHANNEL_CLOSE_GOAWAY);
	script_end();
	script_begin();
	script.write_error = -EPIPE;
	script.read_error = -ECONNRESET;
	script_expect("nothing was said", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
}

/* Such as the alert that refuses our certificate, which TLS 1.3 sends when we believe to be connected. */
Test(attach_ends, what_tls_finds_wrong_is_the_verdict)
{
	script_begin_empty();
	script.read_error = -EPROTO;
	script.read_why = "the relay refused: sslv3 alert bad certificate";
	script_expect("an alert", CHANNEL_CLOSE_TLS, GRPC_UNAVAILABLE);
	cr_assert_not(script.shut, "broken TLS is left at once");
	script_begin_empty();
	script.read_error = -ECONNRESET;
	script_expect("a reset", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
}

static void drained(const char *what, unsigned resets)
{
	script.drain_ms = 5000;
	script_expect(what, CHANNEL_CLOSE_DRAINED, CHANNEL_NO_STATUS);
	cr_assert_eq(script_sent(SCRIPT_DATA, SCRIPT_END_STREAM), 1, "%s", what);
	cr_assert_eq(script_sent(SCRIPT_RST_STREAM, 0), resets, "%s", what);
	cr_assert_leq(script.ended_ms, 5000 + ATTACH_TRAILERS_MS + 2 * ATTACH_LEAVE_MS, "%s", what);
}

/* Our END_STREAM first; then the relay may say its trailers, or nothing, or be gone at once: all of it is
 * what we were told to do. */
Test(attach_ends, told_to_leave_is_what_it_says_whatever_the_relay_does_then)
{
	script_begin();
	script_response();
	script.silent = true;
	drained("silence", 1);
	for (int trailers = 0; trailers <= 1; trailers++) {
		for (int gone = 0; gone <= 1; gone++) {
			script_begin();
			script_response();
			script.after_end = script.size;
			if (trailers)
				script_trailers("0", "");
			script.silent = !gone;
			if (trailers || gone)
				drained("trailers or the end", trailers ? 0 : 1);
		}
	}
}

/* It reads nothing, so that our END_STREAM does not leave: a second, and not longer. */
Test(attach_ends, told_to_leave_does_not_wait_for_a_relay_that_does_not_read)
{
	script_begin();
	script_frame(SCRIPT_SETTINGS, 0, 0, "\0\4\0\0\0\1", 6);
	script_response();
	script_settings.heartbeat_ms = 1000;
	script.silent = true;
	script.drain_ms = 5000;
	script_run();
	cr_assert_eq(script_attach.closed.close_class, CHANNEL_CLOSE_DRAINED);
	cr_assert_geq(script.ended_ms, 5000 + ATTACH_DRAIN_MS);
	cr_assert_leq(script.ended_ms, 5000 + ATTACH_DRAIN_MS + 2 * ATTACH_LEAVE_MS);
	script_end();
}
