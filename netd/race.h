/* The race for a TCP connection among a host's addresses (RFC 8305, Happy Eyeballs v2). */
#ifndef NETD_RACE_H
#define NETD_RACE_H

#include "common/address.h"
#include "common/buf.h"
#include "common/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RACE_PER_FAMILY    8u /* more addresses of one family are left out */
#define RACE_ATTEMPTS      (2u * RACE_PER_FAMILY)
#define RACE_STAGGER_MS    250u /* RFC 8305 5: Connection Attempt Delay */
#define RACE_AAAA_DELAY_MS 50u  /* RFC 8305 3: Resolution Delay, when A came first */

/* Addresses that were not tried yet. v6 comes first, then the families take turns (RFC 8305 4). */
struct race_order {
	struct race_family {
		struct address list[RACE_PER_FAMILY];
		unsigned count;
		unsigned next;
	} v6, v4;
	bool v4_turn;
};

/* Adds at the end of its family's list; one that is there already, or too many, is left out. */
void race_order_add(struct race_order *o, const struct address *a);

/* Whose turn it is, into *ret. False: none is left. */
bool race_order_take(struct race_order *o, struct address *ret);

struct race;

struct race_attempt {
	struct loop_source source; /* fd -1: free */
	struct address to;
};

struct race {
	struct loop *loop;
	uint16_t port;
	bool started;
	bool complete; /* no more addresses will come */
	bool over;
	struct race_order order;
	struct race_attempt attempts[RACE_ATTEMPTS];
	unsigned pending;
	struct loop_timer stagger;
	struct loop_timer resolution;
	char text[1024];
	struct buf_text failures; /* "192.0.2.1:443: Connection refused, …" */
	void (*done)(void *owner, int fd, const struct address *to);
	void *owner;
};

/* done is called once, with a connected, tuned, non-blocking descriptor (the caller's) and its address, or
 * with -1, NULL when every address failed (race->failures says how). It may be called from within race_add.
 */
void race_init(struct race *race, struct loop *loop, uint16_t port,
	       void (*done)(void *owner, int fd, const struct address *to), void *owner);

/* More addresses of the host (ports are ignored); complete when no more will come. */
void race_add(struct race *race, const struct address *list, size_t count, bool complete);

/* Ends all attempts; done is not called any more. Those without an answer are noted in race->failures. */
void race_stop(struct race *race);

#endif
