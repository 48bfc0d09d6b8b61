/* The little of protobuf's and gRPC's wire that the relay writes and walks by hand: commands may hold any
 * byte, unknown fields pass through, and nothing is copied that needs no copy. */
#ifndef TESTS_RELAY_WIRE_H
#define TESTS_RELAY_WIRE_H

#include "tests/relay/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct relay_request;

#define RELAY_GRPC_PREFIX 5u

struct relay_field {
	uint32_t number;
	uint32_t type; /* 0: value; 1, 2, 5: at and size */
	uint64_t value;
	const uint8_t *at;
	size_t size;
};

/* The next field; false at the end, and where the bytes are no protobuf (then *at stays below end). */
bool relay_wire_next(const uint8_t **at, const uint8_t *end, struct relay_field *field);

/* proto3: zero and empty are left out. */
void relay_wire_number(struct relay_bytes *b, uint32_t number, uint64_t value);
void relay_wire_string(struct relay_bytes *b, uint32_t number, const void *data, size_t size);
/* Written even when empty: a member of a oneof. */
void relay_wire_message(struct relay_bytes *b, uint32_t number, const struct relay_bytes *message);

/* An Exec message, without a frame around it. */
void relay_wire_exec(struct relay_bytes *b, const struct relay_request *request);

/* gRPC's prefix: compressed flag 0, length big-endian. */
void relay_grpc_prefix(uint8_t prefix[RELAY_GRPC_PREFIX], size_t size);

/* The first whole message of in; the caller drops RELAY_GRPC_PREFIX + *ret_size bytes when it is done with
 * it. 1: there is one, 0: more bytes are needed, below 0: compressed (-EPROTO) or over limit (-EMSGSIZE). */
int relay_grpc_peek(const struct relay_bytes *in, size_t limit, const uint8_t **ret_at, size_t *ret_size);

#endif
