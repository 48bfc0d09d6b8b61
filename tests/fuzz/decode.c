/* What netd reads in the bytes of a stream, a line a message; for test_differential.py.
 * usage: decode STEP <STREAM: the bytes come in pieces of STEP. */
#include "netd/frames.h"
#include "netd/grpc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void print_bytes(const uint8_t *at, size_t size)
{
	putchar(' ');
	putchar('x');
	for (size_t i = 0; i < size; i++)
		printf("%02x", at[i]);
}

static void print_message(const uint8_t *message, size_t size)
{
	struct frames_server f;

	if (frames_decode(message, size, &f) < 0) {
		puts("bad");
		return;
	}
	switch (f.kind) {
	case FRAMES_NOTHING:
		puts("nothing");
		break;
	case FRAMES_ABORT:
		printf("abort %" PRIu64 "\n", f.req_id);
		break;
	case FRAMES_EXEC:
		printf("exec %" PRIu64 " %" PRIu32 " %d", f.req_id, f.timeout_s, f.streaming);
		print_bytes(f.command, f.command_len);
		print_bytes(f.input, f.input_len);
		putchar('\n');
		break;
	}
}

static int feed(struct grpc_reader *r, const uint8_t *at, size_t size)
{
	while (size > 0) {
		size_t used = 0, length = 0;
		int step = grpc_reader_feed(r, at, size, &used);
		uint8_t *message;

		if (step < 0 || step == GRPC_STEP_SKIPPED)
			return -1;
		at += used;
		size -= used;
		if (step != GRPC_STEP_MESSAGE)
			continue;
		message = grpc_reader_take(r, &length);
		print_message(message, length);
		free(message);
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t step = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	struct grpc_reader reader = {0};
	uint8_t *piece = step > 0 ? malloc(step) : NULL;
	ssize_t n;

	if (!piece)
		return 2;
	while ((n = read(STDIN_FILENO, piece, step)) > 0) {
		if (feed(&reader, piece, (size_t)n) < 0)
			return 1;
	}
	free(piece);
	return n == 0 && !grpc_reader_inside(&reader) ? 0 : 1;
}
