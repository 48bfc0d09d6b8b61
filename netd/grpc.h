/* gRPC over HTTP/2 as a client sees it: length-prefixed messages, the status of a call, and the mappings for
 * calls that end without one (grpc/doc/PROTOCOL-HTTP2.md, http-grpc-status-mapping.md). No I/O. */
#ifndef NETD_GRPC_H
#define NETD_GRPC_H

#include "common/limits.h"
#include "netd/frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
	GRPC_LAST = 16,
};

/* Reassembles messages from any split of the stream's bytes. */
struct grpc_reader {
	uint8_t prefix[GRPC_PREFIX];
	size_t prefix_used;
	uint32_t length;         /* of the message under way */
	uint8_t *message;        /* NULL while there is none, and for one that is skipped */
	size_t used;             /* bytes of it that have come */
	struct frames_skim skim; /* what a skipped one was about */
};

enum grpc_step {
	GRPC_STEP_MORE,    /* all bytes are used, no message is complete */
	GRPC_STEP_MESSAGE, /* a message is complete: grpc_reader_take */
	GRPC_STEP_SKIPPED, /* one between LIMIT_MESSAGE and LIMIT_MESSAGE_SKIP has been read through: see skim
			    */
};

/* Feeds bytes until a message is complete or they are used up; *ret_used says how many were. Returns a
 * grpc_step, -EBADMSG for the compressed flag (we offered no encoding: INTERNAL), -EMSGSIZE for a message
 * over LIMIT_MESSAGE_SKIP (RESOURCE_EXHAUSTED), or -ENOMEM. */
int grpc_reader_feed(struct grpc_reader *r, const uint8_t *at, size_t size, size_t *ret_used);

/* After GRPC_STEP_MESSAGE: the message is the caller's (free), never NULL unless *ret_size is 0. */
uint8_t *grpc_reader_take(struct grpc_reader *r, size_t *ret_size);

/* True between the first byte of a message's prefix and its last byte: the end of the stream there is
 * INTERNAL. */
bool grpc_reader_inside(const struct grpc_reader *r);

void grpc_reader_free(struct grpc_reader *r);

/* A grpc-status value; whatever is not a number from 0 to 16 is GRPC_UNKNOWN. */
uint8_t grpc_code_parse(const uint8_t *at, size_t size);
uint8_t grpc_code_of_http(unsigned http_status);
uint8_t grpc_code_of_reset(uint32_t h2_error);
const char *grpc_code_name(uint8_t code);

/* Percent-decodes a grpc-message into at (NUL-terminated, cut at size). A broken escape stays as it is; the
 * log escapes what is not printable. Returns the length. */
size_t grpc_message_decode(const uint8_t *message, size_t n, char *at, size_t size);

/* content-type application/grpc, perhaps with +suffix or ;parameters. */
bool grpc_content_type(const uint8_t *at, size_t size);

#endif
