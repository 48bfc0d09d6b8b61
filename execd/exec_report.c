#include "execd/exec_report.h"

#include "common/clock.h"
#include "common/log.h"
#include "execd/audit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HASH_BYTES 4 /* of the fingerprint: enough to tell commands apart by eye */

struct hash_text {
	char at[2 * HASH_BYTES + 1];
};

static struct hash_text hash_text(const uint8_t fingerprint[CHANNEL_FINGERPRINT])
{
	struct hash_text t;

	for (int i = 0; i < HASH_BYTES; i++)
		snprintf(&t.at[2 * i], 3, "%02x", fingerprint[i]);
	return t;
}

static uint64_t ran_ms(const struct exec *e)
{
	return e->started_ms != 0 && e->ended_ms > e->started_ms ? e->ended_ms - e->started_ms : 0;
}

void exec_report_start(const struct exec *exec)
{
	audit_exec("start", exec->req_id, exec->command_len, exec->fingerprint, NULL, 0);
}

/* The limit that this signal tells of, or NULL. */
static const char *limit_of(int signal_number)
{
	switch (signal_number) {
	case SIGXCPU:
		return "RLIMIT_CPU";
	case SIGXFSZ:
		return "RLIMIT_FSIZE";
	default:
		return NULL;
	}
}

/* The fields that say how it ended; their count. */
static size_t add_outcome(struct log_field *f, const struct exec *e, char *message, size_t size)
{
	const struct outcome *o = &e->outcome;
	size_t n = 0;

	f[n++] = LOG_STR("reason", e->why && o->kind == OUTCOME_ABORTED ? e->why : outcome_reason(o));
	switch (o->kind) {
	case OUTCOME_EXITED:
		f[n++] = LOG_U64("code", o->value);
		break;
	case OUTCOME_SIGNALED:
		f[n++] = LOG_U64("signal", o->value);
		f[n++] = LOG_STR("signal_name", sigabbrev_np((int)o->value));
		if (limit_of((int)o->value))
			f[n++] = LOG_STR("limit", limit_of((int)o->value));
		break;
	case OUTCOME_TIMEOUT:
		f[n++] = LOG_U64("timeout_s", o->value);
		break;
	case OUTCOME_START_FAILED:
	case OUTCOME_REFUSED:
		outcome_message(o, message, size);
		f[n++] = LOG_STR("why", message);
		break;
	case OUTCOME_ABORTED:
	case OUTCOME_LOST:
		break;
	}
	if (e->oom) {
		f[n++] = LOG_STR("limit", "memory");
		f[n++] = LOG_STR("oom", "yes");
	}
	return n;
}

void exec_report_end(const struct exec *exec, const struct channel_drained *drained)
{
	struct hash_text hash = hash_text(exec->fingerprint);
	struct log_field f[16];
	char message[256];
	size_t n = 0;

	f[n++] = LOG_U64("req_id", exec->req_id);
	n += add_outcome(&f[n], exec, message, sizeof message);
	f[n++] = LOG_U64("ms", clock_now_ms() - exec->received_ms);
	f[n++] = LOG_U64("ran_ms", ran_ms(exec));
	if (drained) {
		f[n++] = LOG_U64("bytes_out", drained->bytes_out);
		f[n++] = LOG_U64("bytes_dropped", drained->bytes_dropped);
		f[n++] = LOG_U64("handover_ms", drained->ms);
	}
	if (exec->cut)
		f[n++] = LOG_STR("truncated", "yes");
	f[n++] = LOG_U64("command_len", exec->command_len);
	f[n++] = LOG_STR("hash", hash.at);
	f[n] = (struct log_field){.key = NULL};
	log_emit(LOG_LEVEL_INFO, "ended", f);
	audit_exec(exec->outcome.kind == OUTCOME_REFUSED ? "refuse" : "end", exec->req_id, exec->command_len,
		   exec->fingerprint, &exec->outcome, ran_ms(exec));
}

void exec_report_refused(uint64_t req_id, const struct channel_exec *exec, enum refusal refusal)
{
	static struct log_limit limit = LOG_LIMIT_INIT(20, 1000);
	struct outcome outcome = {OUTCOME_REFUSED, refusal};
	uint64_t suppressed;
	char message[256];

	audit_exec("refuse", req_id, exec->command_len, exec->fingerprint, &outcome, 0);
	if (!log_allowed(&limit, clock_now_ms(), &suppressed))
		return;
	outcome_message(&outcome, message, sizeof message);
	log_warn("refused", LOG_U64("req_id", req_id), LOG_STR("why", message),
		 LOG_U64("suppressed", suppressed));
}

void exec_report_replay(uint64_t req_id, const struct channel_exec *exec, const struct outcome *outcome)
{
	static struct log_limit limit = LOG_LIMIT_INIT(20, 1000);
	uint64_t suppressed;

	audit_exec("replay", req_id, exec->command_len, exec->fingerprint, outcome, 0);
	if (log_allowed(&limit, clock_now_ms(), &suppressed))
		log_info("replayed", LOG_U64("req_id", req_id), LOG_STR("reason", outcome_reason(outcome)),
			 LOG_U64("suppressed", suppressed));
}

void exec_report_recalled(const struct exec *exec)
{
	struct channel_exec e = {.command_len = exec->command_len};

	memcpy(e.fingerprint, exec->fingerprint, sizeof e.fingerprint);
	exec_report_replay(exec->req_id, &e, &exec->outcome);
}

void exec_report_reused(uint64_t req_id)
{
	static struct log_limit limit = LOG_LIMIT_INIT(20, 1000);
	uint64_t suppressed;

	if (log_allowed(&limit, clock_now_ms(), &suppressed))
		log_warn("req_id came again with other work", LOG_U64("req_id", req_id),
			 LOG_U64("suppressed", suppressed));
}

void exec_report_again(const struct exec *exec)
{
	log_info("to be started again", LOG_U64("req_id", exec->req_id), LOG_U64("tries", exec->tries));
}

void exec_report_stray(const struct exec *exec, enum exec_event event)
{
	log_debug("stray event", LOG_U64("req_id", exec->req_id),
		  LOG_STR("state", exec_state_name(exec->state)), LOG_STR("event", exec_event_name(event)));
}
