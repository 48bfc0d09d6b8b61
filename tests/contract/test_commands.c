/* contract.md 2, 3, 4, 11: what a command is given, and what comes back. */
#include "tests/lib/stage.h"

#include "common/limits.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(commands, .timeout = 60, .fini = stage_fini);

/* size bytes that no short pattern makes. The caller frees. */
static uint8_t *noise(size_t size)
{
	uint8_t *at = malloc(size);
	uint32_t x = 2463534242u;

	cr_assert(at);
	for (size_t i = 0; i < size; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		at[i] = (uint8_t)x;
	}
	return at;
}

static char *base64(const uint8_t *data, size_t size, size_t *ret_size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = malloc(size / 3 * 4);
	size_t n = 0;

	cr_assert(text && size % 3 == 0);
	for (size_t i = 0; i < size; i += 3) {
		uint32_t three = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];

		for (unsigned shift = 24; shift > 0; shift -= 6)
			text[n++] = digits[three >> (shift - 6) & 63];
	}
	*ret_size = n;
	return text;
}

Test(commands, gives_stdout_stderr_and_exit_code)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "echo out; echo err >&2; exit 7");
	stage_expect_end(exec, 7);
	stage_expect_out(exec, "out\n");
	stage_expect_err(exec, "err\n");
	cr_assert(!exec->terminal[0].truncated);

	exec = stage_exec(s, "true");
	stage_expect_end(exec, 0);
	cr_assert_eq(exec->chunk_count, 0);

	/* By a signal of its own; and a code that only looks like one. */
	stage_expect_end(stage_exec(s, "kill -TERM $$"), -1);
	stage_expect_end(stage_exec(s, "exit 143"), 143);
	stage_expect_end(stage_exec(s, "exit 255"), 255);
	stage_expect_end(stage_exec(s, "no-such-program-here"), 127);
	stage_expect_end(stage_exec(s, "if then"), 2);
	stage_expect_end(stage_send(s, &(struct relay_request){.streaming = true}), 0);
	stage_close(s);
}

Test(commands, sees_end_of_file_without_stdin)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "wc -c");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "0\n");
	exec =
	    stage_send(s, &(struct relay_request){.command = "cat; echo .", .input = "in", .input_size = 2});
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "in.\n");
	stage_close(s);
}

Test(commands, has_a_process_group_and_a_shell_of_its_own)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec =
	    stage_exec(s, "read -r _ _ _ _ group _ </proc/$$/stat; [ \"$group\" = $$ ] && [ \"$0\" = bash ]");
	stage_expect_end(exec, 0);
	stage_expect_end(stage_exec(s, "left=here; cd /"), 0);
	exec = stage_exec(
	    s, "echo \"${left-gone}\"; for f in /proc/self/fd/*; do f=${f##*/}; [ -e /proc/self/fd/$f ] && "
	       "echo $f; done; true");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "gone\n0\n1\n2\n");
	stage_close(s);
}

Test(commands, writes_three_mib_through_base64)
{
	enum { SIZE = 3 << 20 };
	uint8_t *data = noise(SIZE);
	struct relay_exec *exec;
	char command[512];
	size_t text_size;
	char *text = base64(data, SIZE, &text_size);
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	snprintf(command, sizeof command, "base64 -d > '%s/f'", s->folder);
	exec = stage_send(
	    s, &(struct relay_request){.command = command, .input = text, .input_size = text_size});
	stage_expect_end(exec, 0);
	exec = stage_exec(s, "cat '%s/f'", s->folder);
	stage_expect_end(exec, 0);
	cr_assert_eq(exec->out.size, (size_t)SIZE);
	cr_assert(memcmp(exec->out.at, data, SIZE) == 0);
	free(text);
	free(data);
	stage_close(s);
}

Test(commands, greps_in_several_chunks)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	stage_expect_end(
	    stage_exec(s, "cd '%s' && for i in {1..20000}; do echo \"line $i of the file\"; done > f",
		       s->folder),
	    0);
	exec = stage_exec(
	    s, "cd '%s' && if command -v rg >/dev/null; then rg -N --no-heading line f; else grep line f; fi",
	    s->folder);
	stage_expect_end(exec, 0);
	cr_assert_geq(exec->chunk_count, 3);
	cr_assert_eq(exec->out.size, (size_t)folder_size(strcat(strcpy((char[300]){0}, s->folder), "/f")));
	exec = stage_exec(s, "cd '%s' && grep nowhere f", s->folder);
	stage_expect_end(exec, 1);
	stage_close(s);
}

/* All 15 MiB, and the largest that must be taken: 16 MiB of stdin together with a command of 1 MiB. */
Test(commands, takes_sixteen_mib_of_stdin)
{
	uint8_t *data = noise(LIMIT_STDIN);
	char *command = malloc(LIMIT_COMMAND + 1);
	struct relay_exec *exec;
	struct stage *s;

	cr_assert(command);
	s = stage_open(WORKER_SETTINGS());
	exec =
	    stage_send(s, &(struct relay_request){
			      .command = "cat", .input = data, .input_size = 15u << 20, .streaming = true});
	cr_assert(relay_wait_bytes(exec, 15u << 20, 30000));
	stage_expect_end(exec, 0);
	cr_assert(exec->out.size == 15u << 20 && memcmp(exec->out.at, data, exec->out.size) == 0);

	memset(command, ' ', LIMIT_COMMAND);
	memcpy(command, "wc -c;", 6);
	memcpy(command + LIMIT_COMMAND - 7, " exit 9", 7);
	exec = stage_send(s, &(struct relay_request){.command = command,
						     .command_size = LIMIT_COMMAND,
						     .input = data,
						     .input_size = LIMIT_STDIN});
	cr_assert(relay_wait_terminals(exec, 1, 30000));
	stage_expect_end(exec, 9);
	stage_expect_out(exec, "16777216\n");
	free(command);
	free(data);
	stage_close(s);
}

/* A command that does not read its stdin, and one that closes it, end as they would anywhere. */
Test(commands, need_not_read_their_stdin)
{
	uint8_t *data = noise(4u << 20);
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_send(
	    s, &(struct relay_request){.command = "exit 5", .input = data, .input_size = 4u << 20});
	stage_expect_end(exec, 5);
	exec = stage_send(s, &(struct relay_request){
				 .command = "exec <&-; echo closed", .input = data, .input_size = 4u << 20});
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "closed\n");
	free(data);
	stage_close(s);
}

Test(commands, may_be_any_length_up_to_one_mib)
{
	static const size_t sizes[] = {1, 131070, 131071, 131072, 200000, LIMIT_COMMAND - 1, LIMIT_COMMAND};
	char *command = malloc(LIMIT_COMMAND + 1);
	struct relay_exec *exec;
	struct stage *s;

	cr_assert(command);
	s = stage_open(WORKER_SETTINGS());
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		memset(command, ' ', sizes[i]);
		if (sizes[i] > 64)
			memcpy(command, "echo $0 $#;", 11), memcpy(command + sizes[i] - 7, " exit 4", 7);
		exec = stage_send(s, &(struct relay_request){.command = command, .command_size = sizes[i]});
		stage_expect_end(exec, sizes[i] > 64 ? 4 : 0);
		stage_expect_out(exec, sizes[i] > 64 ? "bash 0\n" : "");
	}
	exec = stage_send(s, &(struct relay_request){.command = command, .command_size = LIMIT_COMMAND + 1});
	cr_assert_eq(relay_wait_end(exec, STAGE_WAIT_MS)->kind, RELAY_ERROR);
	free(command);
	stage_close(s);
}

Test(commands, pass_any_byte)
{
	static const char raw[] = "printf '%s' '\xff\xfe\xc3'; cat";
	char every[256], expected[259] = "\xff\xfe\xc3";
	struct relay_exec *exec;
	struct stage *s;

	for (int i = 0; i < 256; i++)
		expected[3 + i] = every[i] = (char)i;
	s = stage_open(WORKER_SETTINGS());
	exec = stage_send(s, &(struct relay_request){.command = raw, .input = every, .input_size = 256});
	stage_expect_end(exec, 0);
	cr_assert_eq(exec->out.size, sizeof expected);
	cr_assert(memcmp(exec->out.at, expected, sizeof expected) == 0);
	stage_close(s);
}

Test(commands, take_ids_of_any_size)
{
	static const uint64_t ids[] = {1, 1ull << 32, 1ull << 53, UINT64_MAX, 0};
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		exec =
		    relay_exec(s->attached, &(struct relay_request){.req_id = ids[i], .command = "echo x"});
		stage_expect_end(exec, 0);
		stage_expect_out(exec, "x\n");
	}
	stage_close(s);
}
