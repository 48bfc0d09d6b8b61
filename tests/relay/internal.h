/* What the relay's own files share. Callers include relay.h. */
#ifndef TESTS_RELAY_INTERNAL_H
#define TESTS_RELAY_INTERNAL_H

#include "proto/sandbox/v1/sandbox.pb-c.h"
#include "tests/relay/bytes.h"
#include "tests/relay/io.h"
#include "tests/relay/relay.h"

#define RELAY_MESSAGE_MAX         (4u * 1024 * 1024)  /* from a worker: grpc-js's default */
#define RELAY_HARNESS_MESSAGE_MAX (96u * 1024 * 1024) /* from a harness */

/* grpc-status (gRPC's statuscodes.md) */
#define RELAY_STATUS_OK               0
#define RELAY_STATUS_INVALID_ARGUMENT 3
#define RELAY_STATUS_EXHAUSTED        8
#define RELAY_STATUS_ABORTED          10
#define RELAY_STATUS_UNIMPLEMENTED    12
#define RELAY_STATUS_INTERNAL         13
#define RELAY_STATUS_UNAVAILABLE      14

enum relay_method { RELAY_METHOD_UNKNOWN, RELAY_METHOD_ATTACH, RELAY_METHOD_EXEC, RELAY_METHOD_ABORT };

struct relay_stream {
	struct relay_stream *next;
	struct relay_conn *conn;
	int32_t id;
	enum relay_method method;
	char verb[16]; /* the request's headers */
	char path[128];
	char content_type[64];
	char te[32];
	char authorization[9216];
	struct relay_bytes in;
	struct relay_bytes out;
	bool responded; /* response headers are submitted */
	bool ending;    /* trailers follow what is in out */
	bool peer_ended;
	int status;
	char message[256];
	size_t held;                 /* bytes received, window not given back */
	struct relay_worker *worker; /* Attach, after its Hello */
	struct relay_exec *exec;     /* Exec */
};

struct relay_conn {
	struct relay_conn *next;
	struct relay *relay;
	struct relay_io io;
	struct relay_stream *streams;
	struct relay_worker *worker; /* the last that attached here */
	struct relay_manners manners;
	struct loop_timer rate_timer;
	size_t rate_budget;
	unsigned pings;
	bool said_goaway;
	bool draining; /* our side is shut; what comes is thrown away until the end */
	bool over;     /* to be closed by relay_flush */
};

struct relay {
	struct relay_options options;
	struct relay_manners manners;
	struct loop loop;
	struct loop_source listener;
	uint16_t port;
	SSL_CTX *tls;
	struct relay_conn *conns;
	struct relay_worker *workers; /* newest first */
	struct relay_exec *execs;     /* newest first */
	unsigned worker_count;
	unsigned connections;
	unsigned refusals;
	struct relay_bytes complaints;     /* NUL-terminated */
	struct relay_bytes authorizations; /* of each Attach, NUL-terminated */
	bool busy;                         /* in a callback, or closing: whoever set it flushes afterwards */
	bool unflushed;                    /* relay_flush was called meanwhile */
};

/* relay.c */
void relay_complain(struct relay *relay, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes what all connections have, closes those that are over. Called while the relay is busy (from inside a
 * callback of nghttp2, or while a stream is being closed) it leaves the work to whoever is busy. */
void relay_flush(struct relay *relay);

/* tls.c: NULL after a message on stderr. */
SSL_CTX *relay_tls_context(const struct relay_options *options);

/* conn.c */
void relay_conn_accept(struct relay *relay, int fd);
void relay_conn_close(struct relay_conn *conn, bool reset);
/* Sends FIN, then reads and forgets until the peer closes: what was written arrives. */
void relay_conn_drain(struct relay_conn *conn);
void relay_conn_hold(struct relay_conn *conn, bool on);
void relay_conn_rate(struct relay_conn *conn, uint32_t bytes_per_s);

/* stream.c: called by conn.c out of nghttp2's callbacks; they record and submit only. */
struct relay_stream *relay_stream_open(struct relay_conn *conn, int32_t id);
void relay_stream_header(struct relay_stream *stream, const uint8_t *name, size_t name_size,
			 const uint8_t *value, size_t value_size);
void relay_stream_requested(struct relay_stream *stream);
void relay_stream_data(struct relay_stream *stream, const uint8_t *data, size_t size);
void relay_stream_half_closed(struct relay_stream *stream);
void relay_stream_closed(struct relay_stream *stream);

void relay_stream_send(struct relay_stream *stream, const struct relay_bytes *message);
void relay_stream_send_raw(struct relay_stream *stream, const void *bytes, size_t size);
void relay_stream_end(struct relay_stream *stream, int status, const char *message);

/* attach.c */
void relay_attach_message(struct relay_stream *stream, const uint8_t *at, size_t size);
void relay_attach_gone(struct relay_stream *stream);
void relay_attach_exec(struct relay_worker *worker, const uint8_t *exec, size_t size);

/* execs.c */
struct relay_exec *relay_execs_open(struct relay_worker *worker, uint64_t req_id);
struct relay_exec *relay_execs_find(struct relay *relay, uint64_t req_id);
void relay_execs_chunk(struct relay_worker *worker, const Sandbox__V1__Chunk *chunk);
void relay_execs_end(struct relay_worker *worker, const Sandbox__V1__End *end);
void relay_execs_error(struct relay_worker *worker, const Sandbox__V1__ExecError *error);

/* harness.c */
void relay_harness_exec(struct relay_stream *stream, const uint8_t *at, size_t size);
void relay_harness_abort(struct relay_stream *stream, const uint8_t *at, size_t size);
void relay_harness_gone(struct relay_stream *stream);
/* An event for the call that waits for exec, if one does; terminal: the call is over. number: ExecEvent's
 * field. */
void relay_harness_event(struct relay_exec *exec, uint32_t number, const ProtobufCMessage *event,
			 bool terminal);
void relay_harness_worker_lost(struct relay_worker *worker);

#endif
