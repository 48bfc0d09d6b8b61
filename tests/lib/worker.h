/* The worker under test: execd as a child of the test, its log read by the relay's loop. */
#ifndef TESTS_LIB_WORKER_H
#define TESTS_LIB_WORKER_H

#include "common/loop.h"
#include "tests/relay/bytes.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct relay;

struct worker {
	pid_t pid;
	bool exited;
	int wait_status; /* meaningful once exited */
	struct relay *relay;
	struct loop_source log_source;
	struct loop_source exit_source;
	struct relay_bytes log; /* without a NUL */
};

/* "NAME=VALUE", … for worker_start and worker_environment. */
#define WORKER_SETTINGS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

#define WORKER_ENVIRONMENT_MAX 96

/* The environment of a worker that dials port on 127.0.0.1 as "sbx" with "token", with settings (NULL-ended)
 * over it and nothing else of ours but PATH, HOME, TMPDIR and the sanitizers' options. Strings live as long
 * as the test. */
void worker_environment(const char *environment[WORKER_ENVIRONMENT_MAX], uint16_t port,
			const char *const *settings);

/* Starts execd. It dies with the test. worker must not be on a test's stack: the relay's loop holds on to it.
 * Failures end the test. */
void worker_start(struct worker *worker, struct relay *relay, const char *const *settings);
/* The same; prepare (may be NULL) runs in the child just before the execve: what a bad parent leaves it. It
 * may use async-signal-safe calls only. */
void worker_start_prepared(struct worker *worker, struct relay *relay, const char *const *settings,
			   void (*prepare)(void));

/* Another execd than the one that is released, with the netd beside it; name as for program_built. */
void worker_start_program(struct worker *worker, struct relay *relay, const char *name,
			  const char *const *settings);

/* CHILD: such a prepare, for root: uid and gid 65532 and no privilege, as in a restricted pod. */
void worker_without_privilege(void);

/* A line with text has come on stderr. */
bool worker_said(const struct worker *worker, const char *text);
/* How many times. */
unsigned worker_said_times(const struct worker *worker, const char *text);
bool worker_wait_said(struct worker *worker, const char *text, uint64_t timeout_ms);
bool worker_wait_exit(struct worker *worker, uint64_t timeout_ms);

/* netd's pid now; 0: there is none. */
pid_t worker_netd(const struct worker *worker);

/* SIGTERM; false when it is not gone in 5 s. */
bool worker_stop(struct worker *worker);

/* SIGKILL, and the log's end is read. Harmless when it is gone. */
void worker_kill(struct worker *worker);

/* Forgets the log and the sources. The worker must be gone. */
void worker_free(struct worker *worker);

#endif
