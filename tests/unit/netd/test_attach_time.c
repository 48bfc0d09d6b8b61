/* What an attempt does when nothing comes, on a clock of the test's: grpc-client.md 13, 14, 16. */
#include "tests/lib/script.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

SCRIPT_WORLD

#define MINUTE 60000u

static void expect_silence_ends_it(const char *what)
{
	script_expect(what, CHANNEL_CLOSE_HANDSHAKE, GRPC_UNAVAILABLE);
	/* then 200 ms for our frames to leave, and 200 for the peer's end */
	cr_assert_geq(script.ended_ms, LIMIT_HANDSHAKE_MS, "%s", what);
	cr_assert_leq(script.ended_ms, LIMIT_HANDSHAKE_MS + 2 * ATTACH_LEAVE_MS, "%s", what);
}

/* The limit is over all of it: what the dial took is missing at the end. */
Test(attach_time, a_handshake_may_take_20_s_in_all)
{
	static const uint64_t dials[] = {0, 5000, 15000, LIMIT_HANDSHAKE_MS - 1};

	for (size_t i = 0; i < sizeof dials / sizeof *dials; i++) {
		script_begin_empty();
		script.silent = true;
		script.dial_ms = dials[i];
		expect_silence_ends_it("no SETTINGS");
		script_said("no HTTP/2 within 20 s");
		cr_assert_eq(script_sent(SCRIPT_HEADERS, 0), 0, "no token to a peer that says nothing");
	}
}

Test(attach_time, settings_just_in_time_are_enough_and_just_late_are_not)
{
	for (int late = 0; late <= 1; late++) {
		script_begin_empty();
		script_later(LIMIT_HANDSHAKE_MS - 1 + (unsigned)late);
		script_frame(SCRIPT_SETTINGS, 0, 0, "", 0);
		script_later(LIMIT_HANDSHAKE_MS + 5000);
		script_response();
		script_trailers("0", "");
		if (late == 0)
			script_expect("just in time", CHANNEL_CLOSE_STATUS, GRPC_OK);
		else
			script_expect("just late", CHANNEL_CLOSE_HANDSHAKE, GRPC_UNAVAILABLE);
	}
}

/* Bytes that come one by one do not prolong it. */
Test(attach_time, a_trickle_does_not_prolong_the_handshake)
{
	static const uint8_t half[] = {0, 0, 6, SCRIPT_SETTINGS, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0x40};

	script_begin_empty();
	script.silent = true;
	for (size_t i = 0; i < sizeof half; i++) {
		script_later(2000 * i);
		script_raw(half + i, 1);
	}
	expect_silence_ends_it("SETTINGS a byte at a time");
}

/* Connected, SETTINGS came, but our own first bytes do not leave. */
Test(attach_time, a_peer_that_takes_no_hello_is_part_of_the_handshake)
{
	script_begin();
	script.silent = true;
	script.room = 9;
	script_run();
	script_said("no Hello within 20 s: the relay does not read");
	cr_assert_eq(script_attach.closed.close_class, CHANNEL_CLOSE_HANDSHAKE);
	cr_assert_geq(script.ended_ms, LIMIT_HANDSHAKE_MS);
	cr_assert_leq(script.ended_ms, LIMIT_HANDSHAKE_MS + 2 * ATTACH_LEAVE_MS);
	script_end();
}

Test(attach_time, what_keeps_hello_back_is_told)
{
	static const struct {
		const char *entry, *why;
	} cases[] = {
	    {"\0\3\0\0\0\0", "no stream (SETTINGS_MAX_CONCURRENT_STREAMS)"},
	    {"\0\4\0\0\0\0", "window is shut (SETTINGS_INITIAL_WINDOW_SIZE)"},
	};

	for (size_t i = 0; i < 2; i++) {
		script_begin_empty();
		script_frame(SCRIPT_SETTINGS, 0, 0, cases[i].entry, 6);
		script.silent = true;
		expect_silence_ends_it(cases[i].why);
		script_said(cases[i].why);
	}
}

Test(attach_time, silence_for_30_s_is_a_ping_and_10_s_later_the_end)
{
	script_begin();
	script_response();
	script.silent = true;
	script_expect("silence", CHANNEL_CLOSE_KEEPALIVE, GRPC_UNAVAILABLE);
	cr_assert_eq(script_sent(SCRIPT_PING, 0), 1);
	cr_assert_eq(script_sent(SCRIPT_DATA, 0), 1 + 2, "Hello, and a Heartbeat each 15 s");
	cr_assert_geq(script.ended_ms, LIMIT_PING_MS + LIMIT_PING_ACK_MS);
	cr_assert_leq(script.ended_ms, LIMIT_PING_MS + LIMIT_PING_ACK_MS + 2 * ATTACH_LEAVE_MS);
}

/* Whatever the peer says, it lives: its PING just as an ACK of ours, and half a frame. */
Test(attach_time, any_byte_is_a_sign_of_life)
{
	static const char *const signs[] = {"\0\0\x8\6\1\0\0\0\0pingpong", "\0\0\x8\6\0\0\0\0\0pingpong",
					    "\0\0\x8\6\0\0\0\0\0p"};
	static const size_t sizes[] = {17, 17, 10};

	for (size_t i = 0; i < 3; i++) {
		script_begin();
		script_response();
		script_later(LIMIT_PING_MS + LIMIT_PING_ACK_MS - 1);
		script_raw(signs[i], sizes[i]);
		script.silent = true;
		script_expect("a sign of life", CHANNEL_CLOSE_KEEPALIVE, GRPC_UNAVAILABLE);
		cr_assert_eq(script_sent(SCRIPT_PING, 0) - script_sent(SCRIPT_PING, SCRIPT_ACK), 2);
		cr_assert_geq(script.ended_ms, 2 * (LIMIT_PING_MS + LIMIT_PING_ACK_MS) - 1);
		cr_assert_leq(script.ended_ms,
			      2 * (LIMIT_PING_MS + LIMIT_PING_ACK_MS) - 1 + 2 * ATTACH_LEAVE_MS);
	}
}

Test(attach_time, a_sign_of_life_just_late_is_none)
{
	script_begin();
	script_response();
	script_later(LIMIT_PING_MS + LIMIT_PING_ACK_MS + 1);
	script_frame(SCRIPT_PING, SCRIPT_ACK, 0, "pingpong", 8);
	script.silent = true;
	script_expect("too late", CHANNEL_CLOSE_KEEPALIVE, GRPC_UNAVAILABLE);
	cr_assert_leq(script.ended_ms, LIMIT_PING_MS + LIMIT_PING_ACK_MS + 2 * ATTACH_LEAVE_MS);
}

/* We were stopped while the ACK came: it is read before anybody is called silent. A freeze of whole ticks,
 * and one that ends with the last. */
Test(attach_time, an_ack_that_came_while_we_were_frozen_counts)
{
	static const uint64_t at[] = {LIMIT_PING_MS + 1500, LIMIT_PING_MS + LIMIT_PING_ACK_MS - 500};

	for (size_t i = 0; i < 2; i++) {
		script_begin();
		script_response();
		script.freeze_at_ms = at[i];
		script.freeze_ms = 22000;
		script_later(at[i] + 100);
		script_frame(SCRIPT_PING, SCRIPT_ACK, 0, "pingpong", 8);
		script_later(MINUTE + 5000);
		script_trailers("0", "");
		script_expect("an ACK in the freeze", CHANNEL_CLOSE_STATUS, GRPC_OK);
	}
}

/* All the machine was: the peer's answer comes after it. */
Test(attach_time, a_peer_that_was_frozen_too_has_the_rest_of_its_time)
{
	script_begin();
	script_response();
	script.freeze_at_ms = LIMIT_PING_MS + 1500;
	script.freeze_ms = MINUTE;
	script_later(script.freeze_at_ms + script.freeze_ms + 7000);
	script_frame(SCRIPT_PING, SCRIPT_ACK, 0, "pingpong", 8);
	script_later(3 * MINUTE);
	script_trailers("0", "");
	script.silent = true;
	script_expect("an ACK after the freeze", CHANNEL_CLOSE_KEEPALIVE, GRPC_UNAVAILABLE);
	cr_assert_eq(script_sent(SCRIPT_PING, 0), 2);
}

Test(attach_time, a_handshake_that_was_frozen_has_the_rest_of_its_time)
{
	script_begin_empty();
	script.freeze_at_ms = 100;
	script.freeze_ms = MINUTE;
	script.dial_ms = 50;
	script_later(MINUTE + 15000);
	script_frame(SCRIPT_SETTINGS, 0, 0, "", 0);
	script_later(MINUTE + 16000);
	script_response();
	script_trailers("0", "");
	script_expect("a frozen handshake", CHANNEL_CLOSE_STATUS, GRPC_OK);
}

/* The peer speaks more often than each 30 s: no PING is needed, for as long as that may be. */
Test(attach_time, no_ping_while_the_peer_speaks)
{
	script_begin();
	script_response();
	for (unsigned i = 1; i <= 10; i++) {
		script_later(i * (LIMIT_PING_MS - 1));
		script_frame(SCRIPT_PING, 0, 0, "from you", 8);
	}
	script_trailers("0", "");
	script_expect("a talkative peer", CHANNEL_CLOSE_STATUS, GRPC_OK);
	cr_assert_eq(script_sent(SCRIPT_PING, SCRIPT_ACK), 10);
	cr_assert_eq(script_sent(SCRIPT_PING, 0), 10, "none of our own");
}

/* The interval that execd gives after too_many_pings is kept; so is the one learnt on this connection, where
 * it goes on after such a GOAWAY. */
Test(attach_time, a_peer_that_is_tired_of_pings_gets_one_in_5_minutes)
{
	for (int told = 0; told <= 1; told++) {
		script_begin();
		script_response();
		if (told)
			script_settings.ping_ms = LIMIT_PING_CALM_MS;
		else
			script_goaway(1, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
		script.silent = true;
		script_expect("calm", CHANNEL_CLOSE_KEEPALIVE, GRPC_UNAVAILABLE);
		cr_assert_eq(script_sent(SCRIPT_PING, 0), 1);
		cr_assert_geq(script.ended_ms, 5 * MINUTE + LIMIT_PING_ACK_MS);
	}
}

/* PINGs between which we send no DATA are what such a peer is tired of. */
Test(attach_time, heartbeats_as_rare_as_pings_make_pings_rare)
{
	static const struct {
		uint32_t heartbeat_ms;
		uint64_t least_ms;
	} cases[] = {
	    {LIMIT_PING_MS - 1000, LIMIT_PING_MS},
	    {LIMIT_PING_MS, LIMIT_PING_CALM_MS},
	    {2 * MINUTE, LIMIT_PING_CALM_MS},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		script_begin();
		script_settings.heartbeat_ms = cases[i].heartbeat_ms;
		script_response();
		script.silent = true;
		script_expect("rare heartbeats", CHANNEL_CLOSE_KEEPALIVE, GRPC_UNAVAILABLE);
		cr_assert_eq(script_sent(SCRIPT_PING, 0), 1);
		cr_assert_geq(script.ended_ms, cases[i].least_ms + LIMIT_PING_ACK_MS);
		cr_assert_leq(script.ended_ms, cases[i].least_ms + LIMIT_PING_ACK_MS + 2 * ATTACH_LEAVE_MS);
	}
}

/* Nothing but Heartbeats for ten minutes, at the interval of the settings. */
Test(attach_time, heartbeats_go_on)
{
	script_begin();
	script_settings.heartbeat_ms = 4000;
	script_settings.ping_ms = LIMIT_PING_CALM_MS;
	script_response();
	script_later(4 * MINUTE + 1000);
	script_trailers("0", "");
	script_expect("heartbeats", CHANNEL_CLOSE_STATUS, GRPC_OK);
	cr_assert_eq(script_sent(SCRIPT_DATA, 0), 1 + 60);
	cr_assert_eq(script_sent(SCRIPT_DATA, SCRIPT_END_STREAM), 0, "never half-closed");
}

/* More Execs than execd answers: we do not read on, so that the peer's silence says nothing. */
Test(attach_time, no_ping_while_execd_holds_us_up)
{
	script_begin();
	script_response();
	for (unsigned i = 0; i < WORK_ASKED_MAX + 2; i++)
		script_message(0,
			       "\x0a\x0c\x08\x07\x12\x06"
			       "echo 1\x28\x01",
			       14);
	script.silent = true;
	script.drain_ms = 10 * MINUTE;
	script_run();
	cr_assert_eq(script_attach.closed.close_class, CHANNEL_CLOSE_DRAINED, "%s",
		     channel_close_name(script_attach.closed.close_class));
	cr_assert_eq(script_sent(SCRIPT_PING, 0), 0);
	script_end();
}

/* Execd reads nothing: what waits for it goes as soon as there is room, not with the next ALIVE. That nothing
 * is owed without the channel being watched is checked by the script, whenever it waits. */
Test(attach_time, a_full_channel_is_watched_and_a_goaway_is_told_at_once)
{
	script_begin();
	script_response();
	for (unsigned i = 0; i < 20000; i++)
		script_message(0, "\x12\x02\x08\x07", 4);
	script.silent = true;
	script.drain_ms = MINUTE;
	script_run();
	cr_assert(script_records.watching);
	cr_assert_eq(script_attach.closed.close_class, CHANNEL_CLOSE_DRAINED);
	script_end();
	script_begin();
	script_response();
	script_later(1000);
	script_goaway(1, 0, "");
	script.silent = true;
	script_expect("GOAWAY, then silence", CHANNEL_CLOSE_KEEPALIVE, GRPC_UNAVAILABLE);
}
