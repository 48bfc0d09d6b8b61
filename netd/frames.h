/* The messages of sandbox.v1 on the wire. ServerFrame is walked by hand: stdin stays where it is in the
 * message, a NUL inside a command is seen, unknown fields cost nothing, and nothing is allocated for what a
 * relay may send. WorkerFrame is packed by protobuf-c, but a Chunk's head, which is put right before bytes
 * that were read already. Everything that is encoded here has its gRPC prefix in front. */
#ifndef NETD_FRAMES_H
#define NETD_FRAMES_H

#include "common/outcome.h"
#include "netd/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRPC_PREFIX 5u /* compressed flag u8, length u32 big-endian */

enum frames_kind {
	FRAMES_NOTHING = 0, /* empty, or a member that this worker does not know: ignored */
	FRAMES_EXEC,
	FRAMES_ABORT,
};

struct frames_server {
	enum frames_kind kind;
	bool has_req_id;
	uint64_t req_id;
	/* of an Exec; pointers go into the message, NULL when empty */
	const uint8_t *command;
	const uint8_t *input; /* stdin */
	size_t command_len;
	size_t input_len;
	uint32_t timeout_s;
	bool streaming;
};

/* Decodes a ServerFrame. As protobuf says: of several members of the oneof the last one counts, one that
 * comes twice is merged, of a field that comes twice the last one counts, a field of another wire type than
 * ours is unknown. 0, or -EBADMSG when it cannot be decoded: kind and req_id (has_req_id) then say what was
 * seen before. */
int frames_decode(const uint8_t *at, size_t size, struct frames_server *ret);

/* Finds kind and req_id in a ServerFrame that is too long to be kept, from bytes in any split. */
struct frames_skim {
	enum frames_kind kind;
	bool has_req_id;
	uint64_t req_id;
	/* state of the walk */
	bool broken;
	unsigned state;
	unsigned field;
	unsigned bits; /* of the varint under way */
	uint64_t varint;
	uint64_t skip;   /* bytes to pass over */
	uint64_t inside; /* bytes left of the member that is being walked, 0: at the top */
};

void frames_skim_init(struct frames_skim *s);
void frames_skim_feed(struct frames_skim *s, const uint8_t *at, size_t size);

/* Hello. Its strings were checked to be UTF-8 when they were set (settings.c). The length, or 0 when size is
 * too small. */
size_t frames_hello(uint8_t *at, size_t size, const struct settings *settings);
#define FRAMES_HELLO_MAX 8192u

extern const uint8_t frames_heartbeat[GRPC_PREFIX + 2];

/* The terminal frame of an outcome (contract.md 4): End or ExecError. The length; 0 for OUTCOME_LOST, which
 * is owed none. */
size_t frames_terminal(uint8_t at[], size_t size, uint64_t req_id, const struct outcome *outcome,
		       bool truncated);
#define FRAMES_TERMINAL_MAX 512u

/* Writes the head of a Chunk of n bytes of data so that it ends where the data begins. Its length, at most
 * FRAMES_CHUNK_HEAD. */
size_t frames_chunk_head(uint8_t *data, uint64_t req_id, uint8_t stream, size_t n);
#define FRAMES_CHUNK_HEAD 26u

/* Data bytes of a Chunk that is FRAMES_CHUNK bytes with its head: exactly two full DATA frames. */
size_t frames_chunk_data(uint64_t req_id);
#define FRAMES_CHUNK 32768u

#endif
