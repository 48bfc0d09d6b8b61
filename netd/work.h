/* The execs as netd sees them: asked (EXEC sent, not answered), held (admitted), running, over. A fixed
 * table: as many as execd can have in flight, and WORK_ASKED_MAX that it has not answered. */
#ifndef NETD_WORK_H
#define NETD_WORK_H

#include "netd/input.h"
#include "netd/output.h"

#include <stdbool.h>
#include <stdint.h>

#define WORK_ASKED_MAX 32u
#define WORK_MAX       (LIMIT_CONCURRENT + LIMIT_WAITING + WORK_ASKED_MAX)

enum work_state {
	WORK_FREE = 0,
	WORK_ASKED,
	WORK_HELD,
	WORK_RUNNING,
	WORK_OVER, /* its terminal frame is queued, DRAINED is owed */
};

struct work {
	enum work_state state;
	uint64_t req_id;
	bool streaming;
	bool fetch_owed; /* COMMAND is owed from fetch_at */
	uint32_t fetch_at;
	bool quiet_owed; /* QUIET is */
	bool truncated;  /* for DRAINED, with the next */
	struct channel_drained drained;
	struct input input;
	struct output output;
	struct work *next; /* in the order of asking; of the free ones */
};

struct works {
	struct work table[WORK_MAX];
	struct work *free;
	struct work *asked_first;
	struct work *asked_last;
	unsigned asked;
};

void works_init(struct works *ws);

/* A new one, asked last; NULL: too many are not answered yet, or the table is full. */
struct work *works_ask(struct works *ws, uint64_t req_id, bool streaming);

/* Takes back the last works_ask. */
void works_unask(struct works *ws, struct work *w);

/* The answer to the one asked first has come, for req_id. Takes it from the order; NULL: nobody asked that.
 */
struct work *works_answered(struct works *ws, uint64_t req_id);

/* One that is held, running or over; NULL: none of that id. At most one, since execd admits an id once. */
struct work *works_find(struct works *ws, uint64_t req_id);

/* Free again; input and output are the caller's business. */
void works_free(struct works *ws, struct work *w);

#endif
