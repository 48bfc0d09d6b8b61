/* The channel between execd and netd: its records, the table that says what is allowed when, and the codec.
 * channel(5)-style prose is in netd(8). Both sides read it like an enemy's: whatever this module refuses is a
 * violation, and execd kills the netd that committed it. No I/O here: see channel_io.h.
 *
 * A record is a header of CHANNEL_HEADER bytes, little-endian:
 *	0 type u8 | 1 flags u8 | 2 zero u16 | 4 len u32 (of the body) | 8 req_id u64 | 16 seq u32 (from 0, one
 *a record) then a body: a block of exact size, or a block and opaque bytes, or opaque bytes only. */
#ifndef COMMON_CHANNEL_H
#define COMMON_CHANNEL_H

#include "common/limits.h"
#include "common/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHANNEL_HEADER      20u
#define CHANNEL_BODY_MAX    (LIMIT_RECORD - CHANNEL_HEADER)
#define CHANNEL_FINGERPRINT 32u /* SHA-256 */

#define CHANNEL_ADDRESS 16u /* IPv6, v4-mapped where it is IPv4 */

enum channel_type {
	/* execd → netd */
	CHANNEL_SET =
	    1,        /* flags: enum channel_key; body: its value. Settings before JAIL, credentials after */
	CHANNEL_JAIL, /* the settings are complete: jail yourself, then answer JAILED */
	CHANNEL_DIAL, /* the credentials are complete: dial */
	CHANNEL_ADMITTED,  /* answer to EXEC: it runs or waits; keep its command and stdin */
	CHANNEL_DUPLICATE, /* answer to EXEC: in flight already; forget it in silence */
	CHANNEL_REPLAY,  /* answer to EXEC: done before; send this terminal frame. flags: CHANNEL_TRUNCATED */
	CHANNEL_REFUSED, /* answer to EXEC: send this ExecError */
	CHANNEL_FETCH,   /* body: offset u32: send COMMAND from there */
	CHANNEL_STARTED, /* with 3 descriptors: stdin write end, stdout and stderr read ends */
	CHANNEL_ENDED,   /* body: struct channel_ended. Answered by DRAINED. Once for each ADMITTED */
	CHANNEL_DRAIN,   /* leave in good order: RST_STREAM or half-close, GOAWAY, close_notify, FIN; then
			    CLOSED */
	CHANNEL_LEFT,    /* the leader of what STARTED has exited, others live and are to be killed: say QUIET
			    when they have had their time (as CHANNEL_READ_KEEP); ENDED follows */

	/* netd → execd */
	CHANNEL_JAILED = 64,
	CHANNEL_ATTACHED, /* Hello has left */
	CHANNEL_EXEC, /* body: struct channel_exec, then the command when CHANNEL_INLINE. Answered in order */
	CHANNEL_COMMAND, /* body: offset u32, then bytes; the answer to FETCH. Length of bytes 0: at its end
			  */
	CHANNEL_ABORT,
	CHANNEL_DRAINED, /* body: struct channel_drained: all of its Chunks and its terminal frame are handed
			    over */
	CHANNEL_GOAWAY,  /* the relay said GOAWAY and our stream is included */
	CHANNEL_ALIVE,   /* body: struct channel_alive; every LIMIT_ALIVE_MS from JAILED on */
	CHANNEL_CLOSED,  /* body: struct channel_closed; the last record: why this connection attempt is over
			  */
	CHANNEL_QUIET,   /* the answer to LEFT, unless ENDED has come */
};

/* flags of EXEC */
#define CHANNEL_STREAMING 1u
#define CHANNEL_INLINE    2u
/* flags of REPLAY, DRAINED, and of an ENDED that answers with what an earlier run came to */
#define CHANNEL_TRUNCATED 1u

/* What SET carries. Descriptors travel as SCM_RIGHTS with a body of length 0. */
enum channel_key {
	/* before JAIL; nothing secret */
	CHANNEL_KEY_RELAY_HOST = 1, /* name or address, no brackets */
	CHANNEL_KEY_RELAY_PORT,     /* u32 */
	CHANNEL_KEY_RELAY_TLS,      /* u32: 0, 1 */
	CHANNEL_KEY_SERVER_NAME,
	CHANNEL_KEY_SANDBOX_ID,
	CHANNEL_KEY_IMAGE,
	CHANNEL_KEY_TRUST,
	CHANNEL_KEY_CAPABILITY,   /* once for each */
	CHANNEL_KEY_CAPACITY,     /* u32 */
	CHANNEL_KEY_HEARTBEAT_MS, /* u32 */
	CHANNEL_KEY_PING_MS,      /* u32: keepalive interval, as learnt from too_many_pings */
	CHANNEL_KEY_PROXY_HOST,
	CHANNEL_KEY_PROXY_PORT, /* u32 */
	CHANNEL_KEY_NO_PROXY,
	CHANNEL_KEY_CA_DIR,          /* SSL_CERT_DIR: paths that netd may read, with colons between */
	CHANNEL_KEY_LOG_LEVEL,       /* u32: enum log_level */
	CHANNEL_KEY_LOG_FORMAT,      /* u32: enum log_format */
	CHANNEL_KEY_BACKGROUND_KILL, /* u32: 0 keep, 1 kill */
	CHANNEL_KEY_TIER,            /* Hello.labels["moca.dev/tier"]; not given: no label */
	CHANNEL_KEY_GOOD_ADDRESS,    /* of CHANNEL_ADDRESS bytes: tried first */
	CHANNEL_KEY_BAD_ADDRESS,     /* the order begins after it */
	CHANNEL_KEY_LAST_SETTING = CHANNEL_KEY_BAD_ADDRESS,
	/* between JAILED and DIAL */
	CHANNEL_KEY_TOKEN = 64,
	CHANNEL_KEY_PROXY_USER,
	CHANNEL_KEY_PROXY_PASSWORD,
	CHANNEL_KEY_CA_FILE,     /* descriptor: PEM */
	CHANNEL_KEY_CLIENT_CERT, /* descriptor: PEM */
	CHANNEL_KEY_CLIENT_KEY,  /* descriptor: PEM */
	CHANNEL_KEY_LAST_CREDENTIAL = CHANNEL_KEY_CLIENT_KEY,
};

/* Where a netd's life stands; each side keeps its own. A record out of its phase is a violation. */
enum channel_phase {
	CHANNEL_PHASE_CONFIG = 1,      /* until JAIL is sent */
	CHANNEL_PHASE_JAILING = 2,     /* until JAILED */
	CHANNEL_PHASE_CREDENTIALS = 4, /* until DIAL */
	CHANNEL_PHASE_DIALLING = 8,    /* until ATTACHED */
	CHANNEL_PHASE_ATTACHED = 16,   /* until CLOSED */
	CHANNEL_PHASE_CLOSED = 32,     /* nothing more */
};

enum channel_direction { CHANNEL_TO_NETD = 1, CHANNEL_TO_EXECD = 2 };

struct channel_header {
	enum channel_type type;
	uint8_t flags;
	uint32_t len;
	uint64_t req_id;
	uint32_t seq;
};

struct channel_exec {
	uint32_t timeout_s;
	uint32_t command_len;
	uint32_t stdin_len;
	uint8_t bad; /* enum refusal, or 0: netd does not hold it, so it can only be dropped, replayed or
			refused */
	uint8_t fingerprint[CHANNEL_FINGERPRINT];
};
#define CHANNEL_EXEC_BLOCK (4u + 4u + 4u + 1u + CHANNEL_FINGERPRINT)
#define CHANNEL_INLINE_MAX (CHANNEL_BODY_MAX - CHANNEL_EXEC_BLOCK)

#define CHANNEL_COMMAND_BLOCK 4u
#define CHANNEL_PIECE_MAX     (CHANNEL_BODY_MAX - CHANNEL_COMMAND_BLOCK)

/* How netd reads what is left in the pipes before the terminal frame. */
enum channel_reading {
	CHANNEL_READ_NOTHING = 0, /* there are no pipes: it never started */
	CHANNEL_READ_EMPTY,       /* nobody is left to write: what is in them, never waiting for EOF */
	CHANNEL_READ_KEEP, /* writers live on: until EOF, LIMIT_QUIET_MS of quiet or LIMIT_LINGER_MS in all */
	CHANNEL_READ_KILLED, /* after Timeout or Abort: until empty, at most LIMIT_AFTER_KILL_MS of open
				window */
	CHANNEL_READ_LAST = CHANNEL_READ_KILLED,
};

struct channel_ended {
	struct outcome outcome;
	enum channel_reading reading;
};
#define CHANNEL_ENDED_BLOCK   (5u + 1u)
#define CHANNEL_OUTCOME_BLOCK 5u

struct channel_drained {
	uint64_t bytes_out; /* Chunk data handed over */
	uint64_t bytes_dropped;
	uint32_t ms; /* from ENDED to now */
};
#define CHANNEL_DRAINED_BLOCK (8u + 8u + 4u)

struct channel_alive {
	uint64_t held;       /* bytes of commands and stdin held */
	uint64_t frames_in;  /* ServerFrames */
	uint64_t bytes_out;  /* Chunk data */
	uint64_t stalled_ms; /* time with the peer's window shut */
	uint64_t log_dropped;
};
#define CHANNEL_ALIVE_BLOCK 40u

enum channel_close_class {
	CHANNEL_CLOSE_DRAINED = 1, /* we left in good order */
	CHANNEL_CLOSE_RESOLVE,
	CHANNEL_CLOSE_CONNECT,
	CHANNEL_CLOSE_PROXY,
	CHANNEL_CLOSE_TLS,
	CHANNEL_CLOSE_HANDSHAKE, /* LIMIT_HANDSHAKE_MS */
	CHANNEL_CLOSE_NOT_HTTP2,
	CHANNEL_CLOSE_PROTOCOL, /* the peer broke HTTP/2 or gRPC */
	CHANNEL_CLOSE_FLOOD,    /* the peer went over a limit */
	CHANNEL_CLOSE_KEEPALIVE,
	CHANNEL_CLOSE_EOF,         /* TCP end or reset */
	CHANNEL_CLOSE_RESET,       /* RST_STREAM */
	CHANNEL_CLOSE_GOAWAY,      /* that excludes our stream, or after its drain */
	CHANNEL_CLOSE_STATUS,      /* the relay ended the call with a grpc-status, OK included */
	CHANNEL_CLOSE_CREDENTIALS, /* a certificate or key file that cannot be used */
	CHANNEL_CLOSE_INTERNAL,
	CHANNEL_CLOSE_LAST = CHANNEL_CLOSE_INTERNAL,
};

#define CHANNEL_NO_STATUS 255u

struct channel_closed {
	uint8_t close_class;  /* enum channel_close_class */
	uint8_t grpc_status;  /* 0 to 16, or CHANNEL_NO_STATUS */
	uint16_t http_status; /* or 0 */
	uint32_t h2_error;
	uint32_t ping_ms; /* the interval to use from now on, 0: unchanged */
	/* of the host that was dialled: of the connection, or the last that was tried; all zero: none was */
	uint8_t address[CHANNEL_ADDRESS];
};
#define CHANNEL_CLOSED_BLOCK (12u + CHANNEL_ADDRESS)

/* Table look-ups for messages and tests. NULL for an unknown type. */
const char *channel_type_name(enum channel_type type);
const char *channel_close_name(uint8_t close_class);

/* Descriptors that go with a record: 3 for STARTED, 1 for a SET of a file, else 0. */
size_t channel_fd_count(const struct channel_header *h);

/* Checks one received packet against the table: direction, phase, header, length, seq, flags, and whether
 * req_id is allowed. On success *ret and *ret_body (into rec) are set. On failure -EPROTO and *ret_why is a
 * static string. */
int channel_decode(const uint8_t *rec, size_t size, enum channel_direction direction,
		   enum channel_phase phase, uint32_t expected_seq, struct channel_header *ret,
		   const uint8_t **ret_body, const char **ret_why);

void channel_encode_header(uint8_t out[CHANNEL_HEADER], const struct channel_header *h);

/* Blocks. decode_* take a body that channel_decode passed; they check values and return 0 or -EPROTO. */
void channel_encode_exec(uint8_t out[CHANNEL_EXEC_BLOCK], const struct channel_exec *e);
int channel_decode_exec(const struct channel_header *h, const uint8_t *body, struct channel_exec *ret);
void channel_encode_ended(uint8_t out[CHANNEL_ENDED_BLOCK], const struct channel_ended *e);
int channel_decode_ended(const uint8_t *body, struct channel_ended *ret);
void channel_encode_outcome(uint8_t out[CHANNEL_OUTCOME_BLOCK], const struct outcome *o);
int channel_decode_outcome(const uint8_t *body, struct outcome *ret);
void channel_encode_drained(uint8_t out[CHANNEL_DRAINED_BLOCK], const struct channel_drained *d);
void channel_decode_drained(const uint8_t *body, struct channel_drained *ret);
void channel_encode_alive(uint8_t out[CHANNEL_ALIVE_BLOCK], const struct channel_alive *a);
void channel_decode_alive(const uint8_t *body, struct channel_alive *ret);
void channel_encode_closed(uint8_t out[CHANNEL_CLOSED_BLOCK], const struct channel_closed *c);
int channel_decode_closed(const uint8_t *body, struct channel_closed *ret);

#endif
