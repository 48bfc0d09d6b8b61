/* execd's slots in a test process: a loop, real processes, and what came back. */
#ifndef TESTS_LIB_SLOT_RIG_H
#define TESTS_LIB_SLOT_RIG_H

#include "common/loop.h"
#include "execd/config.h"
#include "execd/slots.h"
#include "tests/lib/slow.h"

#include <stdbool.h>
#include <stddef.h>

#define RIG_SLOTS   (2u * 256u + 16u)
#define RIG_OUTPUT  (256u * 1024u)
#define RIG_WAIT_MS slow_ms(20000)

struct rig_exec {
	const uint8_t *command;
	size_t out_size;
	size_t err_size;
	unsigned seen; /* bit n: an event of kind n has come */
	uint32_t failed;
	int wait_status;
	uint32_t count;
	unsigned still_alive; /* how often */
	int ours[3];
	uint32_t command_len; /* and how much of it is given at a time, and was given */
	uint32_t piece;
	uint32_t given;
	bool by_kill;
	bool oom;
	char order[64];           /* the kinds of events in their order, a letter each: tsFxEamdUR */
	char out[RIG_OUTPUT + 1]; /* NUL-terminated */
	char err[RIG_OUTPUT + 1];
};

extern struct loop rig_loop;
extern struct config rig_config;
extern struct rig_exec rig_execs[RIG_SLOTS];
extern unsigned rig_ready; /* SLOT_READY events */

/* Fills rig_config: 2 slots, keep, the test's own folder and environment. Then change it, then rig_start. */
void rig_prepare(void);
void rig_start(void);

/* Shuts down; fails the test unless all is gone in time. */
void rig_stop(void);

/* One pass of the loop, at most 2 ms, with what execd's shell does: reap, read the pipes. */
void rig_pass(void);

/* Until there is an idle slot, takes it. */
unsigned rig_take(void);

/* Takes a slot and runs; stdin is closed at once when it is NULL. */
unsigned rig_run(const char *command, const char *input);
/* The same with stdin left open: rig_execs[slot].ours[0]. */
unsigned rig_run_open(const char *command);
/* The same in pieces of the given size. */
unsigned rig_run_pieces(const char *command, size_t length, uint32_t piece);

/* Passes until the event has come for the slot; fails the test after RIG_WAIT_MS. */
void rig_until(unsigned slot, enum slot_event_kind kind);
bool rig_has(unsigned slot, enum slot_event_kind kind);

/* Passes until that many slots wait idle. */
void rig_until_idle(unsigned count);

/* SIGKILL for that many idle slots, as soon as there are so many. */
void rig_kill_idle(unsigned count);

/* Passes for that long. */
void rig_for(unsigned ms);

/* Until output holds text. */
void rig_until_output(unsigned slot, const char *text);

/* Closes our ends and releases. */
void rig_release(unsigned slot);
void rig_close(unsigned slot);

/* rig_run, until SLOT_EMPTY, reads all, releases. Returns the wait status. */
int rig_do(const char *command, const char *input, struct rig_exec *ret);

#endif
