/* Runs the real dialer to its end and keeps what it logged. */
#ifndef TESTS_LIB_DIALLING_H
#define TESTS_LIB_DIALLING_H

#include "netd/settings.h"
#include "netd/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dialling {
	struct loop loop;
	bool called;
	struct transport *transport;
	struct transport_end end;
	char log[8192]; /* what was written on stderr meanwhile */
};

/* Ignores SIGPIPE, dials, and waits until done was called; the test fails when it is called twice or leaves a
 * timer behind. dialling_end frees the transport and the loop. */
void dialling_run(struct dialling *d, struct settings *s, unsigned limit_ms);
/* The same with a greeting, which a peer must answer with SETTINGS to be good. */
void dialling_greet(struct dialling *d, struct settings *s, const char *greeting, unsigned limit_ms);
void dialling_end(struct dialling *d);

/* Fails the test unless the dial failed with the class, in exactly one line of log, which holds text. */
void dialling_failed(const struct dialling *d, uint8_t close_class, const char *text);

/* Reads at least one byte, or 0 at the end of the stream, or -errno; waits as the transport says. */
ssize_t dialling_read(struct transport *t, void *bytes, size_t size);

/* Writes all. 0 or -errno. */
int dialling_write(struct transport *t, const void *bytes, size_t size);

#endif
