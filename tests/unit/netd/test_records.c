/* netd's side of the channel, with the test as execd at its other end and a relay in memory behind it. */
#include "netd/records.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/fd.h"
#include "tests/lib/h2_peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

H2_PEER_TRANSPORT

enum { HELLO = 1, HEARTBEAT, CHUNK, END, ERROR };

static struct h2_peer peer;
static struct h2 h2;
static struct sched sched;
static struct records records;
static struct settings settings;
static struct channel execd;
static uint8_t buf[LIMIT_RECORD];
static struct channel_record got;

static void start(void)
{
	uint64_t now = clock_now_ms();
	int ours, theirs;

	cr_assert_eq(channel_pair(&ours, &theirs), 0);
	settings_init(&settings);
	records_init(&records, theirs, &settings);
	h2_peer_start(&peer, &h2, &sched, 65535, records_output_done, &records, now);
	sched.quiet = records_output_quiet;
	cr_assert_eq(h2_peer_next(&peer).kind, HELLO);
	records.channel.phase = CHANNEL_PHASE_ATTACHED;
	execd = (struct channel){.fd = ours, .receives = CHANNEL_TO_EXECD, .phase = CHANNEL_PHASE_ATTACHED};
	cr_assert_eq(records_run(&records, &peer.loop, &sched), 0);
}

static int pass(void)
{
	int err;

	loop_pass(&peer.loop, 0);
	err = records_pass(&records, clock_now_ms());
	cr_assert_eq(sched_send(&sched, clock_now_ms()), 0);
	h2_peer_exchange(&peer);
	return err;
}

/* The next record that is not ALIVE, in got; 0: none. */
static enum channel_type next(void)
{
	const char *why = "";
	int n;

	do {
		n = channel_receive(&execd, buf, &got, &why);
		cr_assert(n != -EPROTO, "%s", why);
	} while (n == 1 && got.h.type == CHANNEL_ALIVE);
	return n == 1 ? got.h.type : 0;
}

static void say(enum channel_type type, uint64_t req_id, const void *block, size_t size)
{
	cr_assert_eq(channel_send(&execd, type, 0, req_id, block, size, NULL, 0), 0);
	records.readable = true;
}

static void say_outcome(enum channel_type type, uint64_t req_id, enum outcome_kind kind, uint32_t value)
{
	uint8_t block[CHANNEL_OUTCOME_BLOCK];

	channel_encode_outcome(block, &(struct outcome){kind, value});
	say(type, req_id, block, sizeof block);
}

static void say_ended(uint64_t req_id, struct outcome outcome, enum channel_reading reading)
{
	uint8_t block[CHANNEL_ENDED_BLOCK];

	channel_encode_ended(block, &(struct channel_ended){.outcome = outcome, .reading = reading});
	say(CHANNEL_ENDED, req_id, block, sizeof block);
}

static uint8_t *put_varint(uint8_t *at, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	return at;
}

/* A ServerFrame with an Exec whose command and stdin are so long, handed to records. */
static int exec(uint64_t req_id, size_t command_len, size_t in_len)
{
	uint8_t *message = malloc(command_len + in_len + 64), *body = message + 32, *at = body, *start;
	size_t size;

	at = put_varint(put_varint(at, 1 << 3), req_id);
	at = put_varint(put_varint(at, 2 << 3 | 2), command_len);
	memset(at, 'c', command_len);
	at = put_varint(put_varint(at + command_len, 3 << 3 | 2), in_len);
	memset(at, 'i', in_len);
	at += in_len;
	size = (size_t)(at - body);
	start = message;
	start = put_varint(put_varint(start, 1 << 3 | 2), size);
	memmove(start, body, size);
	return records_message(&records, message, (size_t)(start - message) + size);
}

static int abort_id(uint64_t req_id)
{
	uint8_t *message = malloc(16), *at = message + 2;

	at = put_varint(put_varint(at, 1 << 3), req_id);
	message[0] = 2 << 3 | 2;
	message[1] = (uint8_t)(at - message - 2);
	return records_message(&records, message, (size_t)(at - message));
}

Test(records, an_exec_runs_from_its_message_to_drained)
{
	struct channel_exec e;
	struct channel_drained d;
	struct h2_peer_frame f;
	int in[2], out[2], err[2];

	start();
	cr_assert_eq(exec(7, 100, 1000), 0);
	cr_assert_eq(next(), CHANNEL_EXEC);
	cr_assert_eq(got.h.req_id, 7);
	cr_assert_eq(channel_decode_exec(&got.h, got.body, &e), 0);
	cr_assert(e.command_len == 100 && e.stdin_len == 1000 && e.bad == 0);
	cr_assert(got.h.flags == CHANNEL_INLINE && got.body[CHANNEL_EXEC_BLOCK] == 'c');
	cr_assert_eq(input_held(), 1100);
	say(CHANNEL_ADMITTED, 7, NULL, 0);
	cr_assert_eq(pass(), 0);
	cr_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
	fd_set_nonblock(in[1], true);
	fd_set_nonblock(out[0], true);
	fd_set_nonblock(err[0], true);
	cr_assert_eq(
	    channel_send_fds(&execd, CHANNEL_STARTED, 0, 7, NULL, 0, (int[]){in[1], out[0], err[0]}, 3), 0);
	close(in[1]);
	close(out[0]);
	close(err[0]);
	records.readable = true;
	cr_assert_eq(pass(), 0);
	cr_assert_eq(read(in[0], buf, sizeof buf), 1000);
	cr_assert_eq(read(in[0], buf, sizeof buf), 0, "end of file");
	cr_assert_eq(write(out[1], "hello", 5), 5);
	close(out[1]);
	close(err[1]);
	say_ended(7, (struct outcome){OUTCOME_EXITED, 9}, CHANNEL_READ_KEEP);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(pass(), 0);
	cr_assert_eq(next(), CHANNEL_DRAINED);
	cr_assert(got.h.req_id == 7 && got.h.flags == 0);
	channel_decode_drained(got.body, &d);
	cr_assert(d.bytes_out == 5 && d.bytes_dropped == 0);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == CHUNK && f.size == 5);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == END && f.req_id == 7 && f.exit_code == 9);
	cr_assert_eq(input_held(), 0);
	cr_assert_null(works_find(&records.works, 7));
}

/* Runs exec id, whose standard output and error the test writes to ret_out and ret_err. */
static void run(uint64_t id, int *ret_out, int *ret_err)
{
	int in[2], out[2], err[2];

	cr_assert_eq(exec(id, 10, 0), 0);
	cr_assert_eq(next(), CHANNEL_EXEC);
	say(CHANNEL_ADMITTED, id, NULL, 0);
	cr_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
	fd_set_nonblock(out[0], true);
	fd_set_nonblock(err[0], true);
	cr_assert_eq(
	    channel_send_fds(&execd, CHANNEL_STARTED, 0, id, NULL, 0, (int[]){in[1], out[0], err[0]}, 3), 0);
	close(in[0]);
	close(in[1]);
	close(out[0]);
	close(err[0]);
	records.readable = true;
	cr_assert_eq(pass(), 0);
	*ret_out = out[1];
	*ret_err = err[1];
}

Test(records, what_is_left_behind_is_quiet_before_the_end)
{
	struct h2_peer_frame f;
	int out, err;

	start();
	run(7, &out, &err);
	say(CHANNEL_LEFT, 7, NULL, 0);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(pass(), 0);
	cr_assert_eq(next(), 0, "the pipes are open");
	cr_assert_eq(write(out, "late", 4), 4);
	close(out);
	close(err);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(pass(), 0);
	cr_assert_eq(next(), CHANNEL_QUIET);
	cr_assert(got.h.req_id == 7 && records_ready(&records));
	say_ended(7, (struct outcome){OUTCOME_EXITED, 9}, CHANNEL_READ_EMPTY);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(pass(), 0);
	cr_assert_eq(next(), CHANNEL_DRAINED);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == CHUNK && f.size == 4);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == END && f.exit_code == 9 && !f.truncated);
}

Test(records, an_end_that_comes_first_needs_no_quiet)
{
	int out, err;

	start();
	run(7, &out, &err);
	say(CHANNEL_LEFT, 7, NULL, 0);
	cr_assert_eq(pass(), 0);
	say_ended(7, (struct outcome){OUTCOME_EXITED, 9}, CHANNEL_READ_EMPTY);
	cr_assert_eq(pass(), 0);
	cr_assert_eq(next(), CHANNEL_DRAINED);
	cr_assert_eq(next(), 0);
	cr_assert(records_ready(&records));
}

Test(records, answers_other_than_admitted_forget_the_exec)
{
	struct h2_peer_frame f;

	start();
	for (uint64_t id = 1; id <= 3; id++)
		cr_assert_eq(exec(id, 10, 10), 0);
	for (uint64_t id = 1; id <= 3; id++)
		cr_assert_eq(next(), CHANNEL_EXEC);
	say(CHANNEL_DUPLICATE, 1, NULL, 0);
	say_outcome(CHANNEL_REPLAY, 2, OUTCOME_EXITED, 5);
	say_outcome(CHANNEL_REFUSED, 3, OUTCOME_REFUSED, REFUSAL_QUEUE_FULL);
	cr_assert_eq(pass(), 0);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == END && f.req_id == 2 && f.exit_code == 5);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == ERROR && f.req_id == 3 && strcmp(f.message, "busy: queue full") == 0);
	cr_assert_eq(h2_peer_next(&peer).kind, 0, "a duplicate is dropped in silence");
	cr_assert_eq(input_held(), 0);
}

Test(records, a_replay_says_truncated_when_told)
{
	uint8_t block[CHANNEL_OUTCOME_BLOCK];
	struct h2_peer_frame f;

	start();
	exec(2, 10, 0);
	channel_encode_outcome(block, &(struct outcome){OUTCOME_EXITED, 0});
	channel_send(&execd, CHANNEL_REPLAY, CHANNEL_TRUNCATED, 2, block, sizeof block, NULL, 0);
	records.readable = true;
	cr_assert_eq(pass(), 0);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == END && f.truncated);
}

/* It waited for the proof of its earlier run, and is answered by what that came to. */
Test(records, an_end_of_what_did_not_run_says_truncated_when_told)
{
	uint8_t block[CHANNEL_ENDED_BLOCK];
	struct h2_peer_frame f;

	start();
	exec(2, 10, 0);
	say(CHANNEL_ADMITTED, 2, NULL, 0);
	channel_encode_ended(block, &(struct channel_ended){.outcome = {OUTCOME_ABORTED, 0}});
	channel_send(&execd, CHANNEL_ENDED, CHANNEL_TRUNCATED, 2, block, sizeof block, NULL, 0);
	cr_assert_eq(pass(), 0);
	f = h2_peer_next(&peer);
	cr_assert(f.kind == END && f.exit_code == -1 && f.truncated);
}

Test(records, what_cannot_run_is_sent_as_bad_and_not_held)
{
	struct channel_exec e;
	uint8_t *message;

	start();
	cr_assert_eq(exec(1, LIMIT_COMMAND + 1, 0), 0);
	cr_assert_eq(next(), CHANNEL_EXEC);
	cr_assert_eq(channel_decode_exec(&got.h, got.body, &e), 0);
	cr_assert_eq(e.bad, REFUSAL_COMMAND_LONG);
	message = malloc(16);
	memcpy(message, "\x0a\x07\x08\x02\x12\x03x\0y", 9);
	cr_assert_eq(records_message(&records, message, 9), 0);
	cr_assert_eq(next(), CHANNEL_EXEC);
	cr_assert_eq(channel_decode_exec(&got.h, got.body, &e), 0);
	cr_assert(got.h.req_id == 2 && e.bad == REFUSAL_COMMAND_NUL);
	message = malloc(16);
	memcpy(message, "\x0a\x04\x08\x03\x12\x05", 6);
	cr_assert_eq(records_message(&records, message, 6), 0);
	cr_assert_eq(next(), CHANNEL_EXEC);
	cr_assert_eq(channel_decode_exec(&got.h, got.body, &e), 0);
	cr_assert(got.h.req_id == 3 && e.bad == REFUSAL_MALFORMED);
	cr_assert_eq(input_held(), 0);
}

Test(records, memory_is_refused_at_the_limit)
{
	struct channel_exec e;

	start();
	for (uint64_t id = 1; id <= 4; id++) {
		cr_assert_eq(exec(id, LIMIT_COMMAND, LIMIT_STDIN), 0);
		cr_assert_eq(next(), CHANNEL_EXEC);
		say(CHANNEL_ADMITTED, id, NULL, 0);
		cr_assert_eq(pass(), 0);
	}
	cr_assert_eq(input_held(), LIMIT_HELD);
	cr_assert_eq(exec(5, 1, 0), 0);
	cr_assert_eq(next(), CHANNEL_EXEC);
	cr_assert_eq(channel_decode_exec(&got.h, got.body, &e), 0);
	cr_assert_eq(e.bad, REFUSAL_MEMORY);
	say_ended(1, (struct outcome){OUTCOME_ABORTED, 0}, CHANNEL_READ_NOTHING);
	say_outcome(CHANNEL_REFUSED, 5, OUTCOME_REFUSED, REFUSAL_MEMORY);
	cr_assert_eq(pass(), 0);
	cr_assert_eq(input_held(), LIMIT_HELD - LIMIT_STDIN - LIMIT_COMMAND);
	cr_assert_eq(next(), CHANNEL_DRAINED);
	cr_assert_eq(exec(6, 1, 0), 0);
	cr_assert_eq(next(), CHANNEL_EXEC);
	cr_assert_eq(channel_decode_exec(&got.h, got.body, &e), 0);
	cr_assert_eq(e.bad, 0);
}

Test(records, a_long_command_is_fetched_piece_by_piece)
{
	uint8_t offset[4];
	size_t at = 0, pieces = 0, n;

	start();
	cr_assert_eq(exec(1, 200000, 0), 0);
	cr_assert_eq(next(), CHANNEL_EXEC);
	cr_assert_eq(got.h.flags & CHANNEL_INLINE, 0);
	say(CHANNEL_ADMITTED, 1, NULL, 0);
	do {
		buf_put_u32(offset, (uint32_t)at);
		say(CHANNEL_FETCH, 1, offset, sizeof offset);
		cr_assert_eq(pass(), 0);
		cr_assert_eq(next(), CHANNEL_COMMAND);
		cr_assert_eq(buf_get_u32(got.body), at);
		n = got.h.len - CHANNEL_COMMAND_BLOCK;
		at += n;
		pieces += n > 0;
	} while (n > 0);
	cr_assert_eq(at, 200000);
	cr_assert_eq(pieces, (200000 + CHANNEL_PIECE_MAX - 1) / CHANNEL_PIECE_MAX);
}

Test(records, inline_is_up_to_what_a_record_holds)
{
	start();
	for (uint64_t i = 0; i < 3; i++) {
		cr_assert_eq(exec(i, CHANNEL_INLINE_MAX - 1 + i, 0), 0);
		cr_assert_eq(next(), CHANNEL_EXEC);
		cr_assert_eq(got.h.flags & CHANNEL_INLINE, i < 2 ? CHANNEL_INLINE : 0);
	}
}

/* Fills the channel towards execd by aborts until one has to wait. */
static unsigned fill_channel(void)
{
	unsigned n = 0;

	while (records_ready(&records)) {
		cr_assert_eq(abort_id(n), 0);
		cr_assert_lt(++n, 100000);
	}
	return n;
}

Test(records, a_full_channel_holds_one_server_frame_and_stops_the_reading)
{
	unsigned n, seen = 0;

	start();
	n = fill_channel();
	cr_assert_gt(n, 10);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(pass(), 0);
	cr_assert_not(records_ready(&records));
	while (next() == CHANNEL_ABORT)
		cr_assert_eq(got.h.req_id, seen++);
	cr_assert_eq(seen, n - 1);
	cr_assert_eq(pass(), 0);
	cr_assert_eq(next(), CHANNEL_ABORT);
	cr_assert_eq(got.h.req_id, n - 1);
	cr_assert(records_ready(&records));
}

Test(records, drained_waits_for_room_before_any_other_server_frame)
{
	unsigned n, seen = 0;

	start();
	cr_assert_eq(exec(1000000, 10, 0), 0);
	cr_assert_eq(next(), CHANNEL_EXEC);
	say(CHANNEL_ADMITTED, 1000000, NULL, 0);
	cr_assert_eq(pass(), 0);
	n = fill_channel();
	say_ended(1000000, (struct outcome){OUTCOME_ABORTED, 0}, CHANNEL_READ_NOTHING);
	cr_assert_eq(pass(), 0);
	cr_assert_eq(h2_peer_next(&peer).kind, END, "the frame does not wait for the channel");
	cr_assert_not(records_ready(&records));
	while (next() == CHANNEL_ABORT)
		seen++;
	cr_assert_eq(pass(), 0);
	cr_assert_eq(next(), CHANNEL_DRAINED, "before the abort that waits");
	cr_assert_eq(next(), CHANNEL_ABORT);
	cr_assert_eq(seen + 1, n);
	cr_assert(records_ready(&records));
}

/* It is owed until there is room, unless the end comes first. */
Test(records, quiet_waits_for_room)
{
	for (int ended = 0; ended < 2; ended++) {
		unsigned seen = 0, n;
		int out, err;

		start();
		run(1000000, &out, &err);
		say(CHANNEL_LEFT, 1000000, NULL, 0);
		cr_assert_eq(pass(), 0);
		n = fill_channel();
		close(out);
		close(err);
		cr_assert_eq(pass(), 0);
		cr_assert_not(records_ready(&records));
		if (ended)
			say_ended(1000000, (struct outcome){OUTCOME_EXITED, 9}, CHANNEL_READ_EMPTY);
		cr_assert_eq(pass(), 0);
		while (next() == CHANNEL_ABORT)
			seen++;
		cr_assert_eq(pass(), 0);
		cr_assert_eq(next(), ended ? CHANNEL_DRAINED : CHANNEL_QUIET, "before the abort that waits");
		cr_assert_eq(next(), CHANNEL_ABORT);
		cr_assert_eq(seen + 1, n);
		cr_assert(records_ready(&records));
	}
}

Test(records, unanswered_execs_have_a_limit)
{
	start();
	for (uint64_t i = 0; i < WORK_ASKED_MAX; i++) {
		cr_assert(records_ready(&records));
		cr_assert_eq(exec(i, 1, 0), 0);
	}
	cr_assert(records_ready(&records));
	cr_assert_eq(exec(WORK_ASKED_MAX, 1, 0), 0);
	cr_assert_not(records_ready(&records));
	for (uint64_t i = 0; i < WORK_ASKED_MAX; i++)
		cr_assert_eq(next(), CHANNEL_EXEC);
	cr_assert_eq(next(), 0);
	say(CHANNEL_DUPLICATE, 0, NULL, 0);
	cr_assert_eq(pass(), 0);
	cr_assert_eq(next(), CHANNEL_EXEC);
	cr_assert_eq(got.h.req_id, WORK_ASKED_MAX);
	cr_assert(records_ready(&records));
}

static void violates(enum channel_type type, uint64_t req_id, const void *block, size_t size)
{
	start();
	say(type, req_id, block, size);
	cr_assert_eq(pass(), -EPROTO, "%s", channel_type_name(type));
	cr_assert(records.lost);
}

Test(records, a_record_that_does_not_fit_the_state_is_a_violation)
{
	uint8_t ended[CHANNEL_ENDED_BLOCK] = {OUTCOME_ABORTED}, offset[4] = {0};
	int p[2], out, err;

	violates(CHANNEL_ADMITTED, 1, NULL, 0);
	violates(CHANNEL_DUPLICATE, 1, NULL, 0);
	violates(CHANNEL_ENDED, 1, ended, sizeof ended);
	violates(CHANNEL_LEFT, 1, NULL, 0);
	violates(CHANNEL_FETCH, 1, offset, sizeof offset);
	violates(CHANNEL_JAIL, 0, NULL, 0);
	start();
	exec(1, 1, 0);
	say(CHANNEL_ADMITTED, 2, NULL, 0);
	cr_assert_eq(pass(), -EPROTO, "not the one that was asked");
	start();
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	channel_send_fds(&execd, CHANNEL_STARTED, 0, 1, NULL, 0, (int[]){p[0], p[0], p[0]}, 3);
	records.readable = true;
	cr_assert_eq(pass(), -EPROTO);
	start();
	run(1, &out, &err);
	say(CHANNEL_LEFT, 1, NULL, 0);
	say(CHANNEL_LEFT, 1, NULL, 0);
	cr_assert_eq(pass(), -EPROTO, "twice");
	start();
	run(1, &out, &err);
	say_ended(1, (struct outcome){OUTCOME_EXITED, 9}, CHANNEL_READ_KEEP);
	say(CHANNEL_LEFT, 1, NULL, 0);
	cr_assert_eq(pass(), -EPROTO, "after the end");
}

Test(records, the_end_of_the_channel_is_seen)
{
	start();
	close(execd.fd);
	records.readable = true;
	cr_assert_lt(pass(), 0);
	cr_assert(records.lost);
}

Test(records, more_answers_than_the_control_queue_holds_end_the_connection)
{
	start();
	peer.socket_room = 0;
	for (uint64_t i = 0; i <= LIMIT_CONTROL_FRAMES; i++) {
		cr_assert_eq(records.fault, 0, "after %u", (unsigned)i);
		cr_assert_eq(exec(i, 1, 0), 0);
		say_outcome(CHANNEL_REFUSED, i, OUTCOME_REFUSED, REFUSAL_QUEUE_FULL);
		cr_assert_eq(pass(), 0);
		while (next())
			;
	}
	cr_assert_eq(records.fault, CHANNEL_CLOSE_FLOOD);
	cr_assert_str_eq(records.fault_why, "more answers wait than the limit allows");
}

/* epoll takes no regular file. */
Test(records, pipes_that_cannot_be_watched_are_told_as_that)
{
	int file = memfd_create("no pipe", MFD_CLOEXEC);

	start();
	cr_assert_eq(exec(1, 1, 0), 0);
	say(CHANNEL_ADMITTED, 1, NULL, 0);
	cr_assert_eq(channel_send_fds(&execd, CHANNEL_STARTED, 0, 1, NULL, 0, (int[]){file, file, file}, 3),
		     0);
	records.readable = true;
	cr_assert_eq(pass(), 0);
	cr_assert_eq(records.fault, CHANNEL_CLOSE_INTERNAL);
	cr_assert_str_eq(records.fault_why, "a command's pipes cannot be watched");
	close(file);
}

Test(records, drain_is_remembered)
{
	start();
	say(CHANNEL_DRAIN, 0, NULL, 0);
	cr_assert_eq(pass(), 0);
	cr_assert(records.drain);
}

Test(records, start_up_takes_settings_then_credentials)
{
	const char *why = "";
	int ours, theirs;

	cr_assert_eq(channel_pair(&ours, &theirs), 0);
	settings_init(&settings);
	records_init(&records, theirs, &settings);
	execd = (struct channel){.fd = ours, .receives = CHANNEL_TO_EXECD, .phase = CHANNEL_PHASE_JAILING};
	channel_send(&execd, CHANNEL_SET, CHANNEL_KEY_SANDBOX_ID, 0, "box", 3, NULL, 0);
	channel_send(&execd, CHANNEL_JAIL, 0, 0, NULL, 0, NULL, 0);
	cr_assert_eq(records_await(&records, CHANNEL_JAIL), 0);
	cr_assert_str_eq(settings.sandbox_id, "box");
	cr_assert_eq(records_say(&records, CHANNEL_JAILED), 0);
	cr_assert_eq(channel_receive(&execd, buf, &got, &why), 1);
	cr_assert_eq(got.h.type, CHANNEL_JAILED);
	channel_send(&execd, CHANNEL_SET, CHANNEL_KEY_TOKEN, 0, "tok", 3, NULL, 0);
	channel_send(&execd, CHANNEL_DIAL, 0, 0, NULL, 0, NULL, 0);
	cr_assert_eq(records_await(&records, CHANNEL_DIAL), 0);
	cr_assert_str_eq(settings.token, "tok");
	cr_assert_null(memmem(records.buf, sizeof records.buf, "tok", 3), "no second copy");
	close(ours);
	cr_assert_eq(records_await(&records, CHANNEL_DIAL), -EPIPE);
}

Test(records, a_token_before_the_jail_is_a_violation)
{
	int ours, theirs;

	cr_assert_eq(channel_pair(&ours, &theirs), 0);
	settings_init(&settings);
	records_init(&records, theirs, &settings);
	execd = (struct channel){.fd = ours, .receives = CHANNEL_TO_EXECD};
	channel_send(&execd, CHANNEL_SET, CHANNEL_KEY_TOKEN, 0, "tok", 3, NULL, 0);
	cr_assert_eq(records_await(&records, CHANNEL_JAIL), -EPROTO);
	cr_assert_eq(settings.token[0], '\0');
}
