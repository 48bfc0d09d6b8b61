#include "netd/output.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct loop loop;
static struct output o;
static int out[2], err[2]; /* pipes: the command's ends are [1] */

static void ready(struct loop_source *source, uint32_t events)
{
	struct output_pipe *p = source->owner;

	(void)events;
	p->readable = true;
}

static void begin(bool streaming)
{
	int fds[2];

	cr_assert_eq(loop_init(&loop), 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(err, O_CLOEXEC), 0);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	fds[0] = out[0];
	fds[1] = err[0];
	cr_assert_eq(output_open(&o, &loop, 7, streaming, fds, ready), 0);
}

static void ended(enum channel_reading reading, uint64_t now_ms, uint64_t open_ms)
{
	struct channel_ended how = {
	    .outcome = {OUTCOME_EXITED, 0},
	    .reading = reading,
	};

	output_end(&o, &how, now_ms, open_ms);
}

static ssize_t take(size_t most, uint64_t now_ms, uint64_t open_ms)
{
	static uint8_t at[1 << 16];
	struct iovec iov = {at, most};

	return output_take(&o.pipe[0], &iov, 1, now_ms, open_ms);
}

static bool enough(uint64_t now_ms, uint64_t open_ms)
{
	uint64_t wait;

	return output_read_enough(&o, now_ms, open_ms, &wait);
}

static void say(const char *text)
{
	cr_assert_eq(write(out[1], text, strlen(text)), (ssize_t)strlen(text));
}

Test(output, at_the_end_of_both_pipes_nothing_more_is_read)
{
	begin(true);
	say("x");
	close(out[1]);
	close(err[1]);
	ended(CHANNEL_READ_KEEP, 0, 0);
	cr_assert_not(enough(0, 0), "a byte is left");
	cr_assert_eq(take(100, 0, 0), 1);
	cr_assert_not(enough(0, 0));
	cr_assert_eq(take(100, 0, 0), 0);
	cr_assert(enough(0, 0));
	output_free(&o);
}

Test(output, keep_waits_for_500_ms_of_quiet_on_the_clock_of_the_open_window)
{
	begin(true);
	ended(CHANNEL_READ_KEEP, 1000, 100);
	cr_assert_not(enough(1000, 100));
	cr_assert_not(enough(99999, 100), "a shut window's time does not count");
	cr_assert_not(enough(99999, 599));
	cr_assert(enough(99999, 600));
	say("x");
	loop_pass(&loop, 100);
	cr_assert_not(enough(99999, 600), "not quiet: there is something to read");
	cr_assert_eq(take(100, 99999, 700), 1);
	cr_assert_eq(take(100, 99999, 700), -EAGAIN);
	cr_assert_not(enough(99999, 1199));
	cr_assert(enough(99999, 1200), "quiet counts from the last byte");
	output_free(&o);
}

Test(output, keep_says_when_to_look_again)
{
	uint64_t wait = 0;

	begin(true);
	ended(CHANNEL_READ_KEEP, 1000, 100);
	cr_assert_not(output_read_enough(&o, 1000, 100, &wait));
	cr_assert_eq(wait, LIMIT_QUIET_MS);
	cr_assert_not(output_read_enough(&o, 1000, 400, &wait));
	cr_assert_eq(wait, LIMIT_QUIET_MS - 300);
	output_free(&o);
}

Test(output, keep_ends_after_5_s_of_open_window_however_much_comes)
{
	begin(true);
	ended(CHANNEL_READ_KEEP, 0, 0);
	for (uint64_t open = 0; open < LIMIT_LINGER_MS; open += 100) {
		say("y\n");
		loop_pass(&loop, 100);
		cr_assert_not(enough(0, open));
		cr_assert_eq(take(100, 0, open), 2);
	}
	say("y\n");
	loop_pass(&loop, 100);
	cr_assert_not(enough(0, LIMIT_LINGER_MS - 1));
	cr_assert(enough(0, LIMIT_LINGER_MS));
	output_stop(&o);
	cr_assert_eq(output_dropped(&o), 2);
	cr_assert(output_truncated(&o), "what stood in the pipe before the answer is lost");
	output_free(&o);
}

/* The timer may come before the loop has told of the bytes. */
Test(output, keep_is_not_quiet_while_there_is_something_that_nobody_has_told_of)
{
	begin(true);
	ended(CHANNEL_READ_KEEP, 0, 0);
	cr_assert_eq(take(100, 0, 0), -EAGAIN);
	say("late");
	cr_assert_not(enough(0, LIMIT_QUIET_MS));
	cr_assert(o.pipe[0].readable);
	cr_assert_eq(take(100, 0, LIMIT_QUIET_MS), 4);
	cr_assert_eq(take(100, 0, LIMIT_QUIET_MS), -EAGAIN);
	cr_assert(enough(0, 2 * LIMIT_QUIET_MS));
	output_stop(&o);
	cr_assert_eq(output_dropped(&o), 0);
	output_free(&o);
}

/* kill: the same time, then the same pipes once more when all are dead. */
Test(output, what_is_left_behind_has_the_time_of_keep_and_is_then_read_until_empty)
{
	begin(true);
	output_left(&o, 0, 0);
	cr_assert_not(enough(0, LIMIT_QUIET_MS - 1));
	cr_assert(enough(0, LIMIT_QUIET_MS));
	say("last words");
	ended(CHANNEL_READ_EMPTY, 0, LIMIT_QUIET_MS);
	cr_assert_not(enough(0, LIMIT_QUIET_MS));
	cr_assert_eq(take(100, 0, LIMIT_QUIET_MS), 10);
	cr_assert(enough(0, LIMIT_QUIET_MS));
	output_stop(&o);
	cr_assert_eq(output_dropped(&o), 0);
	output_free(&o);
}

Test(output, the_end_of_both_pipes_ends_the_time_of_what_is_left_behind)
{
	begin(true);
	output_left(&o, 0, 0);
	cr_assert_not(enough(0, 0));
	close(out[1]);
	close(err[1]);
	cr_assert_eq(take(100, 0, 0), 0);
	o.pipe[1].readable = true;
	cr_assert_eq(output_take(&o.pipe[1], &(struct iovec){(char[1]){0}, 1}, 1, 0, 0), 0);
	cr_assert(enough(0, 0));
	output_free(&o);
}

Test(output, what_the_leader_left_is_read_whatever_the_clock_says)
{
	begin(true);
	say("0123456789");
	ended(CHANNEL_READ_KEEP, 0, 0);
	cr_assert_not(enough(0, 10 * LIMIT_LINGER_MS));
	cr_assert_eq(take(9, 0, 0), 9);
	cr_assert_not(enough(0, 10 * LIMIT_LINGER_MS));
	say("more of a server's"); /* keeps the pipe from ever being dry */
	cr_assert_eq(take(1, 0, 0), 1);
	cr_assert(enough(0, 10 * LIMIT_LINGER_MS));
	output_free(&o);
}

Test(output, empty_never_waits_for_the_end_of_file)
{
	begin(true);
	say("abc");
	ended(CHANNEL_READ_EMPTY, 0, 0);
	cr_assert_not(enough(0, 0));
	cr_assert_eq(take(2, 0, 0), 2);
	cr_assert_not(enough(0, 10 * LIMIT_LINGER_MS), "a byte is left");
	cr_assert_eq(take(100, 0, 0), 1);
	cr_assert(enough(0, 0), "the write ends are still open");
	output_free(&o);
}

Test(output, empty_pipes_are_seen_without_reading_so_a_shut_window_is_no_hindrance)
{
	begin(true);
	ended(CHANNEL_READ_EMPTY, 0, 0);
	cr_assert(enough(0, 0));
	output_free(&o);
}

/* All that the command wrote is in front of it. */
Test(output, who_was_passed_a_write_end_is_neither_waited_for_nor_missed)
{
	static const enum channel_reading readings[] = {CHANNEL_READ_EMPTY, CHANNEL_READ_KILLED};

	for (int i = 0; i < 2; i++) {
		begin(true);
		say("abc");
		ended(readings[i], 0, 0);
		say("somebody else's");
		cr_assert_eq(take(3, 0, 0), 3);
		cr_assert(enough(0, 0));
		output_stop(&o);
		cr_assert_eq(output_dropped(&o), 0);
		output_free(&o);
	}
}

Test(output, killed_is_read_for_2_s_of_open_window_and_the_rest_is_dropped)
{
	begin(true);
	say("0123456789");
	ended(CHANNEL_READ_KILLED, 0, 0);
	cr_assert_not(enough(99999, 0));
	cr_assert_eq(take(4, 0, 0), 4);
	cr_assert_not(enough(99999, LIMIT_AFTER_KILL_MS - 1));
	cr_assert(enough(99999, LIMIT_AFTER_KILL_MS));
	output_stop(&o);
	cr_assert(output_truncated(&o));
	cr_assert_eq(output_dropped(&o), 6);
	cr_assert_eq(o.sent, 4);
	output_free(&o);
}

Test(output, killed_with_nothing_left_has_lost_nothing)
{
	begin(true);
	say("0123");
	ended(CHANNEL_READ_KILLED, 0, 0);
	cr_assert_eq(take(100, 0, 0), 4);
	cr_assert_eq(take(100, 0, 0), -EAGAIN);
	cr_assert(enough(0, 0));
	output_stop(&o);
	cr_assert_not(output_truncated(&o));
	output_free(&o);
}

Test(output, a_cut_stderr_is_not_truncated)
{
	begin(true);
	cr_assert_eq(write(err[1], "e", 1), 1);
	ended(CHANNEL_READ_KILLED, 0, 0);
	cr_assert(enough(0, LIMIT_AFTER_KILL_MS));
	output_stop(&o);
	cr_assert_not(output_truncated(&o));
	cr_assert_eq(output_dropped(&o), 1);
	output_free(&o);
}

/* Writes n bytes through the pipe into the buffer. */
static void absorb(size_t n)
{
	static uint8_t piece[32768];

	while (n > 0) {
		size_t size = n < sizeof piece ? n : sizeof piece;
		ssize_t got = 0;

		memset(piece, (int)(n & 0xff), size);
		cr_assert_eq(write(out[1], piece, size), (ssize_t)size);
		while (got < (ssize_t)size) {
			ssize_t part = output_absorb(&o.pipe[0], 0);

			cr_assert_gt(part, 0);
			got += part;
		}
		n -= size;
	}
}

static size_t take_all(void)
{
	size_t total = 0;
	ssize_t n;

	while ((n = take(32742, 0, 0)) > 0)
		total += (size_t)n;
	return total;
}

Test(output, buffers_8_mib_and_not_a_byte_more)
{
	static const struct {
		size_t size;
		size_t kept;
	} cases[] = {
	    {LIMIT_BUFFERED - 1, LIMIT_BUFFERED - 1},
	    {LIMIT_BUFFERED, LIMIT_BUFFERED},
	    {LIMIT_BUFFERED + 1, LIMIT_BUFFERED},
	    {LIMIT_BUFFERED + 100000, LIMIT_BUFFERED},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(false);
		absorb(cases[i].size);
		cr_assert_eq(output_truncated(&o), cases[i].size > LIMIT_BUFFERED);
		cr_assert_eq(output_dropped(&o), cases[i].size - cases[i].kept);
		cr_assert(output_waiting(&o));
		cr_assert_eq(take_all(), cases[i].kept);
		cr_assert_not(output_waiting(&o));
		cr_assert_null(o.pipe[0].first);
		output_free(&o);
		close(out[1]);
		close(err[1]);
		loop_close(&loop);
	}
}

Test(output, what_is_buffered_goes_by_the_plain_clock)
{
	begin(false);
	ended(CHANNEL_READ_KEEP, 1000, 0);
	cr_assert_not(enough(1000 + LIMIT_QUIET_MS - 1, 999999));
	cr_assert(enough(1000 + LIMIT_QUIET_MS, 0), "its reading needs no window");
	output_free(&o);
}

Test(output, buffered_bytes_survive_the_end_of_reading)
{
	begin(false);
	absorb(100);
	ended(CHANNEL_READ_KILLED, 0, 0);
	cr_assert(enough(0, 0));
	output_stop(&o);
	cr_assert_eq(o.pipe[0].fd, -1);
	cr_assert_eq(take_all(), 100);
	output_free(&o);
}

Test(output, tiny_reads_are_paced_until_the_pipe_is_quiet)
{
	begin(true);
	for (unsigned i = 0; i < OUTPUT_TINY_READS; i++) {
		say("t");
		cr_assert_eq(take(100, 5, 0), 1);
		cr_assert_not(o.pipe[0].paced);
	}
	say("t");
	cr_assert_eq(take(100, 5, 0), 1);
	cr_assert(o.pipe[0].paced);
	cr_assert_eq(o.pipe[0].not_before_ms, 6);
	cr_assert_eq(take(100, 6, 0), -EAGAIN);
	cr_assert_not(o.pipe[0].paced);
	output_free(&o);
}

Test(output, tiny_reads_far_apart_are_not_paced)
{
	begin(true);
	for (unsigned i = 0; i < 4 * OUTPUT_TINY_READS; i++) {
		say("t");
		cr_assert_eq(take(100, i, 0), 1);
		cr_assert_not(o.pipe[0].paced);
	}
	output_free(&o);
}

Test(output, events_of_a_closed_pipe_do_not_come_though_a_duplicate_lives)
{
	int duplicate;

	begin(true);
	duplicate = fcntl(out[0], F_DUPFD_CLOEXEC, 0);
	output_stop(&o);
	say("x");
	cr_assert_eq(loop_pass(&loop, 50), 0);
	cr_assert_not(o.pipe[0].readable);
	close(duplicate);
	output_free(&o);
}
