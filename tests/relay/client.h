/* A gRPC client for unary requests, plaintext: what a harness needs of SandboxExec. */
#ifndef TESTS_RELAY_CLIENT_H
#define TESTS_RELAY_CLIENT_H

#include "tests/relay/bytes.h"
#include "tests/relay/io.h"

#include <stdbool.h>
#include <stdint.h>

struct relay_call {
	void (*message)(struct relay_call *call, const uint8_t *at,
			size_t size); /* for each that comes; may be NULL */
	void *owner;
	struct relay_bytes out;
	struct relay_bytes in;
	bool done;
	int grpc_status; /* -1: the call ended without one */
	char grpc_message[256];
};

struct relay_client {
	struct relay_io io;
	const char *authority;
	bool over; /* the connection is lost */
};

/* Connects to "host:port" or "[v6]:port"; blocks for that. 0, or -errno after a message on stderr. */
int relay_client_open(struct relay_client *client, struct loop *loop, const char *address);
void relay_client_close(struct relay_client *client);

/* Starts a call with one request message. The caller owns call, which must live until it is done. */
void relay_client_call(struct relay_client *client, struct relay_call *call, const char *path,
		       const struct relay_bytes *message);

/* Frees what the call holds. */
void relay_client_finish(struct relay_call *call);

#endif
