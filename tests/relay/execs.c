/* The record of each exec: what came for it, in order, checked against the contract. */
#include "tests/relay/internal.h"

#include "common/clock.h"
#include "common/limits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct relay_exec *relay_execs_open(struct relay_worker *worker, uint64_t req_id)
{
	struct relay *relay = worker->relay;
	struct relay_exec *exec = calloc(1, sizeof *exec);

	if (!exec)
		abort();
	exec->relay = relay;
	exec->worker = worker;
	exec->req_id = req_id;
	exec->next = relay->execs;
	relay->execs = exec;
	return exec;
}

struct relay_exec *relay_execs_find(struct relay *relay, uint64_t req_id)
{
	for (struct relay_exec *e = relay->execs; e; e = e->next) {
		if (e->req_id == req_id)
			return e;
	}
	return NULL;
}

void relay_forget(struct relay_exec *exec)
{
	struct relay_exec **at = &exec->relay->execs;

	while (*at != exec)
		at = &(*at)->next;
	*at = exec->next;
	if (exec->harness)
		exec->harness->exec = NULL;
	relay_bytes_free(&exec->out);
	relay_bytes_free(&exec->err);
	for (size_t i = 0; i < RELAY_TERMINALS; i++)
		free(exec->terminal[i].message);
	free(exec->chunks);
	free(exec);
}

/* Records of harness calls serve nobody once the call is over. */
static void over(struct relay_exec *exec, bool was_harness)
{
	if (was_harness)
		relay_forget(exec);
}

static void note_chunk(struct relay_exec *exec, int stream, size_t size)
{
	if (exec->harness)
		return;
	if (exec->chunk_count == exec->chunk_room) {
		size_t room = exec->chunk_room ? exec->chunk_room * 2 : 16;
		struct relay_chunk *chunks = realloc(exec->chunks, room * sizeof *chunks);

		if (!chunks)
			abort();
		exec->chunks = chunks;
		exec->chunk_room = room;
	}
	exec->chunks[exec->chunk_count++] = (struct relay_chunk){stream, (uint32_t)size, clock_now_ms()};
}

void relay_execs_chunk(struct relay_worker *worker, const Sandbox__V1__Chunk *chunk)
{
	struct relay_exec *exec = relay_execs_find(worker->relay, chunk->req_id);
	bool err = chunk->stream == SANDBOX__V1__STREAM__STREAM_STDERR;

	if (!exec) {
		relay_complain(worker->relay, "a Chunk for %" PRIu64 ", which was never sent", chunk->req_id);
		return;
	}
	if (exec->terminal_count >= exec->deliveries)
		relay_complain(worker->relay, "a Chunk for %" PRIu64 " after its terminal frame",
			       chunk->req_id);
	if (chunk->data.len > LIMIT_CHUNK_DATA || chunk->data.len == 0)
		relay_complain(worker->relay, "a Chunk of %zu bytes", chunk->data.len);
	if (chunk->stream != SANDBOX__V1__STREAM__STREAM_STDOUT && !err)
		relay_complain(worker->relay, "a Chunk of stream %d", (int)chunk->stream);
	note_chunk(exec, (int)chunk->stream, chunk->data.len);
	if (err)
		exec->err_bytes += chunk->data.len;
	else
		exec->out_bytes += chunk->data.len;
	if (!exec->count_only && !exec->harness)
		relay_bytes_add(err ? &exec->err : &exec->out, chunk->data.data, chunk->data.len);
	if (worker->relay->options.observer)
		worker->relay->options.observer->chunk(worker->relay->options.observer->owner, worker,
						       chunk->req_id, err ? 2 : 1, chunk->data.data,
						       chunk->data.len);
	relay_harness_event(exec, 1, &chunk->base, false);
}

static void tell_observer(const struct relay_worker *worker, uint64_t req_id,
			  const struct relay_terminal *what)
{
	const struct relay_observer *observer = worker->relay->options.observer;

	if (observer)
		observer->terminal(observer->owner, worker, req_id, what);
}

static struct relay_exec *note_terminal(struct relay_worker *worker, uint64_t req_id,
					const struct relay_terminal *what)
{
	struct relay_exec *exec = relay_execs_find(worker->relay, req_id);
	struct relay_terminal *at;

	if (!exec) {
		relay_complain(worker->relay, "a terminal frame for %" PRIu64 ", which was never sent",
			       req_id);
		return NULL;
	}
	if (exec->terminal_count >= exec->deliveries)
		relay_complain(worker->relay, "%" PRIu64 " was answered once too often", req_id);
	if (exec->terminal_count < RELAY_TERMINALS) {
		at = &exec->terminal[exec->terminal_count];
		*at = *what;
		at->chunks = exec->chunk_count;
		at->at_ms = clock_now_ms();
		at->worker = worker->number;
		at->message = what->message ? strdup(what->message) : NULL;
	}
	exec->terminal_count++;
	tell_observer(worker, req_id, what);
	return exec;
}

void relay_execs_end(struct relay_worker *worker, const Sandbox__V1__End *end)
{
	struct relay_terminal what = {
	    .kind = RELAY_END, .exit_code = end->exit_code, .truncated = end->truncated};
	struct relay_exec *exec = note_terminal(worker, end->req_id, &what);
	bool harness = exec && exec->harness;

	if (!exec)
		return;
	relay_harness_event(exec, 2, &end->base, true);
	over(exec, harness);
}

void relay_execs_error(struct relay_worker *worker, const Sandbox__V1__ExecError *error)
{
	struct relay_terminal what = {.kind = RELAY_ERROR, .message = error->message};
	struct relay_exec *exec = note_terminal(worker, error->req_id, &what);
	bool harness = exec && exec->harness;

	if (!exec)
		return;
	relay_harness_event(exec, 3, &error->base, true);
	over(exec, harness);
}
