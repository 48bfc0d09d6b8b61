/* A proxy for one relay that cuts what is idle, as they do in the field: it hands HTTP/2 frames on in both
 * directions, and a connection whose stream has seen no DATA for some time, in either direction, gets
 * RST_STREAM on both sides. PINGs and WINDOW_UPDATEs are no DATA. Plaintext, and one stream a connection. */
#ifndef TESTS_LIB_CUTTER_H
#define TESTS_LIB_CUTTER_H

#include "common/loop.h"
#include "tests/relay/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct cutter_side {
	struct loop_source source; /* fd below 0: closed */
	struct relay_bytes in;     /* not yet a whole frame */
	struct relay_bytes out;
	bool greeted; /* the client's preface is through */
};

#define CUTTER_CONNECTIONS 16

struct cutter_connection {
	struct cutter *cutter;
	struct cutter_side worker, relay;
	struct loop_timer idle;
	uint32_t stream;
	bool cut;
};

struct cutter {
	struct loop *loop;
	struct loop_source listener;
	uint16_t port;
	uint16_t relay_port;
	uint32_t idle_ms;
	unsigned cuts;
	unsigned pings; /* of either side, without their acks */
	unsigned used;
	struct cutter_connection connections[CUTTER_CONNECTIONS];
};

/* Listens on 127.0.0.1 and moves while the loop does. It must not be on a test's stack. Failures end the
 * test. */
void cutter_start(struct cutter *cutter, struct loop *loop, uint16_t relay_port, uint32_t idle_ms);
void cutter_stop(struct cutter *cutter);

#endif
