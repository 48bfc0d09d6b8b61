#include "netd/frames.h"

#include "proto/sandbox/v1/sandbox.pb-c.h"

#include <string.h>

#if defined(__x86_64__)
#define ARCH "amd64"
#elif defined(__aarch64__)
#define ARCH "arm64"
#else
#error "Hello.arch has no name for this architecture"
#endif

const uint8_t frames_heartbeat[GRPC_PREFIX + 2] = {0, 0, 0, 0, 2, 2 << 3 | 2, 0};

static void put_prefix(uint8_t *at, size_t length)
{
	at[0] = 0;
	at[1] = (uint8_t)(length >> 24);
	at[2] = (uint8_t)(length >> 16);
	at[3] = (uint8_t)(length >> 8);
	at[4] = (uint8_t)length;
}

static size_t pack(uint8_t *at, size_t size, const Sandbox__V1__WorkerFrame *frame)
{
	size_t n = sandbox__v1__worker_frame__get_packed_size(frame);

	if (GRPC_PREFIX + n > size)
		return 0;
	put_prefix(at, n);
	sandbox__v1__worker_frame__pack(frame, at + GRPC_PREFIX);
	return GRPC_PREFIX + n;
}

/* protobuf-c wants char *, and only reads it. */
static char *text(const char *s)
{
	return (char *)(uintptr_t)s;
}

size_t frames_hello(uint8_t *at, size_t size, const struct settings *settings)
{
	char *capabilities[sizeof settings->capabilities / sizeof *settings->capabilities];
	Sandbox__V1__Hello hello = SANDBOX__V1__HELLO__INIT;
	Sandbox__V1__Hello__LabelsEntry tier = SANDBOX__V1__HELLO__LABELS_ENTRY__INIT;
	Sandbox__V1__Hello__LabelsEntry *labels[] = {&tier};
	Sandbox__V1__WorkerFrame frame = SANDBOX__V1__WORKER_FRAME__INIT;

	for (uint32_t i = 0; i < settings->capability_count; i++)
		capabilities[i] = text(settings->capabilities[i]);
	hello.sandbox_id = text(settings->sandbox_id);
	hello.image = text(settings->image);
	hello.arch = text(ARCH);
	hello.trust = text(settings->trust);
	hello.capacity_max = settings->capacity;
	tier.key = text("moca.dev/tier");
	tier.value = text(settings->tier);
	hello.n_labels = settings->tier[0] != '\0';
	hello.labels = labels;
	hello.n_capabilities = settings->capability_count;
	hello.capabilities = capabilities;
	frame.msg_case = SANDBOX__V1__WORKER_FRAME__MSG_HELLO;
	frame.hello = &hello;
	return pack(at, size, &frame);
}

size_t frames_terminal(uint8_t at[], size_t size, uint64_t req_id, const struct outcome *outcome,
		       bool truncated)
{
	char message[FRAMES_TERMINAL_MAX - 64];
	Sandbox__V1__End end = SANDBOX__V1__END__INIT;
	Sandbox__V1__ExecError error = SANDBOX__V1__EXEC_ERROR__INIT;
	Sandbox__V1__WorkerFrame frame = SANDBOX__V1__WORKER_FRAME__INIT;

	if (outcome->kind == OUTCOME_LOST)
		return 0;
	if (outcome_is_end(outcome)) {
		end.req_id = req_id;
		end.exit_code = outcome_exit_code(outcome);
		end.truncated = truncated;
		frame.msg_case = SANDBOX__V1__WORKER_FRAME__MSG_END;
		frame.end = &end;
	} else {
		outcome_message(outcome, message, sizeof message);
		error.req_id = req_id;
		error.message = message;
		frame.msg_case = SANDBOX__V1__WORKER_FRAME__MSG_ERROR;
		frame.error = &error;
	}
	return pack(at, size, &frame);
}

static size_t varint_size(uint64_t v)
{
	size_t n = 1;

	while (v >>= 7)
		n++;
	return n;
}

static uint8_t *put_varint(uint8_t *at, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	return at;
}

/* Of the Chunk message without its data: req_id, stream, then data's tag and length. */
static size_t chunk_fields(uint64_t req_id, size_t n)
{
	return 1 + varint_size(req_id) + 2 + 1 + varint_size(n);
}

size_t frames_chunk_head(uint8_t *data, uint64_t req_id, uint8_t stream, size_t n)
{
	size_t chunk = chunk_fields(req_id, n) + n;
	size_t frame = 1 + varint_size(chunk) + chunk;
	size_t head = GRPC_PREFIX + frame - n;
	uint8_t *at = data - head;

	put_prefix(at, frame);
	at += GRPC_PREFIX;
	*at++ = 3 << 3 | 2; /* WorkerFrame.chunk */
	at = put_varint(at, chunk);
	*at++ = 1 << 3 | 0; /* Chunk.req_id */
	at = put_varint(at, req_id);
	*at++ = 3 << 3 | 0; /* Chunk.stream */
	*at++ = stream;
	*at++ = 2 << 3 | 2; /* Chunk.data */
	put_varint(at, n);
	return head;
}

size_t frames_chunk_data(uint64_t req_id)
{
	return FRAMES_CHUNK -
	       (GRPC_PREFIX + 1 + varint_size(FRAMES_CHUNK) + chunk_fields(req_id, FRAMES_CHUNK));
}
