/* The channel's codec. The first byte chooses direction, phase and whether the sequence number is the
 * expected one; the rest is a packet. What is accepted must encode again to the same bytes. */
#include "common/buf.h"
#include "common/channel.h"

#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_outcome(const struct outcome *o)
{
	char message[128];

	MUST(outcome_valid(o));
	MUST(outcome_message(o, message, sizeof message) < sizeof message);
	MUST(outcome_reason(o));
	outcome_cached(o);
	outcome_is_end(o);
	outcome_exit_code(o);
}

/* Decodes the block of a body that the table has accepted. Its size when it was taken, else 0. */
static size_t recode(const struct channel_header *h, const uint8_t *body, uint8_t *out)
{
	struct channel_exec exec;
	struct channel_ended ended;
	struct channel_drained drained;
	struct channel_alive alive;
	struct channel_closed closed;
	struct outcome outcome;

	switch (h->type) {
	case CHANNEL_EXEC:
		if (channel_decode_exec(h, body, &exec) < 0)
			return 0;
		MUST(exec.bad || (exec.command_len <= LIMIT_COMMAND && exec.stdin_len <= LIMIT_STDIN));
		MUST(!(h->flags & CHANNEL_INLINE) || h->len == CHANNEL_EXEC_BLOCK + exec.command_len);
		channel_encode_exec(out, &exec);
		return CHANNEL_EXEC_BLOCK;
	case CHANNEL_REPLAY:
	case CHANNEL_REFUSED:
		if (channel_decode_outcome(body, &outcome) < 0)
			return 0;
		check_outcome(&outcome);
		channel_encode_outcome(out, &outcome);
		return CHANNEL_OUTCOME_BLOCK;
	case CHANNEL_ENDED:
		if (channel_decode_ended(body, &ended) < 0)
			return 0;
		check_outcome(&ended.outcome);
		channel_encode_ended(out, &ended);
		return CHANNEL_ENDED_BLOCK;
	case CHANNEL_DRAINED:
		channel_decode_drained(body, &drained);
		channel_encode_drained(out, &drained);
		return CHANNEL_DRAINED_BLOCK;
	case CHANNEL_ALIVE:
		channel_decode_alive(body, &alive);
		channel_encode_alive(out, &alive);
		return CHANNEL_ALIVE_BLOCK;
	case CHANNEL_CLOSED:
		if (channel_decode_closed(body, &closed) < 0)
			return 0;
		MUST(channel_close_name(closed.close_class));
		channel_encode_closed(out, &closed);
		return CHANNEL_CLOSED_BLOCK;
	default:
		return 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[CHANNEL_HEADER + 64];
	enum channel_direction direction;
	enum channel_phase phase;
	struct channel_header h;
	const uint8_t *body;
	const char *why = NULL;
	uint32_t seq = 0;
	size_t n;

	if (size < 1)
		return 0;
	direction = data[0] & 1 ? CHANNEL_TO_NETD : CHANNEL_TO_EXECD;
	phase = (enum channel_phase)(1u << (data[0] >> 1) % 6u);
	if (size > CHANNEL_HEADER && !(data[0] & 128))
		seq = buf_get_u32(data + 1 + 16);
	if (channel_decode(data + 1, size - 1, direction, phase, seq, &h, &body, &why) < 0) {
		MUST(why);
		return 0;
	}
	MUST(body == data + 1 + CHANNEL_HEADER && h.len == size - 1 - CHANNEL_HEADER);
	MUST(channel_type_name(h.type) && channel_fd_count(&h) <= 3);
	channel_encode_header(out, &h);
	MUST(memcmp(out, data + 1, CHANNEL_HEADER) == 0);
	n = recode(&h, body, out);
	MUST(n <= h.len && memcmp(out, body, n) == 0);
	return 0;
}
