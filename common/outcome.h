/* How an exec ended, and the words for it. What execd decides is a number; netd turns it into a frame. */
#ifndef COMMON_OUTCOME_H
#define COMMON_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum outcome_kind {
	OUTCOME_EXITED = 1,   /* value: exit code, 0 to 255 */
	OUTCOME_SIGNALED,     /* value: signal number; by a signal that was not ours */
	OUTCOME_ABORTED,      /* value: 0; also shutdown of a running exec, and a slot that died under it */
	OUTCOME_TIMEOUT,      /* value: timeout_s */
	OUTCOME_START_FAILED, /* value: OUTCOME_START_VALUE(step, errno) */
	OUTCOME_REFUSED,      /* value: enum refusal */
	OUTCOME_LOST,         /* value: 0; killed because the stream was lost: never cached, never sent */
};

/* Why an exec did not run. */
enum refusal {
	REFUSAL_QUEUE_FULL = 1,
	REFUSAL_MEMORY,       /* commands and stdin held are over LIMIT_HELD */
	REFUSAL_COLLISION,    /* other work under an id in flight */
	REFUSAL_COMMAND_NUL,  /* a NUL byte inside the command */
	REFUSAL_COMMAND_LONG, /* over LIMIT_COMMAND */
	REFUSAL_STDIN_LONG,   /* over LIMIT_STDIN */
	REFUSAL_MESSAGE_LONG, /* a message over LIMIT_MESSAGE */
	REFUSAL_MALFORMED,    /* an Exec that cannot be decoded, its req_id found */
	REFUSAL_SHUTTING_DOWN,
	REFUSAL_GOING_AWAY,  /* the relay said GOAWAY */
	REFUSAL_STILL_DYING, /* the earlier run of this id could not be proven dead in LIMIT_KILL_PROOF_MS */
	REFUSAL_LAST = REFUSAL_STILL_DYING,
};

/* The step at which a start failed. */
enum start_step {
	START_PIPES = 1, /* pipes or descriptors for the command */
	START_SLOT,      /* no slot could be had, or it died */
	START_PROCESS,   /* vfork */
	START_SESSION,   /* setsid, process group, dispositions */
	START_FILES,     /* descriptors 0, 1, 2 */
	START_FOLDER,    /* SANDBOX_CWD */
	START_LIMITS,    /* rlimits */
	START_LANDLOCK,
	START_PRIVILEGES,
	START_SECCOMP,
	START_EXEC, /* execve of bash */
	START_LAST = START_EXEC,
};

#define OUTCOME_START_VALUE(step, err) ((uint32_t)(step) << 16 | (uint32_t)(err))
#define OUTCOME_START_STEP(value)      ((enum start_step)((value) >> 16))
#define OUTCOME_START_ERRNO(value)     ((int)((value)&0xffffu))

struct outcome {
	enum outcome_kind kind;
	uint32_t value;
};

/* Kind known and value in its range: what comes from another process is checked with this. */
bool outcome_valid(const struct outcome *o);

/* Decided, so that it must not run twice: enters the dedup cache (contract.md 9). */
bool outcome_cached(const struct outcome *o);

/* Answered by End (true) or by ExecError (false) (contract.md 4). OUTCOME_LOST is owed no frame. */
bool outcome_is_end(const struct outcome *o);

/* End.exit_code: the child's code, else -1. */
int32_t outcome_exit_code(const struct outcome *o);

/* ExecError.message, NUL-terminated, valid UTF-8. Returns its length, below size. */
size_t outcome_message(const struct outcome *o, char *at, size_t size);

/* Why it ended, for the log: "exit", "signal", "abort", "timeout", "start", "refused", "lost". */
const char *outcome_reason(const struct outcome *o);

#endif
