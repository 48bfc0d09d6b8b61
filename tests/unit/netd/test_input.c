#include "netd/input.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct frames_server exec_of(const uint8_t *command, size_t command_len, const uint8_t *in,
				    size_t in_len)
{
	return (struct frames_server){
	    .kind = FRAMES_EXEC,
	    .has_req_id = true,
	    .command = command,
	    .command_len = command_len,
	    .input = in,
	    .input_len = in_len,
	};
}

/* A message that is command then stdin, held. */
static void hold(struct input *in, size_t command_len, size_t in_len)
{
	size_t size = command_len + in_len;
	uint8_t *message = malloc(size + 1);
	struct frames_server exec;

	memset(message, 'c', command_len);
	for (size_t i = 0; i < in_len; i++)
		message[command_len + i] = (uint8_t)i;
	exec = exec_of(message, command_len, message + command_len, in_len);
	input_hold(in, message, size, &exec);
}

Test(input, fingerprint_is_over_lengths_bytes_timeout_and_streaming)
{
	struct frames_server exec = exec_of((const uint8_t *)"echo hi", 7, (const uint8_t *)"in", 2);
	uint8_t one[CHANNEL_FINGERPRINT], two[CHANNEL_FINGERPRINT];
	/* printf '\7\0\0\0\0\0\0\0echo hi\2\0\0\0\0\0\0\0in\12\0\0\0\1' | sha256sum */
	static const uint8_t want[CHANNEL_FINGERPRINT] = {
	    0xf9, 0x7f, 0xde, 0x2a, 0x0d, 0x15, 0x2d, 0xfb, 0xf3, 0xa2, 0xdd, 0x68, 0x14, 0x71, 0xdc, 0xa6,
	    0x5d, 0x1d, 0xce, 0xfb, 0xcf, 0xa4, 0xc2, 0xdf, 0x43, 0x4f, 0x49, 0xb4, 0xa9, 0xbb, 0xae, 0xfe,
	};

	exec.timeout_s = 10;
	exec.streaming = true;
	cr_assert_eq(input_fingerprint(&exec, one), 0);
	cr_assert_eq(memcmp(one, want, sizeof want), 0);
	exec.timeout_s = 11;
	input_fingerprint(&exec, two);
	cr_assert_neq(memcmp(one, two, sizeof one), 0);
	exec.timeout_s = 10;
	exec.streaming = false;
	input_fingerprint(&exec, two);
	cr_assert_neq(memcmp(one, two, sizeof one), 0);
	exec = exec_of((const uint8_t *)"echo hii", 8, (const uint8_t *)"n", 1);
	exec.timeout_s = 10;
	exec.streaming = true;
	input_fingerprint(&exec, two);
	cr_assert_neq(memcmp(one, two, sizeof one), 0, "a byte moved from stdin to the command");
}

Test(input, refuses_what_cannot_be_run_at_its_limit_and_not_below)
{
	static uint8_t command[LIMIT_COMMAND + 1];
	struct frames_server exec;

	memset(command, 'x', sizeof command);
	exec = exec_of(command, LIMIT_COMMAND - 1, NULL, 0);
	cr_assert_eq(input_check(&exec), 0);
	exec.command_len = LIMIT_COMMAND;
	cr_assert_eq(input_check(&exec), 0);
	exec.command_len = LIMIT_COMMAND + 1;
	cr_assert_eq(input_check(&exec), REFUSAL_COMMAND_LONG);
	exec = exec_of(command, 4, command, LIMIT_STDIN);
	cr_assert_eq(input_check(&exec), 0);
	exec.input_len = LIMIT_STDIN + 1;
	cr_assert_eq(input_check(&exec), REFUSAL_STDIN_LONG);
	exec = exec_of((const uint8_t *)"ls\0rm x", 7, NULL, 0);
	cr_assert_eq(input_check(&exec), REFUSAL_COMMAND_NUL);
	exec = exec_of((const uint8_t *)"cat", 3, (const uint8_t *)"\0", 1);
	cr_assert_eq(input_check(&exec), 0, "a NUL in stdin is a byte like any other");
	exec = exec_of(NULL, 0, NULL, 0);
	cr_assert_eq(input_check(&exec), 0, "an empty command is bash's to judge");
}

Test(input, holds_up_to_the_limit_and_not_a_byte_more)
{
	static uint8_t zeros[LIMIT_STDIN];
	struct input in[5];
	struct frames_server exec = exec_of((const uint8_t *)"c", 1, zeros, 0);

	for (int i = 0; i < 3; i++)
		hold(&in[i], LIMIT_COMMAND, LIMIT_STDIN);
	hold(&in[3], LIMIT_COMMAND - 100, LIMIT_STDIN);
	cr_assert_eq(input_held(), LIMIT_HELD - 100);
	exec.input_len = 98;
	cr_assert_eq(input_check(&exec), 0, "below");
	exec.input_len = 99;
	cr_assert_eq(input_check(&exec), 0, "at");
	exec.input_len = 100;
	cr_assert_eq(input_check(&exec), REFUSAL_MEMORY, "above");
	input_drop(&in[0]);
	cr_assert_eq(input_check(&exec), 0, "after one has gone");
	hold(&in[4], 0, 99);
	for (int i = 0; i < 5; i++)
		input_drop(&in[i]);
	cr_assert_eq(input_held(), 0);
	input_drop(&in[0]);
	cr_assert_eq(input_held(), 0, "twice is harmless");
}

Test(input, packs_a_message_that_is_mostly_something_else)
{
	for (int command_first = 0; command_first < 2; command_first++) {
		size_t size = 100000;
		uint8_t *message = calloc(1, size);
		uint8_t *command = message + (command_first ? 50000 : 90000), *bytes = message + 70000;
		struct frames_server exec;
		struct input in;

		memcpy(command, "command", 7);
		memcpy(bytes, "stdin", 5);
		exec = exec_of(command, 7, bytes, 5);
		input_hold(&in, message, size, &exec);
		cr_assert(in.command_len == 7 && memcmp(in.command, "command", 7) == 0);
		cr_assert(in.left == 5 && memcmp(in.bytes, "stdin", 5) == 0);
		cr_assert(in.command >= in.message && in.command + 7 <= in.message + 12);
		cr_assert_eq(input_held(), 12);
		input_drop(&in);
	}
}

static void run_until_closed(struct loop *loop, struct input *in, int fd, uint8_t *at, size_t size,
			     size_t *ret)
{
	size_t got = 0;
	ssize_t n;

	for (int i = 0; i < 100000; i++) {
		loop_pass(loop, 0);
		n = read(fd, at + got, size - got < 5000 ? size - got : 5000);
		if (n == 0)
			break;
		if (n > 0)
			got += (size_t)n;
	}
	cr_assert_eq(in->source.fd, -1);
	*ret = got;
}

Test(input, writes_stdin_as_it_is_read_and_then_closes)
{
	static uint8_t at[300001];
	struct loop loop;
	struct input in;
	size_t got;
	int p[2];

	cr_assert_eq(loop_init(&loop), 0);
	cr_assert_eq(pipe2(p, O_NONBLOCK | O_CLOEXEC), 0);
	hold(&in, 10, 300000);
	cr_assert_eq(input_begin(&in, &loop, p[1]), 0);
	cr_assert_eq(input_held(), 300010, "held until all is written");
	run_until_closed(&loop, &in, p[0], at, sizeof at, &got);
	cr_assert_eq(got, 300000);
	for (size_t i = 0; i < got; i++)
		cr_assert_eq(at[i], (uint8_t)i);
	cr_assert_eq(input_held(), 0);
	cr_assert_null(in.message);
	loop_close(&loop);
}

Test(input, no_stdin_is_an_end_of_file_at_once)
{
	struct loop loop;
	struct input in;
	uint8_t byte;
	int p[2];

	cr_assert_eq(loop_init(&loop), 0);
	cr_assert_eq(pipe2(p, O_NONBLOCK | O_CLOEXEC), 0);
	hold(&in, 10, 0);
	cr_assert_eq(input_begin(&in, &loop, p[1]), 0);
	cr_assert_eq(read(p[0], &byte, 1), 0);
	cr_assert_eq(input_held(), 0);
	loop_close(&loop);
}

Test(input, a_command_that_does_not_read_just_ends_it)
{
	struct loop loop;
	struct input in;
	int p[2];

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(loop_init(&loop), 0);
	cr_assert_eq(pipe2(p, O_NONBLOCK | O_CLOEXEC), 0);
	hold(&in, 10, 300000);
	cr_assert_eq(input_begin(&in, &loop, p[1]), 0);
	close(p[0]);
	cr_assert_eq(loop_pass(&loop, 1000), 0);
	cr_assert_eq(in.source.fd, -1);
	cr_assert_eq(input_held(), 0);
	loop_close(&loop);
}
