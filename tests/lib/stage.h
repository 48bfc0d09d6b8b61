/* What nearly every contract test needs: our relay, a worker attached to it, a folder, and what must hold at
 * the end. Use it with .fini = stage_fini, which shows the worker's log and kills what is left after a
 * failure. */
#ifndef TESTS_LIB_STAGE_H
#define TESTS_LIB_STAGE_H

#include "tests/lib/folder.h"
#include "tests/lib/process.h"
#include "tests/lib/worker.h"
#include "tests/relay/relay.h"

#include <stdbool.h>
#include <stdint.h>

#define STAGE_WAIT_MS 10000u /* longer than anything takes that works */

struct stage {
	struct relay *relay;
	struct worker worker;
	struct relay_worker *attached; /* the Attach that is used now */
	char folder[FOLDER_PATH_MAX];
	char mark[32]; /* a number of seconds for sleep(1) that no other process has on its command line */
	uint64_t last_id;
};

/* Relay and folder only. There is one stage at a time, and it is never on a test's stack: after a failed
 * assertion that stack is gone, and stage_fini kills by the pids that the stage holds. */
struct stage *stage_prepare(void);
/* Another relay in its place, before the worker starts. */
void stage_relay(struct stage *stage, const struct relay_options *options);
/* And the worker. */
struct stage *stage_begin(const char *const *settings);
/* And it has attached. */
struct stage *stage_open(const char *const *settings);

/* SIGTERM: exit 0 in 5 s, no process left; no complaint of the relay. */
void stage_close(struct stage *stage);
/* For a worker that is gone already. */
void stage_leave(struct stage *stage);
void stage_fini(void);

/* Waits for the next Attach. */
void stage_reattach(struct stage *stage);

/* Sends a command under a new id, streaming, without timeout. */
struct relay_exec *stage_exec(struct stage *stage, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, not streaming. */
struct relay_exec *stage_exec_whole(struct stage *stage, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sends any request; req_id 0 is replaced by a new one. */
struct relay_exec *stage_send(struct stage *stage, const struct relay_request *request);

/* Waits for the first terminal frame, and fails the test where it is another. */
void stage_expect_end(struct relay_exec *exec, int32_t exit_code);
void stage_expect_error(struct relay_exec *exec, const char *message);
void stage_expect_out(const struct relay_exec *exec, const char *text);
void stage_expect_err(const struct relay_exec *exec, const char *text);
/* stdout is what "seq 1 COUNT" prints. */
void stage_expect_seq(const struct relay_exec *exec, unsigned count);
/* Waits until path is a file of at least size bytes: what a command has got to, where its output cannot tell.
 */
void stage_wait_file(struct stage *stage, const char *path, off_t size);
/* Waits until stdout begins with text. */
void stage_wait_out(struct relay_exec *exec, const char *text);

#endif
