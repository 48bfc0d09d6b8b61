/* A scripted relay for a connection attempt (netd/attach.h): frames from memory in place of a socket, a clock
 * that goes on only when the attempt waits, and a channel whose other end the test reads afterwards. What the
 * real ones would take from the libraries the test itself defines, as SCRIPT_WORLD. */
#ifndef TESTS_LIB_SCRIPT_H
#define TESTS_LIB_SCRIPT_H

#include "common/clock.h"
#include "netd/attach.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define SCRIPT_MAX (24u * LIMIT_MIB)

enum {
	SCRIPT_DATA,
	SCRIPT_HEADERS,
	SCRIPT_PRIORITY,
	SCRIPT_RST_STREAM,
	SCRIPT_SETTINGS,
	SCRIPT_PUSH_PROMISE,
	SCRIPT_PING,
	SCRIPT_GOAWAY,
	SCRIPT_WINDOW_UPDATE,
};
enum { SCRIPT_END_STREAM = 1, SCRIPT_ACK = 1, SCRIPT_END_HEADERS = 4, SCRIPT_PADDED = 8 };

struct script {
	uint8_t *bytes;
	size_t size;
	size_t gate; /* what lies beyond waits for Hello */
	size_t at;
	size_t most; /* bytes of one read */
	bool silent; /* after the last byte nothing comes, not even the end */
	/* times, from the start, before which what lies beyond an offset has not come */
	struct {
		size_t offset;
		uint64_t ms;
	} later[16];
	size_t later_count;
	uint64_t dial_ms;      /* what the dial takes */
	uint64_t freeze_at_ms; /* from the start: all stands still, but what comes for us */
	uint64_t freeze_ms;    /* for so long */
	size_t room;           /* bytes that may still be written; SIZE_MAX: no end */
	int write_error;       /* of the first write after Hello and of all that follow; 0: none */
	size_t after_error;    /* what lies beyond comes between a read and the write that fails */
	size_t after_end;      /* what lies beyond waits for our END_STREAM */
	uint64_t drain_ms;     /* from the start: execd says DRAIN; 0: never */
	int read_error;        /* at the end of the script, in place of the end of the stream */
	const char *read_why;  /* what TLS says of it */
	bool failed;           /* a write has failed */
	bool hello;            /* the first DATA frame was written */
	bool shut;             /* transport_shutdown was called */
	size_t out_at_shut;    /* bytes written until then */
	uint8_t out[65536];    /* all that was written, up to its size */
	size_t out_used;
	int event;
	uint64_t began_ms;
	uint64_t ended_ms; /* after attach_run, from the start */
	char log[4096];    /* what was written on stderr meanwhile */
};

extern struct script script;
extern struct attach script_attach;
extern struct settings script_settings; /* set by script_begin; a test may change it before it runs */
extern struct records script_records;

/* A script that begins with SETTINGS, and of which the rest waits for Hello. */
void script_begin(void);
/* The same without SETTINGS: what follows is there at once. */
void script_begin_empty(void);

void script_raw(const void *bytes, size_t size);
void script_frame(uint8_t type, uint8_t flags, uint32_t stream, const void *payload, size_t size);
void script_u32(uint8_t type, uint32_t stream, uint32_t a);
void script_goaway(uint32_t last, uint32_t code, const char *debug);
/* A block on stream 1: name, value, …, NULL. */
void script_headers(uint8_t flags, const char *first, ...);
void script_response(void);
void script_trailers(const char *status, const char *message);
/* One message of up to 16,000 bytes in one DATA frame. */
void script_message(uint8_t flags, const void *body, size_t size);
/* What follows comes so many ms after the start, and not before. */
void script_later(uint64_t ms);

/* Runs the attempt to its end. */
struct channel_closed script_run(void);
/* Afterwards: the log has this. */
void script_said(const char *text);
/* Afterwards: the next record for execd that is not ALIVE, 0: none. */
enum channel_type script_next(struct channel_header *ret);
/* Closes the channel after script_run. */
void script_end(void);

/* Runs, and fails the test unless it ends so, with CLOSED as the last record, and leaves in good order where
 * there is somebody to leave: the stream ended or reset, GOAWAY, then the end of our side. */
void script_expect(const char *what, uint8_t close_class, uint8_t grpc_status);

/* Frames of a type that were written with all of those flags. */
unsigned script_sent(uint8_t type, uint8_t flags);
/* The value of a field of the request, "" where it has none. */
void script_sent_field(const char *name, char *ret, size_t size);
/* The last of a type, or NULL: its payload. */
const uint8_t *script_last(uint8_t type, size_t *ret_size);

ssize_t script_read(void *buf, size_t size);
ssize_t script_writev(const struct iovec *iov, int count);
int script_dial(const void *greeting, size_t size,
		void (*done)(void *owner, struct transport *t, const struct transport_end *end), void *owner);
uint64_t script_now_ms(void);
int script_wait(int epfd, struct epoll_event *events, int max, int timeout_ms);

#define SCRIPT_WORLD                                                                                         \
	int transport_dial(struct loop *loop, struct settings *settings, const void *greeting, size_t size,  \
			   void (*done)(void *owner, struct transport *t, const struct transport_end *end),  \
			   void *owner)                                                                      \
	{                                                                                                    \
		(void)loop, (void)settings;                                                                  \
		return script_dial(greeting, size, done, owner);                                             \
	}                                                                                                    \
	int transport_fd(const struct transport *t)                                                          \
	{                                                                                                    \
		(void)t;                                                                                     \
		return script.event;                                                                         \
	}                                                                                                    \
	ssize_t transport_read(struct transport *t, void *buf, size_t size)                                  \
	{                                                                                                    \
		(void)t;                                                                                     \
		return script_read(buf, size);                                                               \
	}                                                                                                    \
	ssize_t transport_writev(struct transport *t, const struct iovec *iov, int count)                    \
	{                                                                                                    \
		(void)t;                                                                                     \
		return script_writev(iov, count);                                                            \
	}                                                                                                    \
	const char *transport_why(const struct transport *t)                                                 \
	{                                                                                                    \
		(void)t;                                                                                     \
		return script.read_why;                                                                      \
	}                                                                                                    \
	void transport_forget(struct transport *t)                                                           \
	{                                                                                                    \
		(void)t;                                                                                     \
	}                                                                                                    \
	void transport_shutdown(struct transport *t)                                                         \
	{                                                                                                    \
		(void)t;                                                                                     \
		script.shut = true;                                                                          \
		script.out_at_shut = script.out_used;                                                        \
	}                                                                                                    \
	void transport_free(struct transport *t)                                                             \
	{                                                                                                    \
		(void)t;                                                                                     \
	}                                                                                                    \
	uint64_t clock_now_ms(void)                                                                          \
	{                                                                                                    \
		return script_now_ms();                                                                      \
	}                                                                                                    \
	uint64_t clock_now_us(void)                                                                          \
	{                                                                                                    \
		return script_now_ms() * 1000;                                                               \
	}                                                                                                    \
	int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)                     \
	{                                                                                                    \
		return script_wait(epfd, events, maxevents, timeout);                                        \
	}

#endif
