/* What a relay sends inside the stream: gRPC framing in any split, and the walk of ServerFrame. The first
 * byte chooses the splits. The reader must hand out the same messages whatever they are, and the skim must
 * agree with the walk. */
#include "netd/frames.h"
#include "netd/grpc.h"

#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(const uint8_t *piece, size_t length, const uint8_t *message, size_t size)
{
	if (length > 0)
		MUST(piece >= message && length <= size && piece + length <= message + size);
}

static void check_message(const uint8_t *message, size_t size, size_t step)
{
	struct frames_server f;
	struct frames_skim s;
	int err = frames_decode(message, size, &f);

	check_inside(f.command, f.command_len, message, size);
	check_inside(f.input, f.input_len, message, size);
	frames_skim_init(&s);
	for (size_t at = 0; at < size; at += step)
		frames_skim_feed(&s, message + at, size - at < step ? size - at : step);
	if (err < 0)
		return;
	MUST(!s.broken && s.kind == f.kind && s.has_req_id == f.has_req_id);
	MUST(!f.has_req_id || s.req_id == f.req_id);
}

/* Feeds data in steps; a sum over all messages and the end. */
static uint64_t read_all(const uint8_t *data, size_t size, size_t step)
{
	struct grpc_reader r = {0};
	uint64_t sum = 1;
	int result = 0;

	for (size_t at = 0; at < size && result >= 0;) {
		size_t n = size - at < step ? size - at : step, used = 0, length;
		uint8_t *message;

		result = grpc_reader_feed(&r, data + at, n, &used);
		if (result < 0)
			break;
		MUST(used > 0 && used <= n);
		at += used;
		if (result == GRPC_STEP_SKIPPED)
			sum = sum * 31 + r.skim.req_id;
		if (result != GRPC_STEP_MESSAGE)
			continue;
		message = grpc_reader_take(&r, &length);
		check_message(message, length, step);
		for (size_t i = 0; i < length; i++)
			sum = sum * 31 + message[i];
		sum = sum * 31 + length;
		free(message);
	}
	sum = sum * 31 + grpc_reader_inside(&r);
	grpc_reader_free(&r);
	return result < 0 ? (uint64_t)(int64_t)result : sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[64];

	if (size < 1)
		return 0;
	check_message(data + 1, size - 1, 1u + data[0] % 16);
	MUST(read_all(data + 1, size - 1, 1u + data[0]) == read_all(data + 1, size - 1, size));
	MUST(grpc_message_decode(data + 1, size - 1, text, sizeof text) < sizeof text);
	MUST(grpc_code_parse(data + 1, size - 1) <= GRPC_LAST);
	grpc_content_type(data + 1, size - 1);
	return 0;
}
