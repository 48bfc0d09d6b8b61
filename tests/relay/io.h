/* An HTTP/2 session on a socket, with or without TLS: the bytes between nghttp2 and the kernel. */
#ifndef TESTS_RELAY_IO_H
#define TESTS_RELAY_IO_H

#include "common/loop.h"

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct relay_io {
	struct loop *loop;
	struct loop_source source; /* fd below 0: closed */
	SSL *tls;                  /* NULL: plaintext */
	nghttp2_session *session;
	const uint8_t *unsent; /* what nghttp2 gave last and the socket did not take */
	size_t unsent_size;
	bool paused;     /* the socket is not read */
	bool mute;       /* nothing is written */
	bool want_write; /* the socket was full */
};

/* Reads what is there, at most *budget bytes (NULL: no bound), into the session. 0, or -errno when the
 * connection is over: -EPIPE for a clean end, -EPROTO for what nghttp2 or TLS will not have. */
int relay_io_read(struct relay_io *io, size_t *budget);

/* Writes what the session has until the socket is full. 0 or -errno. Not from inside an nghttp2 callback. */
int relay_io_flush(struct relay_io *io);

/* Tells epoll what is wanted now. */
void relay_io_watch(struct relay_io *io);

/* All that the session has was written. */
bool relay_io_idle(const struct relay_io *io);

/* Closes the socket; reset: by RST. Session and TLS are freed. */
void relay_io_close(struct relay_io *io, bool reset);

#endif
