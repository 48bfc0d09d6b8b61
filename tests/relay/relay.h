/* Our own relay, for tests and for `make run`: SandboxWorker.Attach for workers, SandboxExec.Exec and Abort
 * for any gRPC client, as contract.md describes the real one, and misbehaviour on request.
 *
 * It lives in the caller's thread and moves only while a relay_wait… runs; a test that does not wait is a
 * relay that has stopped reading. Times are milliseconds; every wait ends at its timeout. All pointers that
 * are handed out stay valid until relay_stop (an exec: until relay_forget). */
#ifndef TESTS_RELAY_RELAY_H
#define TESTS_RELAY_RELAY_H

#include "common/loop.h"
#include "tests/relay/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct relay;
struct relay_stream;
struct relay_worker;
struct relay_terminal;

/* What a connection does wrong; each one takes the manners that are set when it is accepted. All zero: none.
 */
struct relay_manners {
	bool refuse;          /* end the stream with status OK after any Hello */
	bool mute;            /* take the connection, never write a byte */
	bool no_settings_ack; /* never answer the worker's SETTINGS */
	bool no_ping_ack;     /* never answer its PINGs */
	bool byte_frames;     /* messages leave in DATA frames of one byte */
	bool early_headers;   /* response headers at once, where the real relay waits for its first message */
	bool hold_window;     /* never give window back */
	bool set_initial_window; /* SETTINGS_INITIAL_WINDOW_SIZE = initial_window */
	uint32_t initial_window;
	uint32_t read_rate; /* bytes a second that are read; 0: all */
};

struct relay_token {
	const char *sandbox_id;
	const char *token;
};

/* Sees what an Attach brings as it comes, once the relay has noted it. It must not wait in there. */
struct relay_observer {
	void (*chunk)(void *owner, const struct relay_worker *worker, uint64_t req_id, int stream,
		      const uint8_t *data, size_t size);
	/* message is there until it returns */
	void (*terminal)(void *owner, const struct relay_worker *worker, uint64_t req_id,
			 const struct relay_terminal *what);
	void *owner;
};

struct relay_options {
	const char *address; /* numeric; NULL: 127.0.0.1 */
	uint16_t port;       /* 0: any that is free */
	const char *token;   /* NULL: a worker without one of its own is refused */
	const struct relay_token *tokens;
	size_t token_count;
	const char *cert_file; /* PEM; NULL: plaintext */
	const char *key_file;
	const char *client_ca_file; /* PEM; not NULL: clients must show a certificate of it */
	struct relay_manners manners;
	const struct relay_observer *observer; /* NULL: none */
	bool verbose;                          /* log who comes and goes (common/log.h) */
};

/* One Attach that was accepted. */
struct relay_worker {
	struct relay_worker *next; /* the one before it */
	struct relay *relay;
	struct relay_stream *stream; /* NULL: it is gone */
	unsigned number;             /* from 1, over all workers of this relay */
	struct Sandbox__V1__Hello *hello;
	unsigned heartbeats;
	unsigned pings; /* PINGs on its connection that were no acks */
	uint64_t attached_ms;
	uint64_t gone_ms;
	bool ended; /* it half-closed its side */
	bool reset; /* it sent RST_STREAM */
	uint32_t reset_code;
	bool said_goaway;   /* GOAWAY came before the connection ended */
	long client_serial; /* of the certificate that it showed; 0: none */
};

enum relay_terminal_kind { RELAY_NONE, RELAY_END, RELAY_ERROR };

struct relay_terminal {
	enum relay_terminal_kind kind;
	int32_t exit_code;
	bool truncated;
	char *message; /* of an ExecError */
	size_t chunks; /* Chunks before it */
	uint64_t at_ms;
	unsigned worker; /* number of the Attach that brought it */
};

struct relay_chunk {
	int stream; /* as on the wire: 0, 1, 2 */
	uint32_t size;
	uint64_t at_ms;
};

#define RELAY_TERMINALS 8

/* All that came for one exec. */
struct relay_exec {
	struct relay_exec *next;
	struct relay *relay;
	struct relay_worker *worker;  /* the last it was sent to */
	struct relay_stream *harness; /* a SandboxExec.Exec call that waits for it, else NULL */
	uint64_t req_id;
	bool count_only;        /* bytes are counted, not kept */
	struct relay_bytes out; /* streams 0 and 1 */
	struct relay_bytes err;
	uint64_t out_bytes;
	uint64_t err_bytes;
	struct relay_chunk *chunks;
	size_t chunk_count;
	size_t chunk_room;
	unsigned deliveries;
	unsigned terminal_count; /* may exceed RELAY_TERMINALS */
	struct relay_terminal terminal[RELAY_TERMINALS];
	uint64_t sent_ms;
};

struct relay_request {
	uint64_t req_id;
	const char *command;
	size_t command_size; /* 0: strlen(command) */
	const void *input;   /* stdin */
	size_t input_size;
	uint32_t timeout_s;
	bool streaming;
};

/* Listens. NULL: a message has gone to stderr. Strings in options must outlive the relay. */
struct relay *relay_start(const struct relay_options *options);
void relay_stop(struct relay *relay);

uint16_t relay_port(const struct relay *relay);
struct loop *relay_loop(struct relay *relay);             /* for sources of the caller's own */
struct relay_manners *relay_manners(struct relay *relay); /* for connections to come */

/* Stop listening, so that a dial is refused; and listen again on the same port. 0 or -errno. */
void relay_deaf(struct relay *relay);
int relay_listen(struct relay *relay);

unsigned relay_connections(const struct relay *relay); /* accepted so far */
unsigned relay_refusals(const struct relay *relay);    /* Hellos that were turned away */
unsigned relay_open(const struct relay *relay);        /* connections that are open */
/* Attaches that came with this token, whether they were accepted or not. */
unsigned relay_token_uses(const struct relay *relay, const char *token);

/* Reads cert_file, key_file and client_ca_file anew, for connections to come. -EINVAL: a message has gone to
 * stderr, and the old ones stay. */
int relay_renew_tls(struct relay *relay);

/* What peers did against the rules, one line each; empty when nothing. Never NULL. */
const char *relay_complaints(const struct relay *relay);
/* Forgets them: a test had asked for it. */
void relay_forgive(struct relay *relay);

/* Runs the relay until done says so. False: the time is over. */
bool relay_wait(struct relay *relay, bool (*done)(const void *arg), const void *arg, uint64_t timeout_ms);
/* Runs it for that long. */
void relay_run(struct relay *relay, uint64_t ms);

/* The newest attached worker, NULL when there is none. */
struct relay_worker *relay_attached(struct relay *relay);
/* Waits until a worker with a number above after is attached. NULL: none came. */
struct relay_worker *relay_wait_attached(struct relay *relay, unsigned after, uint64_t timeout_ms);
bool relay_wait_gone(struct relay_worker *worker, uint64_t timeout_ms);
bool relay_wait_refusals(struct relay *relay, unsigned count, uint64_t timeout_ms);
bool relay_wait_connections(struct relay *relay, unsigned count, uint64_t timeout_ms);

/* Sends an Exec and opens a record for what comes: frames of an id go to its newest record. */
struct relay_exec *relay_exec(struct relay_worker *worker, const struct relay_request *request);
/* Sends an Exec that belongs to an open record: a redelivery, or other work under the same id. */
void relay_exec_again(struct relay_exec *exec, struct relay_worker *worker,
		      const struct relay_request *request);
void relay_abort(struct relay_worker *worker, uint64_t req_id);
/* A message as it is: an encoded ServerFrame, or anything else. */
void relay_send_message(struct relay_worker *worker, const void *message, size_t size);
/* Bytes as they are on the stream, without a prefix. */
void relay_send_bytes(struct relay_worker *worker, const void *bytes, size_t size);
/* True when all that was sent has left for the socket. */
bool relay_sent(const struct relay_worker *worker);
bool relay_wait_sent(struct relay_worker *worker, uint64_t timeout_ms);

/* The first terminal frame; kind RELAY_NONE where none came in time. */
const struct relay_terminal *relay_wait_end(struct relay_exec *exec, uint64_t timeout_ms);
bool relay_wait_terminals(struct relay_exec *exec, unsigned count, uint64_t timeout_ms);
bool relay_wait_chunks(struct relay_exec *exec, size_t count, uint64_t timeout_ms);
bool relay_wait_bytes(struct relay_exec *exec, uint64_t out_bytes, uint64_t timeout_ms);
void relay_forget(struct relay_exec *exec);

/* --- misbehaviour, at once, on the worker's connection --- */
enum relay_cut {
	RELAY_CUT_CLOSE,  /* close(2) of the socket, HTTP/2 unended */
	RELAY_CUT_RESET,  /* TCP RST */
	RELAY_CUT_MIDDLE, /* half of a message, then close */
};

void relay_cut(struct relay_worker *worker, enum relay_cut how);
/* Stops reading the socket, or reads on. */
void relay_stall(struct relay_worker *worker, bool on);
/* Withholds WINDOW_UPDATE, or gives back all that was withheld. */
void relay_hold_window(struct relay_worker *worker, bool on);
void relay_read_rate(struct relay_worker *worker, uint32_t bytes_per_s);
/* A new SETTINGS_INITIAL_WINDOW_SIZE for the open stream. */
void relay_shrink_window(struct relay_worker *worker, uint32_t size);
/* GOAWAY that includes the stream; the connection stays. */
void relay_goaway(struct relay_worker *worker);
/* GOAWAY for 2^31-1, which warns that another one follows. */
void relay_goaway_soon(struct relay_worker *worker);
/* GOAWAY that excludes the stream; the connection stays. */
void relay_goaway_without(struct relay_worker *worker);
/* GOAWAY ENHANCE_YOUR_CALM "too_many_pings", then close. */
void relay_calm(struct relay_worker *worker);
/* Ends the worker's stream with a grpc-status. */
void relay_end_stream(struct relay_worker *worker, int grpc_status, const char *message);
/* RST_STREAM with an HTTP/2 error code. */
void relay_reset_stream(struct relay_worker *worker, uint32_t code);
void relay_byte_frames(struct relay_worker *worker, bool on);

#endif
