/* How hostile_netd.c talks to execd, in order; what goes out of order is its own. */
#ifndef TESTS_RUNNER_HOSTILE_TALK_H
#define TESTS_RUNNER_HOSTILE_TALK_H

#include "common/channel_io.h"

#include <stdbool.h>
#include <stdint.h>

#define TALK_WAIT_MS   10000
#define TALK_FETCH_LEN 100u

extern struct channel talk; /* netd's end */
extern uint8_t talk_buffer[LIMIT_RECORD];

/* A line on stderr, "hostile " before it: for the siege. */
void talk_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void talk_stay(void);
/* Something here went another way than planned: the siege sees the line. */
_Noreturn void talk_fail(const char *what);

/* One record, its body block and rest (NULL: none). False where the channel stays full for ms. */
bool talk_say_within(int ms, enum channel_type type, uint8_t flags, uint64_t id, const void *block,
		     size_t size, const char *rest);
void talk_say(enum channel_type type, uint8_t flags, uint64_t id, const void *block, size_t size);

/* The next record's type; its descriptors are closed. At the end of the channel there is nothing left to do.
 */
enum channel_type talk_hear(struct channel_record *r);
void talk_expect(enum channel_type type);

/* command NULL: of TALK_FETCH_LEN bytes, to be asked for. work: any number, the fingerprint. */
void talk_exec(uint64_t id, uint8_t work, uint32_t timeout_s, const char *command);
/* Answers each FETCH of the command of id, until STARTED. */
void talk_serve_start(uint64_t id, const char *command);
void talk_drained(uint64_t id);

/* An ABORT of nobody with descriptors beside it. Where the kernel lets none through, another violation ends
 * it. */
void hostile_push(const char *arguments);
void hostile_linger(const char *unused);
/* The same with our credentials, which nobody asked for. */
void hostile_credentials(const char *unused);
/* Breaks a rule. */
void hostile_violate(const char *unused);

#endif
