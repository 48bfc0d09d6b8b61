/* The execs: what runs, waits, is refused, is cached, is killed. The decision core of execd; it makes no
 * system call but through slots.h and records.h, so that the unit tests link it against fakes of both. */
#ifndef EXECD_EXECS_H
#define EXECD_EXECS_H

#include "common/channel.h"
#include "common/loop.h"
#include "execd/slots.h"

#include <stdbool.h>
#include <stdint.h>

struct config;

/* Counters for the status file and the log. */
struct execs_counters {
	uint64_t received;
	uint64_t started;
	uint64_t ended; /* terminal frames decided */
	uint64_t replayed;
	uint64_t duplicates;
	uint64_t refused;
	uint64_t timeouts;
	uint64_t aborts;
	uint64_t lost;
	uint64_t unproven; /* kills without proof in time */
	uint32_t running;
	uint32_t waiting;
	uint32_t cached;
};

/* 0 or -errno. config lives as long as the process. */
int execs_init(struct loop *loop, const struct config *config);

/* From slots.c. owner is unused. */
void execs_on_slot(void *owner, const struct slot_event *event);

/* From records.c, each already checked against the channel's table. command is the inline command or NULL.
 * The ints are 0, or -EPROTO for an answer in the wrong state (a violation: *ret_why, static). */
void execs_on_exec(uint64_t req_id, const struct channel_exec *exec, const uint8_t *command);
int execs_on_command(uint64_t req_id, uint32_t offset, const uint8_t *bytes, size_t size,
		     const char **ret_why);
void execs_on_abort(uint64_t req_id);
int execs_on_drained(uint64_t req_id, bool truncated, const struct channel_drained *drained,
		     const char **ret_why);
int execs_on_quiet(uint64_t req_id, const char **ret_why);
void execs_channel_writable(void);

/* The stream is lost, whatever the cause: kills what runs, drops what waits, owes no frame; the cache stays.
 */
void execs_stream_lost(void);

/* GOAWAY that includes our stream: waiting and new ones are refused, running ones may finish for
 * LIMIT_GOAWAY_MS. idle is called, from the loop, once nothing is owed any more; not after the stream is
 * lost, which forgets the GOAWAY. */
void execs_goaway(void (*idle)(void *owner), void *owner);

/* SIGTERM: new and waiting ones are refused; running ones may finish for drain_ms, then are killed; idle is
 * called once, from the loop, when every answer is handed over, but LIMIT_SHUTDOWN_PROOF_MS +
 * LIMIT_SHUTDOWN_ANSWER_MS after the kill at the latest. It takes the place of a GOAWAY's idle. A second call
 * with drain_ms 0 ends the drain. Survives the loss of the stream, after which nothing is owed. What is left
 * of processes then is for slots_kill_all. */
void execs_shutdown(uint32_t drain_ms, void (*idle)(void *owner), void *owner);

const struct execs_counters *execs_counters(void);

#endif
