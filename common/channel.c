#include "common/channel.h"

#include "common/buf.h"

#include <errno.h>
#include <string.h>

#define ANY_TIME (CHANNEL_PHASE_CREDENTIALS | CHANNEL_PHASE_DIALLING | CHANNEL_PHASE_ATTACHED)

static const struct record {
	const char *name;
	enum channel_direction direction;
	unsigned phases;
	uint32_t min_len;
	uint32_t max_len;
	uint8_t flags;   /* bits that may be set; SET uses the whole byte */
	bool has_req_id; /* else req_id must be 0 */
} table[256] = {
    [CHANNEL_SET] = {"set", CHANNEL_TO_NETD, CHANNEL_PHASE_CONFIG | CHANNEL_PHASE_CREDENTIALS, 0, LIMIT_TOKEN,
		     255, false},
    [CHANNEL_JAIL] = {"jail", CHANNEL_TO_NETD, CHANNEL_PHASE_CONFIG, 0, 0, 0, false},
    [CHANNEL_DIAL] = {"dial", CHANNEL_TO_NETD, CHANNEL_PHASE_CREDENTIALS, 0, 0, 0, false},
    [CHANNEL_ADMITTED] = {"admitted", CHANNEL_TO_NETD, CHANNEL_PHASE_ATTACHED, 0, 0, 0, true},
    [CHANNEL_DUPLICATE] = {"duplicate", CHANNEL_TO_NETD, CHANNEL_PHASE_ATTACHED, 0, 0, 0, true},
    [CHANNEL_REPLAY] = {"replay", CHANNEL_TO_NETD, CHANNEL_PHASE_ATTACHED, CHANNEL_OUTCOME_BLOCK,
			CHANNEL_OUTCOME_BLOCK, CHANNEL_TRUNCATED, true},
    [CHANNEL_REFUSED] = {"refused", CHANNEL_TO_NETD, CHANNEL_PHASE_ATTACHED, CHANNEL_OUTCOME_BLOCK,
			 CHANNEL_OUTCOME_BLOCK, 0, true},
    [CHANNEL_FETCH] = {"fetch", CHANNEL_TO_NETD, CHANNEL_PHASE_ATTACHED, 4, 4, 0, true},
    [CHANNEL_STARTED] = {"started", CHANNEL_TO_NETD, CHANNEL_PHASE_ATTACHED, 0, 0, 0, true},
    [CHANNEL_ENDED] = {"ended", CHANNEL_TO_NETD, CHANNEL_PHASE_ATTACHED, CHANNEL_ENDED_BLOCK,
		       CHANNEL_ENDED_BLOCK, CHANNEL_TRUNCATED, true},
    [CHANNEL_DRAIN] = {"drain", CHANNEL_TO_NETD, ANY_TIME, 0, 0, 0, false},
    [CHANNEL_LEFT] = {"left", CHANNEL_TO_NETD, CHANNEL_PHASE_ATTACHED, 0, 0, 0, true},

    [CHANNEL_JAILED] = {"jailed", CHANNEL_TO_EXECD, CHANNEL_PHASE_JAILING, 0, 0, 0, false},
    [CHANNEL_ATTACHED] = {"attached", CHANNEL_TO_EXECD, CHANNEL_PHASE_DIALLING, 0, 0, 0, false},
    [CHANNEL_EXEC] = {"exec", CHANNEL_TO_EXECD, CHANNEL_PHASE_ATTACHED, CHANNEL_EXEC_BLOCK, CHANNEL_BODY_MAX,
		      CHANNEL_STREAMING | CHANNEL_INLINE, true},
    [CHANNEL_COMMAND] = {"command", CHANNEL_TO_EXECD, CHANNEL_PHASE_ATTACHED, CHANNEL_COMMAND_BLOCK,
			 CHANNEL_BODY_MAX, 0, true},
    [CHANNEL_ABORT] = {"abort", CHANNEL_TO_EXECD, CHANNEL_PHASE_ATTACHED, 0, 0, 0, true},
    [CHANNEL_DRAINED] = {"drained", CHANNEL_TO_EXECD, CHANNEL_PHASE_ATTACHED, CHANNEL_DRAINED_BLOCK,
			 CHANNEL_DRAINED_BLOCK, CHANNEL_TRUNCATED, true},
    [CHANNEL_GOAWAY] = {"goaway", CHANNEL_TO_EXECD, CHANNEL_PHASE_ATTACHED, 0, 0, 0, false},
    [CHANNEL_ALIVE] = {"alive", CHANNEL_TO_EXECD, ANY_TIME, CHANNEL_ALIVE_BLOCK, CHANNEL_ALIVE_BLOCK, 0,
		       false},
    [CHANNEL_CLOSED] = {"closed", CHANNEL_TO_EXECD, ANY_TIME, CHANNEL_CLOSED_BLOCK, CHANNEL_CLOSED_BLOCK, 0,
			false},
    [CHANNEL_QUIET] = {"quiet", CHANNEL_TO_EXECD, CHANNEL_PHASE_ATTACHED, 0, 0, 0, true},
};

static const char *const close_names[] = {
    [CHANNEL_CLOSE_DRAINED] = "drained",
    [CHANNEL_CLOSE_RESOLVE] = "resolve",
    [CHANNEL_CLOSE_CONNECT] = "connect",
    [CHANNEL_CLOSE_PROXY] = "proxy",
    [CHANNEL_CLOSE_TLS] = "tls",
    [CHANNEL_CLOSE_HANDSHAKE] = "handshake-timeout",
    [CHANNEL_CLOSE_NOT_HTTP2] = "not-http2",
    [CHANNEL_CLOSE_PROTOCOL] = "protocol",
    [CHANNEL_CLOSE_FLOOD] = "flood",
    [CHANNEL_CLOSE_KEEPALIVE] = "keepalive",
    [CHANNEL_CLOSE_EOF] = "eof",
    [CHANNEL_CLOSE_RESET] = "reset",
    [CHANNEL_CLOSE_GOAWAY] = "goaway",
    [CHANNEL_CLOSE_STATUS] = "status",
    [CHANNEL_CLOSE_CREDENTIALS] = "credentials",
    [CHANNEL_CLOSE_INTERNAL] = "internal",
};

const char *channel_type_name(enum channel_type type)
{
	return (unsigned)type < 256 ? table[type].name : NULL;
}

const char *channel_close_name(uint8_t close_class)
{
	if (close_class < CHANNEL_CLOSE_DRAINED || close_class > CHANNEL_CLOSE_LAST)
		return NULL;
	return close_names[close_class];
}

size_t channel_fd_count(const struct channel_header *h)
{
	if (h->type == CHANNEL_STARTED)
		return 3;
	if (h->type == CHANNEL_SET && h->flags >= CHANNEL_KEY_CA_FILE && h->flags <= CHANNEL_KEY_CLIENT_KEY)
		return 1;
	return 0;
}

static bool key_fits(uint8_t key, uint32_t len, enum channel_phase phase)
{
	bool setting = key >= CHANNEL_KEY_RELAY_HOST && key <= CHANNEL_KEY_LAST_SETTING;
	bool credential = key >= CHANNEL_KEY_TOKEN && key <= CHANNEL_KEY_LAST_CREDENTIAL;

	if (setting && phase != CHANNEL_PHASE_CONFIG)
		return false;
	if (credential && phase != CHANNEL_PHASE_CREDENTIALS)
		return false;
	switch (key) {
	case CHANNEL_KEY_RELAY_PORT:
	case CHANNEL_KEY_RELAY_TLS:
	case CHANNEL_KEY_CAPACITY:
	case CHANNEL_KEY_HEARTBEAT_MS:
	case CHANNEL_KEY_PING_MS:
	case CHANNEL_KEY_PROXY_PORT:
	case CHANNEL_KEY_LOG_LEVEL:
	case CHANNEL_KEY_LOG_FORMAT:
	case CHANNEL_KEY_BACKGROUND_KILL:
		return len == 4;
	case CHANNEL_KEY_GOOD_ADDRESS:
	case CHANNEL_KEY_BAD_ADDRESS:
		return len == CHANNEL_ADDRESS;
	case CHANNEL_KEY_CA_FILE:
	case CHANNEL_KEY_CLIENT_CERT:
	case CHANNEL_KEY_CLIENT_KEY:
		return len == 0;
	case CHANNEL_KEY_TOKEN:
		return len <= LIMIT_TOKEN;
	default:
		return (setting || credential) && len <= LIMIT_SETTING;
	}
}

static const char *check(const struct channel_header *h, size_t size, enum channel_direction direction,
			 enum channel_phase phase, uint32_t expected_seq)
{
	const struct record *r = &table[h->type];

	if (!r->name)
		return "unknown type";
	if (r->direction != direction)
		return "wrong direction";
	if (h->seq != expected_seq)
		return "sequence gap";
	if (!(r->phases & (unsigned)phase))
		return "wrong phase";
	if (h->len != size - CHANNEL_HEADER || h->len < r->min_len || h->len > r->max_len)
		return "wrong length";
	if (h->flags & ~r->flags)
		return "unknown flag";
	if (!r->has_req_id && h->req_id != 0)
		return "req_id where none belongs";
	if (h->type == CHANNEL_SET && !key_fits(h->flags, h->len, phase))
		return "unknown key, or not now, or not this long";
	return NULL;
}

int channel_decode(const uint8_t *rec, size_t size, enum channel_direction direction,
		   enum channel_phase phase, uint32_t expected_seq, struct channel_header *ret,
		   const uint8_t **ret_body, const char **ret_why)
{
	struct channel_header h;
	const char *why;

	if (size < CHANNEL_HEADER || size > LIMIT_RECORD) {
		*ret_why = "wrong size";
		return -EPROTO;
	}
	h = (struct channel_header){
	    .type = (enum channel_type)rec[0],
	    .flags = rec[1],
	    .len = buf_get_u32(rec + 4),
	    .req_id = buf_get_u64(rec + 8),
	    .seq = buf_get_u32(rec + 16),
	};
	why = buf_get_u16(rec + 2) != 0 ? "reserved bytes set"
					: check(&h, size, direction, phase, expected_seq);
	if (why) {
		*ret_why = why;
		return -EPROTO;
	}
	*ret = h;
	*ret_body = rec + CHANNEL_HEADER;
	return 0;
}

void channel_encode_header(uint8_t out[CHANNEL_HEADER], const struct channel_header *h)
{
	out[0] = (uint8_t)h->type;
	out[1] = h->flags;
	buf_put_u16(out + 2, 0);
	buf_put_u32(out + 4, h->len);
	buf_put_u64(out + 8, h->req_id);
	buf_put_u32(out + 16, h->seq);
}

void channel_encode_exec(uint8_t out[CHANNEL_EXEC_BLOCK], const struct channel_exec *e)
{
	buf_put_u32(out, e->timeout_s);
	buf_put_u32(out + 4, e->command_len);
	buf_put_u32(out + 8, e->stdin_len);
	out[12] = e->bad;
	memcpy(out + 13, e->fingerprint, CHANNEL_FINGERPRINT);
}

/* What netd refuses on sight it does not hold, and its lengths mean nothing. */
int channel_decode_exec(const struct channel_header *h, const uint8_t *body, struct channel_exec *ret)
{
	struct channel_exec e = {
	    .timeout_s = buf_get_u32(body),
	    .command_len = buf_get_u32(body + 4),
	    .stdin_len = buf_get_u32(body + 8),
	    .bad = body[12],
	};
	uint32_t inlined = h->len - CHANNEL_EXEC_BLOCK;

	if (e.bad > REFUSAL_LAST)
		return -EPROTO;
	if (!e.bad && (e.command_len > LIMIT_COMMAND || e.stdin_len > LIMIT_STDIN))
		return -EPROTO;
	if (h->flags & CHANNEL_INLINE ? e.bad || inlined != e.command_len : inlined != 0)
		return -EPROTO;
	memcpy(e.fingerprint, body + 13, CHANNEL_FINGERPRINT);
	*ret = e;
	return 0;
}

void channel_encode_outcome(uint8_t out[CHANNEL_OUTCOME_BLOCK], const struct outcome *o)
{
	out[0] = (uint8_t)o->kind;
	buf_put_u32(out + 1, o->value);
}

int channel_decode_outcome(const uint8_t *body, struct outcome *ret)
{
	struct outcome o = {.kind = (enum outcome_kind)body[0], .value = buf_get_u32(body + 1)};

	if (!outcome_valid(&o))
		return -EPROTO;
	*ret = o;
	return 0;
}

void channel_encode_ended(uint8_t out[CHANNEL_ENDED_BLOCK], const struct channel_ended *e)
{
	channel_encode_outcome(out, &e->outcome);
	out[5] = (uint8_t)e->reading;
}

int channel_decode_ended(const uint8_t *body, struct channel_ended *ret)
{
	struct channel_ended e = {
	    .reading = (enum channel_reading)body[5],
	};

	if (channel_decode_outcome(body, &e.outcome) < 0 || body[5] > CHANNEL_READ_LAST)
		return -EPROTO;
	*ret = e;
	return 0;
}

void channel_encode_drained(uint8_t out[CHANNEL_DRAINED_BLOCK], const struct channel_drained *d)
{
	buf_put_u64(out, d->bytes_out);
	buf_put_u64(out + 8, d->bytes_dropped);
	buf_put_u32(out + 16, d->ms);
}

void channel_decode_drained(const uint8_t *body, struct channel_drained *ret)
{
	*ret = (struct channel_drained){
	    .bytes_out = buf_get_u64(body),
	    .bytes_dropped = buf_get_u64(body + 8),
	    .ms = buf_get_u32(body + 16),
	};
}

void channel_encode_alive(uint8_t out[CHANNEL_ALIVE_BLOCK], const struct channel_alive *a)
{
	buf_put_u64(out, a->held);
	buf_put_u64(out + 8, a->frames_in);
	buf_put_u64(out + 16, a->bytes_out);
	buf_put_u64(out + 24, a->stalled_ms);
	buf_put_u64(out + 32, a->log_dropped);
}

void channel_decode_alive(const uint8_t *body, struct channel_alive *ret)
{
	*ret = (struct channel_alive){
	    .held = buf_get_u64(body),
	    .frames_in = buf_get_u64(body + 8),
	    .bytes_out = buf_get_u64(body + 16),
	    .stalled_ms = buf_get_u64(body + 24),
	    .log_dropped = buf_get_u64(body + 32),
	};
}

void channel_encode_closed(uint8_t out[CHANNEL_CLOSED_BLOCK], const struct channel_closed *c)
{
	out[0] = c->close_class;
	out[1] = c->grpc_status;
	buf_put_u16(out + 2, c->http_status);
	buf_put_u32(out + 4, c->h2_error);
	buf_put_u32(out + 8, c->ping_ms);
	memcpy(out + 12, c->address, CHANNEL_ADDRESS);
}

int channel_decode_closed(const uint8_t *body, struct channel_closed *ret)
{
	struct channel_closed c = {
	    .close_class = body[0],
	    .grpc_status = body[1],
	    .http_status = buf_get_u16(body + 2),
	    .h2_error = buf_get_u32(body + 4),
	    .ping_ms = buf_get_u32(body + 8),
	};

	if (!channel_close_name(c.close_class))
		return -EPROTO;
	memcpy(c.address, body + 12, CHANNEL_ADDRESS);
	*ret = c;
	return 0;
}
