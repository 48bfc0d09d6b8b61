/* One connection attempt: dial, Attach, serve, leave. Hello first, Heartbeats, keepalive, GOAWAY, and the
 * verdict on why it is over (grpc-client.md in the design). */
#ifndef NETD_ATTACH_H
#define NETD_ATTACH_H

#include "common/channel.h"
#include "common/loop.h"
#include "netd/grpc.h"
#include "netd/h2.h"
#include "netd/records.h"
#include "netd/sched.h"
#include "netd/settings.h"
#include "netd/transport.h"

#include <stdbool.h>
#include <stdint.h>

#define ATTACH_READS       16u   /* of H2_READ bytes in one pass */
#define ATTACH_LAST_READS  16u   /* such passes, for what a peer said that is gone */
#define ATTACH_DRAIN_MS    1000u /* DRAIN: for what is queued and our END_STREAM to leave */
#define ATTACH_TRAILERS_MS 300u  /* then, for the relay's trailers */
#define ATTACH_REFUSED_MS  1000u /* an OK so soon after Hello is how a relay refuses */
#define ATTACH_LEAVE_MS    200u  /* for RST_STREAM and GOAWAY to leave, and again for the peer's FIN */

enum attach_state {
	ATTACH_DIALLING,
	ATTACH_PREFACE, /* connected: until the peer's SETTINGS are complete */
	ATTACH_HELLO,   /* the request is on its way: until Hello is written */
	ATTACH_SERVING,
	ATTACH_DRAINING, /* what is queued leaves */
	ATTACH_FINISHED, /* our END_STREAM leaves; the relay's trailers may come */
	ATTACH_LEAVING,  /* GOAWAY leaves */
	ATTACH_CLOSING,  /* FIN is sent; reading to the end, lest a reset overtakes our last frames */
	ATTACH_OVER,
};

struct attach {
	enum attach_state state;
	struct loop *loop;
	struct settings *settings;
	struct records *records;
	struct transport *transport;
	struct loop_source source;
	bool readable;
	struct h2 h2;
	struct grpc_reader reader;
	struct sched sched;
	struct loop_timer deadline; /* of the state */
	struct loop_timer heartbeat;
	struct loop_timer keepalive; /* stopped while a PING is out */
	struct loop_watch handshake; /* from the dial to Hello, whatever comes */
	struct loop_watch ack;       /* of our PING */
	uint64_t hello_ms;           /* Hello was written */
	uint64_t heard_ms;           /* the last byte of the peer */
	bool goaway_told;
	struct channel_closed closed; /* the verdict; class 0: none yet */
	uint8_t greeting[H2_GREETING];
	size_t greeting_size;
	uint8_t buf[H2_READ];
};

/* Runs to the end. records has come as far as DIAL. a->closed is the verdict, and what there is to log about
 * it has been logged. 0, or -errno when it could not even begin. */
int attach_run(struct attach *a, struct loop *loop, struct settings *settings, struct records *records);

/* attach_end.c. What the peer has done to the call so far: true when that ends it (the verdict is given). */
bool attach_judge(struct attach *a, uint64_t now_ms);
/* Gives a verdict, logs it, and starts to leave: RST_STREAM, GOAWAY, close_notify and FIN, in ATTACH_LEAVE_MS
 * each. Only the first verdict counts. */
void attach_fail(struct attach *a, uint8_t close_class, uint8_t grpc_status, const char *why);
/* The connection has ended (err 0), or a read or write of it failed: a verdict, unless there is one. */
void attach_lost(struct attach *a, int err);
/* Goes on with leaving: to be called after each pass. */
void attach_leave(struct attach *a, uint64_t now_ms);
/* DRAIN has come. */
void attach_drain(struct attach *a, uint64_t now_ms);
/* The deadline of the state has passed. */
void attach_deadline(struct loop_timer *timer, uint64_t now_ms);
/* Hello is not out in time. */
void attach_no_handshake(struct loop_watch *watch, uint64_t now_ms);

#endif
