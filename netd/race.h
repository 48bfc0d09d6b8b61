/* The race for a connection among a host's addresses (RFC 8305, Happy Eyeballs v2). A connection is no
 * victory: whoever runs the race says whether it is good for something, and until then it goes on. */
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
#define RACE_STAGGER_MS    250u  /* RFC 8305 5: Connection Attempt Delay */
#define RACE_CONNECTED_MS  1000u /* the same, once a connection stands and has yet to show that it is good */
#define RACE_AAAA_DELAY_MS 50u   /* RFC 8305 3: Resolution Delay, when A came first */

/* Addresses that were not tried yet. v6 comes first, then the families take turns (RFC 8305 4). */
struct race_order {
	struct race_family {
		struct address list[RACE_PER_FAMILY];
		unsigned count;
		unsigned taken; /* bit i: list[i] */
	} v6, v4;
	bool v4_turn;
	struct address early[RACE_ATTEMPTS + 1]; /* whose turns come before all others', as history says */
	unsigned early_count;
	unsigned early_next;
};

/* Adds at the end of its family's list; one that is there already, or too many, is left out. */
void race_order_add(struct race_order *o, const struct address *a);

/* Once, when the addresses are there: the turns begin as history says, as far as these are in the lists. */
void race_order_begin(struct race_order *o, const struct address_history *history);

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
	struct address_history history;
	bool started;
	bool complete; /* no more addresses will come */
	bool over;
	struct race_order order;
	struct race_attempt attempts[RACE_ATTEMPTS];
	unsigned pending; /* connects */
	unsigned given;   /* connections given to done, which have not failed */
	struct loop_timer stagger;
	struct loop_timer resolution;
	char text[1024];
	struct buf_text failures; /* "192.0.2.1:443: Connection refused, …" */
	void (*done)(void *owner, int fd, const struct address *to);
	void *owner;
};

/* done is called with each connected, tuned, non-blocking descriptor (the caller's) and its address, until
 * race_stop; and with -1, NULL when every address has failed (race->failures says how). It may be called from
 * within race_add and race_failed. history: NULL for none. */
void race_init(struct race *race, struct loop *loop, uint16_t port, const struct address_history *history,
	       void (*done)(void *owner, int fd, const struct address *to), void *owner);

/* More addresses of the host (ports are ignored); complete when no more will come. */
void race_add(struct race *race, const struct address *list, size_t count, bool complete);

/* A connection to this address that was given to done is good for nothing: why is noted, the next attempt
 * begins at once. */
void race_failed(struct race *race, const struct address *to, const char *why);

/* Notes in race->failures. */
void race_note(struct race *race, const struct address *to, const char *why);

/* Ends all attempts; done is not called any more. Those without an answer are noted in race->failures. */
void race_stop(struct race *race);

#endif
