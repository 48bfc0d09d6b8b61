/* The HTTP/2 session and its one stream, on nghttp2. The callbacks only record; what was recorded is read
 * after h2_receive, and frames leave through the batch. Nothing here knows of commands. */
#ifndef NETD_H2_H
#define NETD_H2_H

#include "netd/batch.h"
#include "netd/settings.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_READ   16384u           /* bytes for one h2_receive at most */
#define H2_WINDOW (4u * LIMIT_MIB) /* receive window of the stream and of the connection */
#define H2_HEADER_BYTES                                                                                      \
	(32u * LIMIT_KIB)      /* all header blocks but trailers are small: names and values, +32 each */
#define H2_INFORMATIONAL 16u   /* 1xx blocks */
#define H2_IDLE_FRAMES   1000u /* frames without use in one go (empty DATA, PING, SETTINGS); see h2_flood.c */
#define H2_MEMORY        (2u * LIMIT_MIB) /* all that nghttp2 may allocate */
#define H2_GREETING      128u
#define H2_MESSAGE       256u /* of grpc-message kept */

enum h2_fault {
	H2_FINE = 0,
	H2_FLOOD,     /* over one of the limits above */
	H2_PROTOCOL,  /* HTTP/2 broken by the peer */
	H2_NOT_HTTP2, /* what came is not HTTP/2 at all */
	H2_INTERNAL,
};

/* What a header block said, as far as it matters. */
struct h2_block {
	uint16_t http_status;
	bool grpc_type;
	bool has_code;
	uint8_t code; /* grpc-status */
	char message[H2_MESSAGE];
	size_t bytes;
};

struct h2 {
	nghttp2_session *session;
	struct batch *batch;
	size_t memory;  /* bytes that nghttp2 holds */
	int32_t stream; /* 0: no request yet */
	bool finish;    /* end our side once all that was offered is framed */

	/* Recorded. */
	enum h2_fault fault;
	int lib_error; /* nghttp2's number for a fault, or 0 */
	bool settled;  /* the peer's SETTINGS have come */
	bool ping_acked;
	struct h2_block block; /* the header block under way */
	unsigned informational;
	bool responded;       /* the final response headers are complete */
	uint16_t http_status; /* theirs */
	bool grpc_type;
	bool has_status; /* latched from a complete block that ends the stream; the first one wins */
	uint8_t status;
	char message[H2_MESSAGE];
	bool ended; /* the peer's END_STREAM */
	bool reset; /* the stream was reset, or refused */
	uint32_t reset_code;
	bool goaway;
	bool goaway_excludes_us;
	uint32_t goaway_code;
	bool too_many_pings;
	uint64_t frames_sent; /* DATA */
	/* floods */
	uint32_t credit;
	uint64_t credit_ms;
	uint64_t now_ms;
	/* DATA of the stream that nobody has taken yet */
	uint8_t data[H2_READ];
	size_t data_at;
	size_t data_end;
};

/* Starts a session: connection preface, SETTINGS and the window of the connection are queued. 0 or -errno. */
int h2_open(struct h2 *h, struct batch *batch, uint64_t now_ms);

/* What h2_open has queued, for whoever opens the connection: it counts as sent. Its size, 0: it failed. */
size_t h2_greeting(struct h2 *h, uint8_t out[H2_GREETING]);
void h2_close(struct h2 *h);

/* Queues the request of Attach, its token never indexed (RFC 7541 7.1.3). The token is not needed afterwards.
 * 0 or -errno. */
int h2_request(struct h2 *h, const struct settings *settings);

/* Once the request has left: what is left of it in nghttp2 is overwritten with the next h2_collect. */
void h2_forget_request(struct h2 *h);

/* Feeds at most H2_READ bytes; only when h2_data is empty. Look at the recorded fields afterwards. */
void h2_receive(struct h2 *h, const uint8_t *at, size_t size, uint64_t now_ms);

/* DATA bytes that wait, and taking n of them: the peer may then send as many more. */
size_t h2_data(const struct h2 *h, const uint8_t **ret_at);
void h2_take(struct h2 *h, size_t n);

/* Moves frames into the batch: HTTP/2's own, and DATA made of what was offered to it. 0, or -errno when the
 * session is broken. */
int h2_collect(struct h2 *h);

/* What was offered may be framed now. */
void h2_resume(struct h2 *h);

/* Bytes of message that the stream's and the connection's window allow now, and the window that the peer
 * gives a new stream. */
size_t h2_room(const struct h2 *h);
size_t h2_window(const struct h2 *h);

/* Once the peer's SETTINGS are there: why the first message has not left. */
const char *h2_held_up(const struct h2 *h);

int h2_ping(struct h2 *h);

/* Leaves: RST_STREAM with code unless the stream is over or code is -1, then GOAWAY. */
void h2_leave(struct h2 *h, int code);

/* nghttp2 has given the connection up: it neither wants to read nor to write, and says nothing else. */
bool h2_is_dead(const struct h2 *h);

/* h2_flood.c: takes credit for a frame without use; false: one too many. */
bool h2_flood_spend(struct h2 *h);
/* Frames that carry something, in either direction, earn it back: a peer may ping once a DATA frame of ours.
 */
void h2_flood_earn(struct h2 *h, uint32_t n);

/* h2_memory.c: nghttp2's allocator, with a budget, and wiping what it frees (the token was in it). */
void h2_memory_init(nghttp2_mem *ret, size_t *used);

#endif
