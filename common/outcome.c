#include "common/outcome.h"

#include "common/limits.h"

#include <stdio.h>
#include <string.h>

static const char *const refusal_words[] = {
    [REFUSAL_QUEUE_FULL] = "busy: queue full",
    [REFUSAL_MEMORY] = "busy: memory",
    [REFUSAL_COLLISION] = "req_id collision: other work under this id is still in flight",
    [REFUSAL_COMMAND_NUL] = "command refused: it holds a NUL byte",
    [REFUSAL_COMMAND_LONG] = "command refused: it is longer than 1 MiB",
    [REFUSAL_STDIN_LONG] = "command refused: its stdin is longer than 16 MiB",
    [REFUSAL_MESSAGE_LONG] = "command refused: the message is longer than 17 MiB",
    [REFUSAL_MALFORMED] = "command refused: the message cannot be decoded",
    [REFUSAL_SHUTTING_DOWN] = "shutting down",
    [REFUSAL_GOING_AWAY] = "relay is going away",
    [REFUSAL_STILL_DYING] = "an earlier run of this req_id could not be killed",
};

static const char *const step_words[] = {
    [START_PIPES] = "its pipes",
    [START_SLOT] = "a slot for it",
    [START_PROCESS] = "its process",
    [START_SESSION] = "its session",
    [START_FILES] = "its standard descriptors",
    [START_FOLDER] = "its folder (SANDBOX_CWD)",
    [START_LIMITS] = "its limits",
    [START_LANDLOCK] = "its Landlock domain",
    [START_PRIVILEGES] = "its privileges",
    [START_SECCOMP] = "its system call filter",
    [START_EXEC] = "bash",
};

bool outcome_valid(const struct outcome *o)
{
	switch (o->kind) {
	case OUTCOME_EXITED:
		return o->value <= 255;
	case OUTCOME_SIGNALED:
		return o->value >= 1 && o->value <= 64;
	case OUTCOME_ABORTED:
	case OUTCOME_LOST:
		return o->value == 0;
	case OUTCOME_TIMEOUT:
		return o->value >= 1;
	case OUTCOME_START_FAILED:
		return OUTCOME_START_STEP(o->value) >= START_PIPES &&
		       OUTCOME_START_STEP(o->value) <= START_LAST;
	case OUTCOME_REFUSED:
		return o->value >= REFUSAL_QUEUE_FULL && o->value <= REFUSAL_LAST;
	}
	return false;
}

bool outcome_cached(const struct outcome *o)
{
	return o->kind == OUTCOME_EXITED || o->kind == OUTCOME_SIGNALED || o->kind == OUTCOME_ABORTED ||
	       o->kind == OUTCOME_TIMEOUT;
}

bool outcome_is_end(const struct outcome *o)
{
	return o->kind == OUTCOME_EXITED || o->kind == OUTCOME_SIGNALED || o->kind == OUTCOME_ABORTED;
}

int32_t outcome_exit_code(const struct outcome *o)
{
	return o->kind == OUTCOME_EXITED ? (int32_t)o->value : -1;
}

size_t outcome_message(const struct outcome *o, char *at, size_t size)
{
	int n = 0;

	switch (o->kind) {
	case OUTCOME_TIMEOUT:
		n = snprintf(at, size, "timeout:%u", o->value);
		break;
	case OUTCOME_START_FAILED:
		n = snprintf(at, size, "could not start: %s: %s", step_words[OUTCOME_START_STEP(o->value)],
			     strerror(OUTCOME_START_ERRNO(o->value)));
		break;
	case OUTCOME_REFUSED:
		n = snprintf(at, size, "%s", refusal_words[o->value]);
		break;
	case OUTCOME_EXITED:
	case OUTCOME_SIGNALED:
	case OUTCOME_ABORTED:
	case OUTCOME_LOST:
		n = snprintf(at, size, "%s", outcome_reason(o));
		break;
	}
	if (n < 0)
		return 0;
	return (size_t)n < size ? (size_t)n : size - 1;
}

const char *outcome_reason(const struct outcome *o)
{
	switch (o->kind) {
	case OUTCOME_EXITED:
		return "exit";
	case OUTCOME_SIGNALED:
		return "signal";
	case OUTCOME_ABORTED:
		return "abort";
	case OUTCOME_TIMEOUT:
		return "timeout";
	case OUTCOME_START_FAILED:
		return "start";
	case OUTCOME_REFUSED:
		return "refused";
	case OUTCOME_LOST:
		return "lost";
	}
	return "unknown";
}
