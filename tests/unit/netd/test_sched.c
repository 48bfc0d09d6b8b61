#include "netd/sched.h"

#include "common/clock.h"
#include "tests/lib/h2_peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

H2_PEER_TRANSPORT

enum { HELLO = 1, HEARTBEAT, CHUNK, END, ERROR };

static struct h2_peer peer;
static struct h2 h2;
static struct sched sched;
static uint64_t now; /* begins as the real time, so that no timer of the future fires by itself */

/* An exec whose command is the test. */
struct command {
	struct output output;
	int out, err; /* write ends */
	bool done;
	unsigned quiet; /* how often it was */
};

static void done(void *owner, struct output *o)
{
	struct command *c = (struct command *)((char *)o - offsetof(struct command, output));
	uint8_t frame[FRAMES_TERMINAL_MAX];
	uint64_t req_id = o->req_id;
	struct outcome outcome = o->how.outcome;
	bool truncated = output_truncated(o);

	(void)owner;
	sched_forget(&sched, o);
	c->done = true;
	cr_assert_eq(
	    sched_control(&sched, frame, frames_terminal(frame, sizeof frame, req_id, &outcome, truncated)),
	    0);
}

static void quiet(void *owner, struct output *o)
{
	(void)owner;
	((struct command *)((char *)o - offsetof(struct command, output)))->quiet++;
}

static void start(uint32_t window)
{
	now = clock_now_ms();
	h2_peer_start(&peer, &h2, &sched, window, done, NULL, now);
	sched.quiet = quiet;
	cr_assert_eq(h2_peer_next(&peer).kind, HELLO);
	peer.writes = 0;
	peer.data_frames = 0;
}

static void command(struct command *c, uint64_t req_id, bool streaming)
{
	int out[2], err[2];

	*c = (struct command){0};
	cr_assert(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	fcntl(out[1], F_SETFL, O_NONBLOCK);
	c->out = out[1];
	c->err = err[1];
	cr_assert_eq(sched_begin(&sched, &c->output, req_id, streaming, (int[]){out[0], err[0]}), 0);
}

static void say(int fd, const void *bytes, size_t size)
{
	cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
}

static void finish(struct command *c, enum channel_reading reading)
{
	struct channel_ended how = {.outcome = {OUTCOME_EXITED, 3}, .reading = reading};

	if (reading == CHANNEL_READ_EMPTY) {
		close(c->out);
		close(c->err);
	}
	sched_end(&sched, &c->output, &how, now);
}

static void pass(void)
{
	loop_pass(&peer.loop, 0);
	cr_assert_eq(sched_send(&sched, now), 0);
	h2_peer_exchange(&peer);
}

static size_t waiting(const struct command *c)
{
	int n = 0;

	cr_assert_eq(ioctl(c->output.pipe[0].fd, FIONREAD, &n), 0);
	return (size_t)n;
}

Test(sched, a_short_command_leaves_in_one_write_with_its_end)
{
	struct command c;
	struct h2_peer_frame f;

	start(65535);
	command(&c, 7, true);
	say(c.out, "hi\n", 3);
	say(c.err, "oh", 2);
	finish(&c, CHANNEL_READ_EMPTY);
	pass();
	cr_assert_eq(peer.writes, 1);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == CHUNK && f.req_id == 7 && f.stream == 1 && f.size == 3 &&
		  memcmp(f.data, "hi\n", 3) == 0);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == CHUNK && f.stream == 2 && f.size == 2);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == END && f.req_id == 7 && f.exit_code == 3 && !f.truncated);
	cr_assert_eq(h2_peer_next(&peer).kind, 0);
	h2_peer_stop(&peer);
}

Test(sched, a_full_chunk_is_two_full_data_frames)
{
	static uint8_t bytes[65536];
	struct command c;
	struct h2_peer_frame f;

	start(1 << 20);
	command(&c, 1ull << 53, true);
	say(c.out, bytes, sizeof bytes);
	pass();
	cr_assert_geq(peer.data_frames, 4);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(peer.data_sizes[i], 16384, "frame %d: %zu", i, peer.data_sizes[i]);
	f = h2_peer_next(&peer);
	cr_assert_eq(f.size, frames_chunk_data(1ull << 53));
	f = h2_peer_next(&peer);
	cr_assert_eq(f.size, frames_chunk_data(1ull << 53));
	f = h2_peer_next(&peer);
	cr_assert_eq(f.size, sizeof bytes - 2 * frames_chunk_data(1ull << 53));
	h2_peer_stop(&peer);
}

Test(sched, a_peer_that_does_not_read_stops_the_command_but_not_its_end)
{
	static uint8_t bytes[65536];
	struct command c, other;
	size_t in_pipe;

	start(65535);
	command(&c, 1, true);
	command(&other, 2, true);
	for (int i = 0; i < 10; i++) {
		while (write(c.out, bytes, sizeof bytes) > 0)
			;
		pass();
	}
	in_pipe = waiting(&c);
	cr_assert_gt(in_pipe, 0);
	cr_assert_leq(peer.body_used, 65535 - SCHED_RESERVE);
	for (int i = 0; i < 10; i++)
		pass();
	cr_assert_eq(waiting(&c), in_pipe, "only what the window can carry is read");
	finish(&other, CHANNEL_READ_EMPTY);
	sched.heartbeat = true;
	pass();
	cr_assert(other.done);
	while (h2_peer_next(&peer).kind == CHUNK)
		;
	cr_assert_eq(peer.body_used - peer.body_read, sizeof frames_heartbeat,
		     "the End, and behind it a Heartbeat");
	cr_assert_eq(h2_peer_next(&peer).kind, HEARTBEAT);
	h2_peer_consume(&peer, peer.body_used);
	pass();
	cr_assert_eq(h2_peer_next(&peer).kind, CHUNK, "and it goes on when the window opens");
	h2_peer_stop(&peer);
}

Test(sched, pipes_take_turns)
{
	static uint8_t bytes[65536];
	struct command c[3];
	unsigned seen[3] = {0};

	start(200000);
	for (unsigned i = 0; i < 3; i++) {
		command(&c[i], i, true);
		while (write(c[i].out, bytes, sizeof bytes) > 0)
			;
	}
	pass();
	for (;;) {
		struct h2_peer_frame f = h2_peer_next(&peer);

		if (f.kind != CHUNK)
			break;
		seen[f.req_id]++;
	}
	cr_assert(seen[0] >= 1 && seen[1] >= 1 && seen[2] >= 1, "%u %u %u", seen[0], seen[1], seen[2]);
	h2_peer_stop(&peer);
}

/* The same bytes come out however little the socket takes at a time. */
Test(sched, goes_on_where_the_socket_stopped)
{
	static uint8_t bytes[50000];
	struct command c;
	size_t got = 0;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7);
	start(1 << 20);
	command(&c, 5, true);
	say(c.out, bytes, sizeof bytes);
	finish(&c, CHANNEL_READ_EMPTY);
	for (int i = 0; i < 20000 && !sched_is_flushed(&sched); i++) {
		peer.socket_room = 7;
		pass();
	}
	peer.socket_room = SIZE_MAX;
	pass();
	for (;;) {
		struct h2_peer_frame f = h2_peer_next(&peer);

		if (f.kind != CHUNK) {
			cr_assert_eq(f.kind, END);
			break;
		}
		cr_assert_eq(memcmp(f.data, bytes + got, f.size), 0);
		got += f.size;
	}
	cr_assert_eq(got, sizeof bytes);
	h2_peer_stop(&peer);
}

Test(sched, windows_of_any_size_carry_everything_in_the_end)
{
	static const uint32_t windows[] = {1,   2,   20,  63,  64,   72,   73,    100,
					   171, 511, 512, 513, 1000, 5000, 16384, 65535};
	static uint8_t bytes[3000];

	for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
		struct command c;
		size_t got = 0, consumed;

		now = clock_now_ms();
		h2_peer_start(&peer, &h2, &sched, windows[i], done, NULL, now);
		consumed = 0;
		command(&c, 5, true);
		say(c.out, bytes, sizeof bytes);
		finish(&c, CHANNEL_READ_EMPTY);
		for (int n = 0; n < 40000 && !(c.done && sched_is_flushed(&sched)); n++) {
			if (peer.body_used > consumed)
				h2_peer_consume(&peer, peer.body_used - consumed);
			consumed = peer.body_used;
			pass();
		}
		cr_assert_eq(h2_peer_next(&peer).kind, HELLO, "window %u", windows[i]);
		for (;;) {
			struct h2_peer_frame f = h2_peer_next(&peer);

			if (f.kind != CHUNK) {
				cr_assert_eq(f.kind, END, "window %u: %zu bytes came", windows[i], got);
				break;
			}
			got += f.size;
		}
		cr_assert_eq(got, sizeof bytes);
		h2_peer_stop(&peer);
	}
}

static void widen(int32_t window)
{
	cr_assert_eq(nghttp2_session_set_local_window_size(peer.session, 0, peer.stream, window), 0);
	cr_assert_eq(nghttp2_session_set_local_window_size(peer.session, 0, 0, window), 0);
	h2_peer_exchange(&peer);
}

static void set_initial_window(uint32_t window)
{
	nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};

	cr_assert_eq(nghttp2_submit_settings(peer.session, 0, &entry, 1), 0);
	h2_peer_exchange(&peer);
}

Test(sched, chunks_follow_a_window_that_grew_by_hand)
{
	static char bytes[40000];
	struct command c;

	start(100);
	widen(1 << 20);
	command(&c, 7, true);
	say(c.out, bytes, sizeof bytes);
	pass();
	cr_assert_eq(h2_peer_next(&peer).size, frames_chunk_data(7));
	cr_assert_gt(h2_peer_next(&peer).size, 1000);
	h2_peer_stop(&peer);
}

Test(sched, chunks_follow_a_window_that_the_settings_made_small)
{
	static char bytes[3000];
	struct command c;
	size_t got = 0;

	start(65535);
	command(&c, 7, true);
	set_initial_window(100);
	say(c.out, bytes, sizeof bytes);
	for (unsigned i = 0; got < sizeof bytes && i < 10000; i++) {
		pass();
		got += h2_peer_next(&peer).size;
		h2_peer_consume(&peer, 50);
	}
	cr_assert_eq(got, sizeof bytes);
	h2_peer_stop(&peer);
}

Test(sched, control_frames_have_a_limit_in_number)
{
	uint8_t frame[FRAMES_TERMINAL_MAX];
	struct outcome o = {OUTCOME_EXITED, 0};

	start(65535);
	peer.socket_room = 0;
	for (unsigned i = 0; i < LIMIT_CONTROL_FRAMES; i++)
		cr_assert_eq(sched_control(&sched, frame, frames_terminal(frame, sizeof frame, i, &o, false)),
			     0);
	cr_assert_eq(sched_control(&sched, frame, 10), -ENOBUFS);
	pass();
	cr_assert_eq(sched_control(&sched, frame, 10), -ENOBUFS, "offered is not sent");
	peer.socket_room = SIZE_MAX;
	pass();
	pass();
	for (unsigned i = 0; i < LIMIT_CONTROL_FRAMES; i++) {
		struct h2_peer_frame f = h2_peer_next(&peer);

		cr_assert(f.kind == END && f.req_id == i);
	}
	cr_assert_eq(sched_control(&sched, frame, 10), 0);
	h2_peer_stop(&peer);
}

Test(sched, control_frames_have_a_limit_in_bytes)
{
	static uint8_t frame[LIMIT_CONTROL_BYTES / 4];

	start(65535);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(sched_control(&sched, frame, sizeof frame), 0);
	cr_assert_eq(sched_control(&sched, frame, sizeof frame + 1), -ENOBUFS);
	cr_assert_eq(sched_control(&sched, frame, sizeof frame), 0);
	cr_assert_eq(sched_control(&sched, frame, 1), -ENOBUFS);
	h2_peer_stop(&peer);
}

Test(sched, a_stalled_peer_gets_one_heartbeat_however_many_were_due)
{
	start(65535);
	peer.socket_room = 0;
	for (int i = 0; i < 100; i++) {
		sched.heartbeat = true;
		pass();
	}
	peer.socket_room = SIZE_MAX;
	for (int i = 0; i < 5; i++)
		pass();
	cr_assert_eq(h2_peer_next(&peer).kind, HEARTBEAT);
	cr_assert_eq(h2_peer_next(&peer).kind, HEARTBEAT, "one that was on its way, one that was due");
	cr_assert_eq(h2_peer_next(&peer).kind, 0);
	h2_peer_stop(&peer);
}

Test(sched, the_open_clock_stands_while_nothing_moves)
{
	static uint8_t bytes[65536];
	struct command c;
	uint64_t before;

	start(65535);
	pass();
	now += 2000;
	pass();
	before = sched_open_ms(&sched, now);
	cr_assert_geq(before, 2000, "idle but open counts");
	command(&c, 1, true);
	while (write(c.out, bytes, sizeof bytes) > 0)
		;
	pass();
	pass();
	now += 57000;
	pass();
	cr_assert_leq(sched_open_ms(&sched, now) - before, 1);
	h2_peer_consume(&peer, peer.body_used);
	pass();
	cr_assert_leq(sched_open_ms(&sched, now) - before, 1,
		      "the stall itself does not count afterwards either");
	cr_assert_gt(sched.stalled_ms, 50000);
	h2_peer_stop(&peer);
}

Test(sched, a_slow_but_steady_peer_counts_as_reading)
{
	static uint8_t bytes[65536];
	struct command c;
	uint64_t before;

	start(65535);
	command(&c, 1, true);
	pass();
	before = sched_open_ms(&sched, now);
	for (int i = 0; i < 20; i++) {
		size_t was = peer.body_used;

		while (write(c.out, bytes, sizeof bytes) > 0)
			;
		now += SCHED_STALL_MS / 2;
		pass();
		h2_peer_consume(&peer, peer.body_used - was > 0 ? peer.body_used - was : 0);
	}
	cr_assert_geq(sched_open_ms(&sched, now) - before, 18 * SCHED_STALL_MS / 2);
	h2_peer_stop(&peer);
}

Test(sched, keep_ends_after_quiet_though_the_pipes_stay_open)
{
	struct command c;

	start(65535);
	pass();
	command(&c, 1, true);
	finish(&c, CHANNEL_READ_KEEP);
	pass();
	cr_assert_not(c.done);
	cr_assert(c.output.look.armed);
	now += LIMIT_QUIET_MS - 1;
	c.output.look.fire(&c.output.look, now);
	cr_assert_not(c.done);
	now += 1;
	c.output.look.fire(&c.output.look, now);
	cr_assert(c.done);
	pass();
	cr_assert_eq(h2_peer_next(&peer).kind, END);
	h2_peer_stop(&peer);
}

static void look(struct command *c, uint64_t in_ms)
{
	now += in_ms;
	c->output.look.fire(&c->output.look, now);
}

Test(sched, what_is_left_behind_is_quiet_once_and_then_ends)
{
	struct command c;

	start(65535);
	pass();
	command(&c, 1, true);
	sched_left(&sched, &c.output, now);
	pass();
	look(&c, LIMIT_QUIET_MS - 1);
	cr_assert_eq(c.quiet, 0);
	say(c.out, "late\n", 5);
	pass();
	look(&c, 1);
	cr_assert_eq(c.quiet, 0, "it was not");
	look(&c, LIMIT_QUIET_MS);
	cr_assert_eq(c.quiet, 1);
	cr_assert_not(c.output.look.armed);
	say(c.out, "last\n", 5);
	pass();
	cr_assert(c.quiet == 1 && !c.done);
	cr_assert_eq(h2_peer_next(&peer).size, 5);
	cr_assert_eq(h2_peer_next(&peer).size, 5, "what comes before the proof is handed over");
	say(c.err, "err", 3);
	finish(&c, CHANNEL_READ_EMPTY);
	pass();
	cr_assert_eq(h2_peer_next(&peer).size, 3);
	cr_assert_eq(h2_peer_next(&peer).kind, END);
	cr_assert_eq(c.quiet, 1);
	h2_peer_stop(&peer);
}

Test(sched, the_end_of_both_pipes_is_quiet_at_once)
{
	for (int streams = 0; streams < 2; streams++) {
		struct command c;

		start(65535);
		pass();
		command(&c, 1, streams);
		close(c.out);
		pass();
		sched_left(&sched, &c.output, now);
		pass();
		cr_assert_eq(c.quiet, 0);
		close(c.err);
		pass();
		cr_assert_eq(c.quiet, 1);
		sched_forget(&sched, &c.output);
		h2_peer_stop(&peer);
	}
}

/* Neither clock goes while the relay takes nothing, and no byte is given up. */
Test(sched, a_shut_window_is_no_quiet)
{
	static uint8_t bytes[65536];
	struct command c;

	start(65535);
	command(&c, 1, true);
	while (write(c.out, bytes, sizeof bytes) > 0)
		;
	pass();
	pass();
	sched_left(&sched, &c.output, now);
	for (int i = 0; i < 100; i++) {
		pass();
		look(&c, 1000);
	}
	cr_assert_eq(c.quiet, 0);
	cr_assert_eq(c.output.pipe[0].dropped, 0);
	h2_peer_stop(&peer);
}

/* Every stop that leaves bytes of the command behind says so, and only those. */
Test(sched, what_stood_in_stdout_when_reading_stopped_truncates)
{
	static const struct {
		uint64_t limit_ms;
		enum channel_reading reading;
		bool to_stderr;
		bool truncated;
	} cases[] = {
	    {LIMIT_LINGER_MS, CHANNEL_READ_KEEP, false, true},
	    {LIMIT_AFTER_KILL_MS, CHANNEL_READ_KILLED, false, true},
	    {LIMIT_LINGER_MS, CHANNEL_READ_KEEP, true, false},
	    {LIMIT_AFTER_KILL_MS, CHANNEL_READ_KILLED, true, false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h2_peer_frame f;
		struct command c;

		start(65535);
		pass();
		command(&c, 2, true);
		if (cases[i].reading == CHANNEL_READ_KEEP)
			finish(&c, cases[i].reading); /* what the leader wrote is never given up */
		say(cases[i].to_stderr ? c.err : c.out, "lost", 4);
		if (cases[i].reading == CHANNEL_READ_KILLED)
			finish(&c, cases[i].reading);
		look(&c, cases[i].limit_ms);
		cr_assert(c.done);
		pass();
		f = h2_peer_next(&peer);
		cr_assert(f.kind == END && f.req_id == 2 && f.truncated == cases[i].truncated, "%zu", i);
		h2_peer_stop(&peer);
	}
}

Test(sched, buffered_output_leaves_after_the_end_in_order_and_capped)
{
	static uint8_t bytes[60000];
	struct command c;
	size_t got[3] = {0};
	struct h2_peer_frame f;

	start(1 << 20);
	command(&c, 9, false);
	for (int i = 0; i < 5; i++) {
		say(c.out, bytes, sizeof bytes);
		say(c.err, "e", 1);
		pass();
	}
	cr_assert_eq(h2_peer_next(&peer).kind, 0, "nothing leaves before the end");
	finish(&c, CHANNEL_READ_EMPTY);
	for (int i = 0; i < 50; i++)
		pass();
	cr_assert(c.done);
	while ((f = h2_peer_next(&peer)).kind == CHUNK) {
		cr_assert_leq(f.size, LIMIT_CHUNK_DATA);
		got[f.stream] += f.size;
	}
	cr_assert_eq(f.kind, END);
	cr_assert(got[1] == 5 * sizeof bytes && got[2] == 5);
	h2_peer_stop(&peer);
}

Test(sched, small_buffered_output_is_one_chunk_a_stream)
{
	struct command c;

	start(65535);
	command(&c, 9, false);
	for (int i = 0; i < 20; i++) {
		say(c.out, "line\n", 5);
		pass();
	}
	say(c.err, "e", 1);
	finish(&c, CHANNEL_READ_EMPTY);
	for (int i = 0; i < 5; i++)
		pass();
	cr_assert_eq(h2_peer_next(&peer).size, 100);
	cr_assert_eq(h2_peer_next(&peer).size, 1);
	cr_assert_eq(h2_peer_next(&peer).kind, END);
	h2_peer_stop(&peer);
}

Test(sched, a_buffered_command_is_read_while_the_peer_stalls)
{
	static uint8_t bytes[65536];
	struct command c;
	size_t total = 0;

	start(65535);
	peer.socket_room = 0;
	command(&c, 9, false);
	for (int i = 0; i < 400; i++) {
		ssize_t n = write(c.out, bytes, sizeof bytes);

		total += n > 0 ? (size_t)n : 0;
		pass();
	}
	cr_assert_gt(total, LIMIT_BUFFERED + 100000);
	cr_assert_leq(c.output.pipe[0].waiting, LIMIT_BUFFERED);
	h2_peer_stop(&peer);
}

Test(sched, ends_our_side_only_when_told_and_after_everything)
{
	struct command c;

	start(65535);
	command(&c, 1, true);
	say(c.out, "x", 1);
	finish(&c, CHANNEL_READ_EMPTY);
	pass();
	cr_assert_not(peer.ended);
	h2.finish = true;
	pass();
	cr_assert(peer.ended);
	cr_assert_eq(h2_peer_next(&peer).kind, CHUNK);
	cr_assert_eq(h2_peer_next(&peer).kind, END);
	h2_peer_stop(&peer);
}

Test(sched, pings_are_acknowledged_while_the_window_is_shut)
{
	static uint8_t bytes[65536];
	struct command c;

	start(65535);
	command(&c, 1, true);
	while (write(c.out, bytes, sizeof bytes) > 0)
		;
	pass();
	pass();
	nghttp2_submit_ping(peer.session, NGHTTP2_FLAG_NONE, NULL);
	h2_peer_exchange(&peer);
	pass();
	cr_assert_eq(peer.pings, 1);
	h2_peer_stop(&peer);
}

Test(sched, forgetting_a_running_exec_leaves_nothing_behind)
{
	struct command c;

	start(65535);
	command(&c, 1, true);
	say(c.out, "x", 1);
	sched_forget(&sched, &c.output);
	cr_assert_null(sched.ring);
	say(peer.loop.epfd >= 0 ? c.err : -1, "", 0);
	pass();
	cr_assert_eq(h2_peer_next(&peer).kind, 0);
	h2_peer_stop(&peer);
}
