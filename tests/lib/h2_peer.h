/* A relay inside the test's own process: an HTTP/2 server session, and memory in place of netd's transport.
 * The peer's window opens only when the test says so. The test itself defines transport_writev() as
 * H2_PEER_TRANSPORT, which keeps netd/transport.c out of the link. */
#ifndef TESTS_LIB_H2_PEER_H
#define TESTS_LIB_H2_PEER_H

#include "netd/h2.h"
#include "netd/sched.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_PEER_WIRE (4u * 1024u * 1024u)
#define H2_PEER_BODY (32u * 1024u * 1024u)

struct h2_peer {
	nghttp2_session *session;
	struct h2 *h2; /* the client */
	struct loop loop;
	int32_t stream;
	uint8_t *wire; /* written by the client, not yet received */
	size_t wire_used;
	size_t socket_room; /* bytes that the client may still write; SIZE_MAX: no end */
	unsigned writes;
	uint8_t *body; /* of the request: all DATA received */
	size_t body_used;
	size_t body_read; /* by h2_peer_next */
	bool ended;       /* END_STREAM received */
	bool reset;
	unsigned pings;
	size_t data_frames;
	size_t data_sizes[4096]; /* of the first DATA frames */
};

#define H2_PEER_TRANSPORT                                                                                    \
	ssize_t transport_writev(struct transport *t, const struct iovec *iov, int count)                    \
	{                                                                                                    \
		(void)t;                                                                                     \
		return h2_peer_writev(iov, count);                                                           \
	}

/* Writes to the peer started last, as far as its socket_room goes. */
ssize_t h2_peer_writev(const struct iovec *iov, int count);

/* What a WorkerFrame said. */
struct h2_peer_frame {
	int kind; /* 0: none left; else its field number in WorkerFrame */
	uint64_t req_id;
	unsigned stream;
	const uint8_t *data;
	size_t size;
	int32_t exit_code;
	bool truncated;
	char message[128];
};

/* A client with an open stream and a Hello sent, and a server whose SETTINGS say window (65535: the default).
 */
void h2_peer_start(struct h2_peer *p, struct h2 *h, struct sched *s, uint32_t window,
		   void (*done)(void *owner, struct output *o), void *owner, uint64_t now_ms);
void h2_peer_stop(struct h2_peer *p);

/* Both directions until nothing moves: what the client wrote is received, what the server has to say is fed
 * to it. */
void h2_peer_exchange(struct h2_peer *p);

/* Opens the windows of the stream and the connection by n bytes that were received. */
void h2_peer_consume(struct h2_peer *p, size_t n);

/* The next WorkerFrame of the body. */
struct h2_peer_frame h2_peer_next(struct h2_peer *p);

#endif
