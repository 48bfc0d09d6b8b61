/* SandboxExec: what a harness asks for. */
#include "tests/relay/internal.h"
#include "tests/relay/wire.h"

#include <stdlib.h>
#include <string.h>

struct request {
	const uint8_t *sandbox_id;
	size_t sandbox_id_size;
	const uint8_t *exec; /* an encoded Exec, passed on as it is: unknown fields stay */
	size_t exec_size;
	uint64_t req_id;
};

static bool parse(const uint8_t *at, size_t size, struct request *ret)
{
	const uint8_t *end = at + size;
	struct relay_field field;

	*ret = (struct request){0};
	while (at < end) {
		if (!relay_wire_next(&at, end, &field))
			return false;
		if (field.number == 1 && field.type == 2) {
			ret->sandbox_id = field.at;
			ret->sandbox_id_size = field.size;
		} else if (field.number == 2 && field.type == 2) {
			ret->exec = field.at;
			ret->exec_size = field.size;
		} else if (field.number == 2 && field.type == 0) {
			ret->req_id = field.value;
		}
	}
	return true;
}

static bool parse_exec_id(struct request *request)
{
	const uint8_t *at = request->exec, *end = at + request->exec_size;
	struct relay_field field;

	while (at < end) {
		if (!relay_wire_next(&at, end, &field))
			return false;
		if (field.number == 1 && field.type == 0)
			request->req_id = field.value;
	}
	return true;
}

static struct relay_worker *find_worker(struct relay *relay, const struct request *request)
{
	for (struct relay_worker *w = relay->workers; w; w = w->next) {
		if (w->stream && strlen(w->hello->sandbox_id) == request->sandbox_id_size &&
		    memcmp(w->hello->sandbox_id, request->sandbox_id, request->sandbox_id_size) == 0)
			return w;
	}
	return NULL;
}

/* Two calls under one id have one answer between them; it goes to the newer. */
static void supersede(struct relay *relay, uint64_t req_id)
{
	struct relay_exec *exec = relay_execs_find(relay, req_id);

	if (!exec || !exec->harness)
		return;
	relay_stream_end(exec->harness, RELAY_STATUS_ABORTED, "superseded by a newer call of this req_id");
	relay_forget(exec);
}

void relay_harness_exec(struct relay_stream *stream, const uint8_t *at, size_t size)
{
	struct relay_worker *worker;
	struct request request;

	if (stream->ending || stream->exec)
		return;
	if (!parse(at, size, &request) || !request.exec || !parse_exec_id(&request)) {
		relay_stream_end(stream, RELAY_STATUS_INVALID_ARGUMENT, "no ExecRequest with an Exec");
		return;
	}
	worker = find_worker(stream->conn->relay, &request);
	if (!worker) {
		relay_stream_end(stream, RELAY_STATUS_UNAVAILABLE, "no such sandbox is attached");
		return;
	}
	supersede(stream->conn->relay, request.req_id);
	stream->exec = relay_execs_open(worker, request.req_id);
	stream->exec->deliveries = 1;
	stream->exec->harness = stream;
	relay_attach_exec(worker, request.exec, request.exec_size);
}

void relay_harness_abort(struct relay_stream *stream, const uint8_t *at, size_t size)
{
	static const struct relay_bytes nothing;
	struct relay_worker *worker;
	struct request request;

	if (stream->ending)
		return;
	if (!parse(at, size, &request)) {
		relay_stream_end(stream, RELAY_STATUS_INVALID_ARGUMENT, "no AbortRequest");
		return;
	}
	worker = find_worker(stream->conn->relay, &request);
	if (!worker) {
		relay_stream_end(stream, RELAY_STATUS_UNAVAILABLE, "no such sandbox is attached");
		return;
	}
	relay_abort(worker, request.req_id);
	relay_stream_send(stream, &nothing);
	relay_stream_end(stream, RELAY_STATUS_OK, NULL);
}

void relay_harness_event(struct relay_exec *exec, uint32_t number, const ProtobufCMessage *event,
			 bool terminal)
{
	struct relay_bytes inner = {0}, outer = {0};
	size_t size;

	if (!exec->harness)
		return;
	size = protobuf_c_message_get_packed_size(event);
	if (size > 0)
		protobuf_c_message_pack(event, relay_bytes_extend(&inner, size));
	relay_wire_message(&outer, number, &inner);
	relay_stream_send(exec->harness, &outer);
	if (terminal) {
		relay_stream_end(exec->harness, RELAY_STATUS_OK, NULL);
		exec->harness->exec = NULL;
		exec->harness = NULL;
	}
	relay_bytes_free(&inner);
	relay_bytes_free(&outer);
}

/* The harness has left: its command is not wanted any more. The record stays until the answer comes. */
void relay_harness_gone(struct relay_stream *stream)
{
	struct relay_exec *exec = stream->exec;

	stream->exec = NULL;
	exec->harness = NULL;
	exec->count_only = true;
	if (exec->worker->stream)
		relay_abort(exec->worker, exec->req_id);
}

void relay_harness_worker_lost(struct relay_worker *worker)
{
	struct relay_exec *next;

	for (struct relay_exec *e = worker->relay->execs; e; e = next) {
		next = e->next;
		if (e->worker != worker || !e->harness)
			continue;
		relay_stream_end(e->harness, RELAY_STATUS_UNAVAILABLE, "the worker was lost");
		relay_forget(e);
	}
}
