/* A gRPC call on the relay's side: request checks, messages in, messages and trailers out. */
#include "tests/relay/internal.h"
#include "tests/relay/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct relay_stream *relay_stream_open(struct relay_conn *conn, int32_t id)
{
	struct relay_stream *stream = calloc(1, sizeof *stream);

	if (!stream)
		abort();
	stream->conn = conn;
	stream->id = id;
	stream->next = conn->streams;
	conn->streams = stream;
	return stream;
}

void relay_stream_header(struct relay_stream *stream, const uint8_t *name, size_t name_size,
			 const uint8_t *value, size_t value_size)
{
	const struct {
		const char *name;
		char *at;
		size_t room;
	} wanted[] = {
	    {":method", stream->verb, sizeof stream->verb},
	    {":path", stream->path, sizeof stream->path},
	    {"content-type", stream->content_type, sizeof stream->content_type},
	    {"te", stream->te, sizeof stream->te},
	    {"authorization", stream->authorization, sizeof stream->authorization},
	};

	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		if (strlen(wanted[i].name) == name_size && memcmp(wanted[i].name, name, name_size) == 0)
			snprintf(wanted[i].at, wanted[i].room, "%.*s", (int)value_size, (const char *)value);
	}
}

static ssize_t provide(nghttp2_session *session, int32_t id, uint8_t *buf, size_t room, uint32_t *flags,
		       nghttp2_data_source *source, void *user)
{
	struct relay_stream *stream = source->ptr;
	size_t n = stream->out.size < room ? stream->out.size : room;
	char status[8];
	const nghttp2_nv trailers[] = {
	    {(uint8_t *)"grpc-status", (uint8_t *)status, 11, 0, 0},
	    {(uint8_t *)"grpc-message", (uint8_t *)stream->message, 12, strlen(stream->message), 0},
	};
	nghttp2_nv sent[2];

	(void)user;
	if (stream->conn->manners.byte_frames && n > 1)
		n = 1;
	if (n > 0) {
		memcpy(buf, stream->out.at, n);
		relay_bytes_drop(&stream->out, n);
		return (ssize_t)n;
	}
	if (!stream->ending)
		return NGHTTP2_ERR_DEFERRED;
	memcpy(sent, trailers, sizeof sent);
	sent[0].valuelen = (size_t)snprintf(status, sizeof status, "%d", stream->status);
	*flags = NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	nghttp2_submit_trailer(session, id, sent, stream->message[0] ? 2 : 1);
	return 0;
}

static void respond(struct relay_stream *stream, int http_status, bool with_status, bool with_body)
{
	char status[8], http[8];
	int http_size = snprintf(http, sizeof http, "%d", http_status);
	int status_size = snprintf(status, sizeof status, "%d", stream->status);
	nghttp2_nv headers[4] = {
	    {(uint8_t *)":status", (uint8_t *)http, 7, (size_t)http_size, 0},
	    {(uint8_t *)"content-type", (uint8_t *)"application/grpc", 12, 16, 0},
	    {(uint8_t *)"grpc-status", (uint8_t *)status, 11, (size_t)status_size, 0},
	    {(uint8_t *)"grpc-message", (uint8_t *)stream->message, 12, strlen(stream->message), 0},
	};
	nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = provide};
	size_t count = !with_status ? 2 : stream->message[0] ? 4 : 3;

	stream->responded = true;
	nghttp2_submit_response(stream->conn->io.session, stream->id, headers, count,
				with_body ? &provider : NULL);
}

static void move(struct relay_stream *stream)
{
	if (!stream->responded)
		respond(stream, 200, false, true);
	else
		nghttp2_session_resume_data(stream->conn->io.session, stream->id);
}

void relay_stream_send_raw(struct relay_stream *stream, const void *bytes, size_t size)
{
	if (stream->ending)
		return;
	relay_bytes_add(&stream->out, bytes, size);
	move(stream);
}

void relay_stream_send(struct relay_stream *stream, const struct relay_bytes *message)
{
	uint8_t prefix[RELAY_GRPC_PREFIX];

	if (stream->ending)
		return;
	relay_grpc_prefix(prefix, message->size);
	relay_bytes_add(&stream->out, prefix, sizeof prefix);
	relay_stream_send_raw(stream, message->at, message->size);
}

/* Before any message the status goes as gRPC's Trailers-Only, as grpc-js does. */
void relay_stream_end(struct relay_stream *stream, int status, const char *message)
{
	if (stream->ending)
		return;
	stream->ending = true;
	stream->status = status;
	snprintf(stream->message, sizeof stream->message, "%s", message ? message : "");
	if (stream->responded)
		move(stream);
	else
		respond(stream, 200, true, false);
}

void relay_stream_requested(struct relay_stream *stream)
{
	static const struct {
		const char *path;
		enum relay_method method;
	} methods[] = {
	    {"/sandbox.v1.SandboxWorker/Attach", RELAY_METHOD_ATTACH},
	    {"/sandbox.v1.SandboxExec/Exec", RELAY_METHOD_EXEC},
	    {"/sandbox.v1.SandboxExec/Abort", RELAY_METHOD_ABORT},
	};

	if (stream->method != RELAY_METHOD_UNKNOWN || stream->ending)
		return;
	if (strcmp(stream->verb, "POST") != 0 || strncmp(stream->content_type, "application/grpc", 16) != 0) {
		relay_complain(stream->conn->relay, "no gRPC request: %s %s", stream->verb,
			       stream->content_type);
		stream->ending = true;
		respond(stream, 415, false, false);
		return;
	}
	if (strcmp(stream->te, "trailers") != 0)
		relay_complain(stream->conn->relay, "a request without te: trailers");
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		if (strcmp(stream->path, methods[i].path) == 0)
			stream->method = methods[i].method;
	}
	if (stream->method == RELAY_METHOD_UNKNOWN)
		relay_stream_end(stream, RELAY_STATUS_UNIMPLEMENTED, "unknown method");
	else if (stream->conn->manners.early_headers)
		respond(stream, 200, false, true);
}

static void message(struct relay_stream *stream, const uint8_t *at, size_t size)
{
	switch (stream->method) {
	case RELAY_METHOD_ATTACH:
		relay_attach_message(stream, at, size);
		break;
	case RELAY_METHOD_EXEC:
		relay_harness_exec(stream, at, size);
		break;
	case RELAY_METHOD_ABORT:
		relay_harness_abort(stream, at, size);
		break;
	case RELAY_METHOD_UNKNOWN:
		break;
	}
}

void relay_stream_data(struct relay_stream *stream, const uint8_t *data, size_t size)
{
	size_t limit = stream->method == RELAY_METHOD_ATTACH ? RELAY_MESSAGE_MAX : RELAY_HARNESS_MESSAGE_MAX;
	const uint8_t *at;
	size_t message_size;
	int r;

	relay_bytes_add(&stream->in, data, size);
	while ((r = relay_grpc_peek(&stream->in, limit, &at, &message_size)) > 0) {
		message(stream, at, message_size);
		relay_bytes_drop(&stream->in, RELAY_GRPC_PREFIX + message_size);
	}
	if (r == 0)
		return;
	relay_complain(stream->conn->relay, "a message that is compressed or too long");
	relay_bytes_drop(&stream->in, stream->in.size);
	relay_stream_end(stream, r == -EMSGSIZE ? RELAY_STATUS_EXHAUSTED : RELAY_STATUS_INTERNAL,
			 "bad message");
}

void relay_stream_half_closed(struct relay_stream *stream)
{
	stream->peer_ended = true;
	if (stream->in.size > 0)
		relay_complain(stream->conn->relay, "a stream that ended inside a message");
	if (stream->worker)
		stream->worker->ended = true;
	if (stream->method == RELAY_METHOD_ATTACH)
		relay_stream_end(stream, RELAY_STATUS_OK, NULL);
	else if (stream->method == RELAY_METHOD_EXEC && !stream->exec)
		relay_stream_end(stream, RELAY_STATUS_INTERNAL, "no request");
	else if (stream->method == RELAY_METHOD_ABORT)
		relay_stream_end(stream, RELAY_STATUS_INTERNAL, "no request");
}

void relay_stream_closed(struct relay_stream *stream)
{
	struct relay_stream **at = &stream->conn->streams;

	if (stream->conn->io.session)
		nghttp2_session_set_stream_user_data(stream->conn->io.session, stream->id, NULL);
	if (stream->worker)
		relay_attach_gone(stream);
	if (stream->exec)
		relay_harness_gone(stream);
	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	relay_bytes_free(&stream->in);
	relay_bytes_free(&stream->out);
	free(stream);
}
