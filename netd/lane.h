/* One connection of the race, from TCP to the peer's SETTINGS: the proxy's CONNECT, TLS, and the greeting. No
 * token: that goes over the one that is chosen. */
#ifndef NETD_LANE_H
#define NETD_LANE_H

#include "common/address.h"
#include "common/loop.h"
#include "netd/proxy.h"
#include "netd/settings.h"
#include "netd/tls.h"
#include "netd/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANE_FIRST 9u /* the head of the first frame */

enum lane_phase { LANE_PROXY, LANE_TLS, LANE_SETTINGS };

struct lane;

/* What all lanes of a dial share. */
struct lane_plan {
	struct loop *loop;
	const struct settings *settings;
	char request[PROXY_REQUEST_MAX]; /* to the proxy; holds its password */
	size_t request_size;             /* 0: no proxy */
	struct tls_setup *tls;           /* NULL: plain */
	const uint8_t *greeting;         /* size 0: a connection is good without it */
	size_t greeting_size;
	/* From the loop, once a lane: it is good (lane_take), or it is not; why: until this returns. */
	void (*good)(void *owner, struct lane *lane);
	void (*failed)(void *owner, struct lane *lane, uint8_t close_class, const char *why);
	void *owner;
};

struct lane {
	struct lane_plan *plan; /* NULL: not in use */
	struct address to;
	enum lane_phase phase;
	struct loop_source source;
	uint32_t watched; /* EPOLL* it is in the loop with, 0: not in it */
	size_t request_sent;
	struct proxy_reply reply;
	struct tls *tls; /* until the transport has it */
	struct transport *transport;
	const char *security; /* "plaintext", "TLSv1.3" */
	size_t greeting_sent;
	uint8_t first[LANE_FIRST];
	size_t first_count;
};

/* Takes fd over. May call good or failed at once. */
void lane_start(struct lane *lane, struct lane_plan *plan, int fd, const struct address *to);

/* The transport of one that is good: nothing of it is in the loop any more. */
struct transport *lane_take(struct lane *lane);

/* Closes what there is; harmless twice, and after lane_take. */
void lane_stop(struct lane *lane);

#endif
