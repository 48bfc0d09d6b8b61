/* The minder: what a finished exec left in the background keeps readers for its output, which are emptied at
 * a capped rate. Without them a server would block on a full pipe or die of SIGPIPE; without the cap `yes &`
 * would have us run for ever. */
#ifndef EXECD_SLOT_MIND_H
#define EXECD_SLOT_MIND_H

#include <poll.h>
#include <stdint.h>

#define MIND_BYTES   65536u /* from each pipe, then a rest */
#define MIND_REST_MS 50u

struct mind {
	int *readers; /* two, the slot's; closed at end of file */
	int null;
	uint64_t again_ms; /* the end of the rest; CLOCK_NEVER: wait for readers */
};

void mind_begin(struct mind *mind, int readers[2]);

/* Fills two entries; both unused during a rest. */
void mind_poll(const struct mind *mind, struct pollfd p[2]);

/* Throws away what is there, up to the cap. */
void mind_step(struct mind *mind, uint64_t now_ms);

#endif
