/* What was sent and what came: which answers are owed, and whether each frame is one that is right. */
#include "tests/soak/soak.h"

#include "common/limits.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BYTES_MAX 50000u

struct soak_exec *model_newest(uint64_t id)
{
	if (id < soak.first_id || id - soak.first_id >= SOAK_EXECS + 2)
		return NULL;
	for (unsigned i = soak.count; i-- > 0;) {
		if (soak.execs[i].request.req_id == id)
			return &soak.execs[i];
	}
	return NULL;
}

bool model_is_here(const struct soak_exec *e)
{
	return soak.stage->attached && e->attach == soak.stage->attached->number;
}

static bool is_open(const struct soak_exec *e)
{
	return e->pending > 0 && model_is_here(e);
}

/* Work of one id ends in the order in which it came. */
static struct soak_exec *oldest_open(struct soak_exec *e)
{
	struct soak_exec *found = NULL;

	for (; e; e = e->older) {
		if (is_open(e))
			found = e;
	}
	return found;
}

unsigned model_open(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < soak.count; i++)
		count += is_open(&soak.execs[i]);
	return count;
}

unsigned model_owed(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < soak.count; i++)
		count += model_is_here(&soak.execs[i]) ? soak.execs[i].owed : 0;
	return count;
}

static void measure_load(void)
{
	unsigned open = 0;
	size_t held = 0;

	for (unsigned i = 0; i < soak.count; i++) {
		if (!is_open(&soak.execs[i]))
			continue;
		open++;
		held += soak.execs[i].request.input_size + strlen(soak.execs[i].request.command);
	}
	if (open > soak.busy_max)
		soak.busy_max = open;
	if (held > soak.held_max)
		soak.held_max = held;
}

/* --- what is sent --- */

static unsigned deaths_told(void)
{
	return worker_said_times(&soak.stage->worker, "slot died") +
	       worker_said_times(&soak.stage->worker, "warden died");
}

static void count_delivery(struct soak_exec *e)
{
	unsigned attach = soak.stage->attached->number;

	if (soak.deaths > 0 && deaths_told() >= soak.deaths)
		soak.deaths = 0;
	if (e->attach != attach) {
		e->attach = attach;
		e->pending = e->owed = 0;
		e->out_at = e->err_at = 0;
		e->answered_here = false;
	}
	/* In flight it may be dropped in silence; what has been answered is answered again. */
	if (e->pending == 0 || e->answered_here)
		e->owed++;
	e->pending++;
	/* A megabyte in frames of one byte keeps us busy, not the worker. */
	if (e->request.input_size > BYTES_MAX)
		relay_byte_frames(soak.stage->attached, false);
	e->before_goaway = !soak.goaway;
	e->hit = e->hit || soak.deaths > 0;
	measure_load();
}

static void send_new(struct soak_exec *e)
{
	soak.stage->last_id = e->request.req_id;
	soak.count++;
	soak_note("exec %" PRIu64 ": %s", e->request.req_id, e->command);
	soak.totals->sent++;
	count_delivery(e);
	e->record = relay_exec(soak.stage->attached, &e->request);
	e->record->count_only = true;
}

void model_send(void)
{
	struct soak_exec *e = &soak.execs[soak.count];

	if (soak.count >= SOAK_EXECS)
		return;
	kinds_fill(e, soak.stage->last_id + 1, 0);
	send_new(e);
}

void model_send_crowd(uint32_t crowd, uint32_t count)
{
	soak_note("crowd %u of %u", crowd, count);
	while (count-- > 0 && soak.count < SOAK_EXECS) {
		kinds_crowd(&soak.execs[soak.count], soak.stage->last_id + 1, crowd);
		send_new(&soak.execs[soak.count]);
	}
}

void model_send_command(const char *format, ...)
{
	struct soak_exec *e = &soak.execs[soak.count];
	char command[SOAK_COMMAND];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof command, format, ap);
	va_end(ap);
	kinds_command(e, soak.stage->last_id + 1, command);
	send_new(e);
}

struct soak_exec *model_send_refused(void)
{
	struct soak_exec *e = &soak.execs[soak.count];

	kinds_refused(e, soak.stage->last_id + 1);
	send_new(e);
	return e;
}

bool model_is_last(const struct soak_exec *e)
{
	return model_newest(e->request.req_id) == e;
}

void model_send_again(struct soak_exec *e)
{
	soak_note("exec %" PRIu64 ".%u again", e->request.req_id, e->variant);
	soak.totals->redelivered++;
	e->redelivered = true;
	count_delivery(e);
	relay_exec_again(e->record, soak.stage->attached, &e->request);
}

void model_reuse(struct soak_exec *older)
{
	struct soak_exec *e = &soak.execs[soak.count];

	if (soak.count >= SOAK_EXECS)
		return;
	kinds_fill(e, older->request.req_id, 1);
	soak.count++;
	soak_note("exec %" PRIu64 ".1 under a used id: %s", e->request.req_id, e->command);
	soak.totals->reused++;
	e->older = older;
	e->record = older->record;
	count_delivery(e);
	relay_exec_again(e->record, soak.stage->attached, &e->request);
}

void model_abort(struct soak_exec *e)
{
	soak_note("abort %" PRIu64, e->request.req_id);
	soak.totals->aborts++;
	for (struct soak_exec *each = model_newest(e->request.req_id); each; each = each->older)
		each->aborted = each->aborted || is_open(each);
	relay_abort(soak.stage->attached, e->request.req_id);
}

void model_hit(void)
{
	soak.deaths = deaths_told() + 1;
	soak.slots_hit = soak.round_hit = true;
	for (unsigned i = 0; i < soak.count; i++)
		soak.execs[i].hit = soak.execs[i].hit || soak.execs[i].pending > 0;
}

void model_overtaken(void)
{
	for (unsigned i = 0; i < soak.count; i++)
		soak.execs[i].before_goaway = false;
}

void model_lost(void)
{
	for (unsigned i = 0; i < soak.count; i++) {
		struct soak_exec *e = &soak.execs[i];

		if (!model_is_here(e))
			continue;
		/* A relay that goes away is left when all that it had sent before is answered. */
		if (e->owed > 0 && soak.goaway && e->before_goaway && !soak.cut)
			soak_blame("%" PRIu64 ".%u was left unanswered after a GOAWAY", e->request.req_id,
				   e->variant);
		e->lost += e->pending > 0;
		e->pending = e->owed = 0;
	}
	soak.totals->losses++;
	soak.cut = soak.goaway = soak.stalled = false;
}

/* --- what comes --- */

static void on_chunk(void *owner, const struct relay_worker *worker, uint64_t id, int stream,
		     const uint8_t *data, size_t size)
{
	struct soak_exec *e = oldest_open(model_newest(id));
	uint64_t *at;

	(void)owner;
	(void)worker;
	soak.totals->bytes += size;
	if (!e) {
		soak_blame("a Chunk of %" PRIu64 ", which is not open", id);
		return;
	}
	if (e->decided)
		soak_blame("a Chunk of %" PRIu64 ".%u after its answer", id, e->variant);
	at = stream == 2 ? &e->err_at : &e->out_at;
	if (!kinds_match(stream == 2 ? &e->err : &e->out, *at, data, size))
		soak_blame("%" PRIu64 ".%u: stream %d has wrong bytes after %" PRIu64 ": %.60s", id,
			   e->variant, stream, *at, (const char *)data);
	*at += size;
}

static bool is_whole(const struct soak_exec *e, bool truncated)
{
	if (e->open_ended)
		return true;
	if (e->lost > 0 && e->out_at == 0 && e->err_at == 0)
		return true; /* decided on a connection that was lost: its replay has no Chunks */
	if (!e->request.streaming && e->out.size > LIMIT_BUFFERED)
		return e->out_at == LIMIT_BUFFERED && truncated;
	return e->out_at == e->out.size && e->err_at == e->err.size && !truncated;
}

static bool end_is_right(const struct soak_exec *e, const struct relay_terminal *what)
{
	bool may_die = e->aborted || e->hit || soak.stopping;

	if (what->exit_code == -1 && (may_die || e->natural == SOAK_DIES || e->natural == SOAK_MAY_DIE))
		return true;
	if (e->natural != SOAK_EXITS && e->natural != SOAK_MAY_DIE)
		return false;
	return what->exit_code == e->code && is_whole(e, what->truncated);
}

/* ExecErrors that are no outcome of a run, and are not remembered. */
static bool refusal_is_right(const struct soak_exec *e, const char *message)
{
	if (e->natural == SOAK_REFUSED && strcmp(message, e->refusal) == 0)
		return true;
	if (strncmp(message, "req_id collision", 16) == 0)
		return e->variant > 0;
	if (strcmp(message, "busy: queue full") == 0)
		return soak.busy_max > LIMIT_WAITING;
	if (strcmp(message, "busy: memory") == 0)
		return soak.held_max > LIMIT_HELD - LIMIT_MESSAGE;
	if (strcmp(message, "relay is going away") == 0)
		return soak.goaway;
	if (strcmp(message, "shutting down") == 0)
		return soak.stopping;
	return strncmp(message, "could not start", 15) == 0 && e->hit;
}

/* True for what counts as decided. */
static bool judge_first(struct soak_exec *e, const struct relay_terminal *what)
{
	char timeout[32];

	snprintf(timeout, sizeof timeout, "timeout:%u", e->request.timeout_s);
	if (what->kind == RELAY_END) {
		if (!end_is_right(e, what))
			soak_blame("%" PRIu64 ".%u: End{%d%s} with %" PRIu64 " and %" PRIu64 " bytes",
				   e->request.req_id, e->variant, what->exit_code,
				   what->truncated ? ", truncated" : "", e->out_at, e->err_at);
		soak.totals->exits += what->exit_code >= 0;
		soak.totals->killed += what->exit_code < 0;
		return true;
	}
	if (e->natural == SOAK_TIMES_OUT && strcmp(what->message, timeout) == 0) {
		soak.totals->timeouts++;
		return true;
	}
	if (!refusal_is_right(e, what->message))
		soak_blame("%" PRIu64 ".%u: ExecError \"%s\"", e->request.req_id, e->variant, what->message);
	soak.totals->refusals++;
	return false;
}

static void judge_replay(const struct soak_exec *e, const struct relay_terminal *what)
{
	const char *message = what->kind == RELAY_ERROR ? what->message : "";

	soak.totals->replays++;
	if (strcmp(message, e->decided_message) != 0 ||
	    (what->kind == RELAY_END && what->exit_code != e->decided_code))
		soak_blame("%" PRIu64 ".%u: answered by %d %s, before by %d %s", e->request.req_id,
			   e->variant, what->exit_code, message, e->decided_code, e->decided_message);
}

/* Where the terminal frame says that the command was killed, it is dead. */
static void judge_death(const struct soak_exec *e, const struct relay_terminal *what)
{
	bool was_killed = what->kind == RELAY_ERROR || what->exit_code == -1 || !soak.keep;

	if (was_killed && !census_none(e->mark))
		soak_blame("%" PRIu64 ".%u: answered, but it lives", e->request.req_id, e->variant);
}

static void on_terminal(void *owner, const struct relay_worker *worker, uint64_t id,
			const struct relay_terminal *what)
{
	struct soak_exec *last = model_newest(id), *e = oldest_open(last);

	(void)owner;
	(void)worker;
	/* A collision is the new work's answer, while the old one runs. */
	if (last && what->kind == RELAY_ERROR && strncmp(what->message, "req_id collision", 16) == 0) {
		e = last;
		soak.totals->collisions++;
	}
	if (!e || !is_open(e)) {
		soak_blame("a terminal frame of %" PRIu64 ", which is not open", id);
		return;
	}
	soak_note("    %" PRIu64 ".%u: %s %d %s", id, e->variant,
		  what->kind == RELAY_END ? "End" : "ExecError", what->exit_code,
		  what->kind == RELAY_END ? "" : what->message);
	e->pending--;
	e->owed -= e->owed > 0;
	if (e->decided) {
		e->answered_here = true;
		judge_replay(e, what);
		return;
	}
	if (judge_first(e, what)) {
		e->decided = e->answered_here = true;
		e->decided_code = what->exit_code;
		snprintf(e->decided_message, sizeof e->decided_message, "%s",
			 what->kind == RELAY_ERROR ? what->message : "");
		judge_death(e, what);
	}
	e->out_at = e->err_at = 0;
}

const struct relay_observer *model_observer(void)
{
	static const struct relay_observer observer = {.chunk = on_chunk, .terminal = on_terminal};

	return &observer;
}
