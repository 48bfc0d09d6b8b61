/* SandboxWorker.Attach: who may attach, and what a worker sends. */
#include "tests/relay/internal.h"
#include "tests/relay/wire.h"

#include "common/clock.h"
#include "common/log.h"

#include <stdlib.h>
#include <string.h>

/* Fails closed: no token for this id, nobody attaches. */
static bool token_matches(const struct relay *relay, const char *sandbox_id, const char *authorization)
{
	const char *wanted = relay->options.token;

	for (size_t i = 0; i < relay->options.token_count; i++) {
		if (strcmp(relay->options.tokens[i].sandbox_id, sandbox_id) == 0)
			wanted = relay->options.tokens[i].token;
	}
	return wanted && wanted[0] && strncmp(authorization, "Bearer ", 7) == 0 &&
	       strcmp(authorization + 7, wanted) == 0;
}

static bool id_is_taken(const struct relay *relay, const char *sandbox_id)
{
	for (const struct relay_worker *w = relay->workers; w; w = w->next) {
		if (w->stream && strcmp(w->hello->sandbox_id, sandbox_id) == 0)
			return true;
	}
	return false;
}

static long client_serial(SSL *tls)
{
	X509 *cert = tls ? SSL_get0_peer_certificate(tls) : NULL;

	return cert ? ASN1_INTEGER_get(X509_get0_serialNumber(cert)) : 0;
}

static void take_hello(struct relay_stream *stream, const uint8_t *at, size_t size)
{
	struct relay *relay = stream->conn->relay;
	Sandbox__V1__WorkerFrame *frame = sandbox__v1__worker_frame__unpack(NULL, size, at);
	struct relay_worker *worker;

	relay_bytes_add(&relay->authorizations, stream->authorization, strlen(stream->authorization) + 1);
	if (!frame || frame->msg_case != SANDBOX__V1__WORKER_FRAME__MSG_HELLO) {
		relay_complain(relay, "the first frame is no Hello");
		relay_stream_end(stream, RELAY_STATUS_INVALID_ARGUMENT, "Hello first");
	} else if (stream->conn->manners.refuse || id_is_taken(relay, frame->hello->sandbox_id) ||
		   !token_matches(relay, frame->hello->sandbox_id, stream->authorization)) {
		relay->refusals++;
		if (relay->options.verbose)
			log_warn("refused", LOG_STR("sandbox_id", frame->hello->sandbox_id));
		relay_stream_end(stream, RELAY_STATUS_OK, NULL);
	} else {
		worker = calloc(1, sizeof *worker);
		if (!worker)
			abort();
		worker->relay = relay;
		worker->stream = stream;
		worker->number = ++relay->worker_count;
		worker->attached_ms = clock_now_ms();
		worker->client_serial = client_serial(stream->conn->io.tls);
		worker->hello = frame->hello;
		frame->hello = NULL;
		frame->msg_case = SANDBOX__V1__WORKER_FRAME__MSG__NOT_SET;
		worker->next = relay->workers;
		relay->workers = stream->worker = stream->conn->worker = worker;
		if (relay->options.verbose)
			log_info("attached", LOG_STR("sandbox_id", worker->hello->sandbox_id),
				 LOG_U64("capacity_max", worker->hello->capacity_max),
				 LOG_STR("arch", worker->hello->arch),
				 LOG_STR("trust", worker->hello->trust));
	}
	if (frame)
		sandbox__v1__worker_frame__free_unpacked(frame, NULL);
}

void relay_attach_message(struct relay_stream *stream, const uint8_t *at, size_t size)
{
	struct relay *relay = stream->conn->relay;
	Sandbox__V1__WorkerFrame *frame;

	if (stream->ending)
		return;
	if (!stream->worker) {
		take_hello(stream, at, size);
		return;
	}
	frame = sandbox__v1__worker_frame__unpack(NULL, size, at);
	if (!frame) {
		relay_complain(relay, "a frame that is no WorkerFrame");
		return;
	}
	switch (frame->msg_case) {
	case SANDBOX__V1__WORKER_FRAME__MSG_HEARTBEAT:
		stream->worker->heartbeats++;
		break;
	case SANDBOX__V1__WORKER_FRAME__MSG_CHUNK:
		relay_execs_chunk(stream->worker, frame->chunk);
		break;
	case SANDBOX__V1__WORKER_FRAME__MSG_END:
		relay_execs_end(stream->worker, frame->end);
		break;
	case SANDBOX__V1__WORKER_FRAME__MSG_ERROR:
		relay_execs_error(stream->worker, frame->error);
		break;
	case SANDBOX__V1__WORKER_FRAME__MSG_HELLO:
		relay_complain(relay, "a second Hello");
		break;
	default:
		relay_complain(relay, "an empty WorkerFrame");
	}
	sandbox__v1__worker_frame__free_unpacked(frame, NULL);
}

void relay_attach_gone(struct relay_stream *stream)
{
	stream->worker->stream = NULL;
	stream->worker->gone_ms = clock_now_ms();
	if (stream->conn->relay->options.verbose)
		log_info("gone", LOG_STR("sandbox_id", stream->worker->hello->sandbox_id));
	relay_harness_worker_lost(stream->worker);
	stream->worker = NULL;
}

static void send_frame(struct relay_worker *worker, uint32_t member, const struct relay_bytes *message)
{
	struct relay_bytes frame = {0};

	relay_wire_message(&frame, member, message);
	relay_stream_send(worker->stream, &frame);
	relay_bytes_free(&frame);
}

void relay_attach_exec(struct relay_worker *worker, const uint8_t *exec, size_t size)
{
	struct relay_bytes message = {0};

	relay_bytes_add(&message, exec, size);
	send_frame(worker, 1, &message);
	relay_bytes_free(&message);
}

void relay_exec_again(struct relay_exec *exec, struct relay_worker *worker,
		      const struct relay_request *request)
{
	struct relay_bytes message = {0};

	exec->deliveries++;
	exec->worker = worker;
	exec->sent_ms = clock_now_ms();
	if (!worker->stream)
		return;
	relay_wire_exec(&message, request);
	send_frame(worker, 1, &message);
	relay_bytes_free(&message);
	relay_flush(worker->relay);
}

struct relay_exec *relay_exec(struct relay_worker *worker, const struct relay_request *request)
{
	struct relay_exec *exec = relay_execs_open(worker, request->req_id);

	relay_exec_again(exec, worker, request);
	return exec;
}

void relay_abort(struct relay_worker *worker, uint64_t req_id)
{
	struct relay_bytes message = {0};

	if (!worker->stream)
		return;
	relay_wire_number(&message, 1, req_id);
	send_frame(worker, 2, &message);
	relay_bytes_free(&message);
	relay_flush(worker->relay);
}

void relay_send_message(struct relay_worker *worker, const void *message, size_t size)
{
	uint8_t prefix[RELAY_GRPC_PREFIX];

	if (!worker->stream)
		return;
	relay_grpc_prefix(prefix, size);
	relay_stream_send_raw(worker->stream, prefix, sizeof prefix);
	relay_stream_send_raw(worker->stream, message, size);
	relay_flush(worker->relay);
}

void relay_send_bytes(struct relay_worker *worker, const void *bytes, size_t size)
{
	if (!worker->stream)
		return;
	relay_stream_send_raw(worker->stream, bytes, size);
	relay_flush(worker->relay);
}
