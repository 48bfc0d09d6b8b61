#include "netd/frames.h"

#include "proto/sandbox/v1/sandbox.pb-c.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t pack(uint8_t *at, Sandbox__V1__Exec *exec)
{
	Sandbox__V1__ServerFrame frame = SANDBOX__V1__SERVER_FRAME__INIT;

	frame.msg_case = SANDBOX__V1__SERVER_FRAME__MSG_EXEC;
	frame.exec = exec;
	return sandbox__v1__server_frame__pack(&frame, at);
}

static int decode(const char *bytes, size_t size, struct frames_server *f)
{
	return frames_decode((const uint8_t *)bytes, size, f);
}
#define DECODE(text, f) decode(text, sizeof(text) - 1, f)

Test(frames, decodes_an_exec_where_it_lies)
{
	Sandbox__V1__Exec exec = SANDBOX__V1__EXEC__INIT;
	struct frames_server f;
	uint8_t at[256];
	uint8_t in[] = {0, 1, 2, 255};
	char command[] = "echo hi";
	size_t n;

	exec.req_id = UINT64_MAX;
	exec.command = command;
	exec.stdin = (ProtobufCBinaryData){sizeof in, in};
	exec.timeout_s = 1800;
	exec.streaming = 1;
	n = pack(at, &exec);
	cr_assert_eq(frames_decode(at, n, &f), 0);
	cr_assert_eq(f.kind, FRAMES_EXEC);
	cr_assert(f.has_req_id && f.req_id == UINT64_MAX);
	cr_assert(f.command_len == 7 && memcmp(f.command, "echo hi", 7) == 0);
	cr_assert(f.input_len == 4 && memcmp(f.input, in, 4) == 0);
	cr_assert(f.command > at && f.command < at + n && f.input > at && f.input < at + n);
	cr_assert_eq(f.timeout_s, 1800);
	cr_assert(f.streaming);
}

Test(frames, decodes_an_abort_and_ignores_what_it_does_not_know)
{
	struct frames_server f;

	cr_assert_eq(DECODE("\x12\x02\x08\x07", &f), 0);
	cr_assert(f.kind == FRAMES_ABORT && f.req_id == 7);
	cr_assert_eq(DECODE("", &f), 0);
	cr_assert_eq(frames_decode(NULL, 0, &f), 0);
	cr_assert_eq(f.kind, FRAMES_NOTHING);
	cr_assert_eq(DECODE("\x1a\x02\x08\x07", &f), 0, "another member of the oneof");
	cr_assert_eq(f.kind, FRAMES_NOTHING);
	/* workspace_key (6) and fields of every wire type inside the Exec */
	cr_assert_eq(
	    DECODE("\x0a\x1b\x08\x05\x32\x03key\x45\1\2\3\4\x49\1\2\3\4\5\6\7\x08\x50\x96\x01\x12\x01x", &f),
	    0);
	cr_assert(f.kind == FRAMES_EXEC && f.req_id == 5 && f.command_len == 1 && f.command[0] == 'x');
}

Test(frames, lets_the_last_count_as_protobuf_says)
{
	struct frames_server f;

	cr_assert_eq(DECODE("\x0a\x02\x08\x05\x12\x02\x08\x06", &f), 0);
	cr_assert(f.kind == FRAMES_ABORT && f.req_id == 6, "the last member of a oneof");
	cr_assert_eq(DECODE("\x0a\x05\x08\x05\x12\x01x\x0a\x02\x08\x06", &f), 0);
	cr_assert(f.kind == FRAMES_EXEC && f.req_id == 6 && f.command_len == 1, "the same member is merged");
	cr_assert_eq(DECODE("\x0a\x04\x08\x05\x08\x09", &f), 0);
	cr_assert_eq(f.req_id, 9);
	cr_assert_eq(DECODE("\x0a\x08\x08\x05\x12\x01x\x12\x01y", &f), 0);
	cr_assert_eq(f.command[0], 'y');
	cr_assert_eq(DECODE("\x0a\x04\x08\x05\x10\x07", &f), 0, "command as a varint is unknown");
	cr_assert(f.req_id == 5 && f.command_len == 0);
	cr_assert_eq(DECODE("\x08\x05", &f), 0, "exec as a varint is unknown");
	cr_assert_eq(f.kind, FRAMES_NOTHING);
}

Test(frames, refuses_what_cannot_be_decoded_and_says_whose_it_was)
{
	static const struct {
		const char *bytes;
		size_t size;
		bool has_req_id;
	} bad[] = {
#define BAD(text, known) {(text), sizeof(text) - 1, known}
	    BAD("\x0a", false),                    /* no length */
	    BAD("\x0a\x05\x08", false),            /* shorter than it says */
	    BAD("\x0a\x02\x08\x80", false),        /* a varint that does not end */
	    BAD("\x0a\x04\x08\x07\x12\x05", true), /* the command reaches over the end */
	    BAD("\x0a\x03\x08\x07\x0b", true),     /* a group */
	    BAD("\x0a\x03\x08\x07\x0c", true),
	    BAD("\x0a\x03\x08\x07\x06", true), /* wire types 6 and 7 do not exist */
	    BAD("\x0a\x03\x08\x07\x0f", true),
	    BAD("\x0a\x04\x08\x07\x00\x00", true),     /* field number 0 */
	    BAD("\x0a\x05\x08\x07\x49\x01\x02", true), /* a fixed64 that is cut */
	    BAD("\x0a\x0d\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x10",
		false), /* eleven bytes of varint */
	    BAD("\x0a\x0f\x08\x07\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01xyz", true),
#undef BAD
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct frames_server f;

		cr_assert_eq(decode(bad[i].bytes, bad[i].size, &f), -EBADMSG, "case %zu", i);
		cr_assert_eq(f.has_req_id, bad[i].has_req_id, "case %zu", i);
		cr_assert_eq(f.req_id, bad[i].has_req_id ? 7 : 0, "case %zu", i);
	}
}

Test(frames, finds_a_nul_that_a_c_string_would_hide)
{
	struct frames_server f;

	cr_assert_eq(DECODE("\x0a\x0b\x08\x05\x12\x07ls\0rm x", &f), 0);
	cr_assert_eq(f.command_len, 7);
	cr_assert_not_null(memchr(f.command, 0, f.command_len));
}

/* Every prefix of a message and every byte of it changed: it decodes or it does not, but never reads outside
 * (the heap copy lets ASan and valgrind see). */
Test(frames, survives_every_cut_and_every_changed_byte)
{
	static const char message[] = "\x0a\x14\x08\x96\x01\x12\x03"
				      "abc\x1a\x04\0\1\2\3\x20\x0a\x28\x01\x32\x00";
	size_t size = sizeof message - 1;
	struct frames_server f;

	for (size_t cut = 0; cut <= size; cut++) {
		uint8_t *copy = malloc(cut + 1);

		memcpy(copy, message, cut);
		(void)frames_decode(copy, cut, &f);
		for (size_t i = 0; i < cut; i++) {
			for (unsigned value = 0; value < 256; value++) {
				copy[i] = (uint8_t)value;
				if (frames_decode(copy, cut, &f) == 0 && f.command_len > 0)
					cr_assert(f.command >= copy &&
						  f.command + f.command_len <= copy + cut);
			}
			copy[i] = (uint8_t)message[i];
		}
		free(copy);
	}
}

Test(frames, skim_agrees_with_decode_at_every_split_of_every_variant)
{
	static const char message[] =
	    "\x1a\x01x\x0a\x10\x12\x03"
	    "abc\x1a\x02\0\1\x49\1\2\3\4\5\6\7\x08\x08\xac\x02\x0a\x03\x08\xac\x02\x12\x02\x08\x05";
	size_t size = sizeof message - 1;
	uint8_t bytes[sizeof message];

	for (size_t changed = 0; changed < size; changed++) {
		for (unsigned value = 0; value < 256; value += changed == 0 ? 1 : 5) {
			struct frames_server f;
			int err;

			memcpy(bytes, message, size);
			bytes[changed] = (uint8_t)value;
			err = frames_decode(bytes, size, &f);
			for (size_t split = 0; split <= size; split++) {
				struct frames_skim s;

				frames_skim_init(&s);
				frames_skim_feed(&s, bytes, split);
				frames_skim_feed(&s, bytes + split, size - split);
				if (err < 0)
					continue; /* decode stops where skim may have seen a little more */
				cr_assert_not(s.broken, "byte %zu as %u, split %zu", changed, value, split);
				cr_assert(s.kind == f.kind && s.has_req_id == f.has_req_id, "byte %zu as %u",
					  changed, value);
				cr_assert(!f.has_req_id || s.req_id == f.req_id);
			}
		}
	}
}

static Sandbox__V1__WorkerFrame *unpack(const uint8_t *at, size_t n)
{
	cr_assert_geq(n, GRPC_PREFIX);
	cr_assert_eq(at[0], 0);
	cr_assert_eq((size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4], n - GRPC_PREFIX);
	return sandbox__v1__worker_frame__unpack(NULL, n - GRPC_PREFIX, at + GRPC_PREFIX);
}

Test(frames, hello_says_exactly_what_the_settings_say)
{
	static struct settings s;
	uint8_t at[FRAMES_HELLO_MAX];
	Sandbox__V1__WorkerFrame *frame;
	Sandbox__V1__Hello *h;

	settings_init(&s);
	strcpy(s.sandbox_id, "sbx-\xc3\xa9");
	strcpy(s.image, "img:1");
	strcpy(s.trust, "untrusted");
	strcpy(s.capabilities[0], "bash");
	strcpy(s.capabilities[1], "git");
	s.capability_count = 2;
	s.capacity = 256;
	frame = unpack(at, frames_hello(at, sizeof at, &s));
	cr_assert_eq(frame->msg_case, SANDBOX__V1__WORKER_FRAME__MSG_HELLO);
	h = frame->hello;
	cr_assert_str_eq(h->sandbox_id, "sbx-\xc3\xa9");
	cr_assert_eq(h->n_labels, 0);
	cr_assert_eq(h->n_capabilities, 2);
	cr_assert_str_eq(h->capabilities[0], "bash");
	cr_assert_str_eq(h->capabilities[1], "git");
	cr_assert_str_eq(h->image, "img:1");
	cr_assert(strcmp(h->arch, "amd64") == 0 || strcmp(h->arch, "arm64") == 0);
	cr_assert_eq(h->capacity_max, 256);
	cr_assert_str_eq(h->trust, "untrusted");
	sandbox__v1__worker_frame__free_unpacked(frame, NULL);
}

Test(frames, the_longest_hello_fits)
{
	static struct settings s;
	uint8_t at[FRAMES_HELLO_MAX];

	settings_init(&s);
	memset(s.sandbox_id, 'i', sizeof s.sandbox_id - 1);
	memset(s.image, 'm', sizeof s.image - 1);
	memset(s.trust, 't', sizeof s.trust - 1);
	for (int i = 0; i < 16; i++)
		memset(s.capabilities[i], 'c', sizeof s.capabilities[i] - 1);
	s.capability_count = 16;
	s.capacity = UINT32_MAX;
	cr_assert_gt(frames_hello(at, sizeof at, &s), 2 * 1023);
	cr_assert_eq(frames_hello(at, 100, &s), 0);
}

Test(frames, heartbeat_is_an_empty_message)
{
	Sandbox__V1__WorkerFrame *frame = unpack(frames_heartbeat, sizeof frames_heartbeat);

	cr_assert_eq(frame->msg_case, SANDBOX__V1__WORKER_FRAME__MSG_HEARTBEAT);
	sandbox__v1__worker_frame__free_unpacked(frame, NULL);
}

static void ends(enum outcome_kind kind, uint32_t value, bool truncated, int32_t exit_code)
{
	uint8_t at[FRAMES_TERMINAL_MAX];
	struct outcome o = {kind, value};
	Sandbox__V1__WorkerFrame *frame;

	frame = unpack(at, frames_terminal(at, sizeof at, UINT64_MAX - 1, &o, truncated));
	cr_assert_eq(frame->msg_case, SANDBOX__V1__WORKER_FRAME__MSG_END);
	cr_assert_eq(frame->end->req_id, UINT64_MAX - 1);
	cr_assert_eq(frame->end->exit_code, exit_code);
	cr_assert_eq(frame->end->truncated, truncated);
	sandbox__v1__worker_frame__free_unpacked(frame, NULL);
}

static void fails(enum outcome_kind kind, uint32_t value, const char *message)
{
	uint8_t at[FRAMES_TERMINAL_MAX];
	struct outcome o = {kind, value};
	Sandbox__V1__WorkerFrame *frame = unpack(at, frames_terminal(at, sizeof at, 3, &o, false));

	cr_assert_eq(frame->msg_case, SANDBOX__V1__WORKER_FRAME__MSG_ERROR);
	cr_assert_eq(frame->error->req_id, 3);
	if (message)
		cr_assert_str_eq(frame->error->message, message);
	else
		cr_assert_gt(strlen(frame->error->message), 5);
	sandbox__v1__worker_frame__free_unpacked(frame, NULL);
}

Test(frames, every_outcome_has_its_terminal_frame)
{
	uint8_t at[FRAMES_TERMINAL_MAX];

	for (uint32_t code = 0; code <= 255; code++)
		ends(OUTCOME_EXITED, code, false, (int32_t)code);
	ends(OUTCOME_EXITED, 0, true, 0);
	for (uint32_t sig = 1; sig <= 64; sig++)
		ends(OUTCOME_SIGNALED, sig, false, -1);
	ends(OUTCOME_ABORTED, 0, true, -1);
	fails(OUTCOME_TIMEOUT, 1, "timeout:1");
	fails(OUTCOME_TIMEOUT, UINT32_MAX, "timeout:4294967295");
	fails(OUTCOME_REFUSED, REFUSAL_QUEUE_FULL, "busy: queue full");
	fails(OUTCOME_REFUSED, REFUSAL_MEMORY, "busy: memory");
	fails(OUTCOME_REFUSED, REFUSAL_SHUTTING_DOWN, "shutting down");
	fails(OUTCOME_REFUSED, REFUSAL_GOING_AWAY, "relay is going away");
	for (uint32_t r = 1; r <= REFUSAL_LAST; r++)
		fails(OUTCOME_REFUSED, r, NULL);
	for (uint32_t step = START_PIPES; step <= START_LAST; step++) {
		fails(OUTCOME_START_FAILED, OUTCOME_START_VALUE(step, ENOENT), NULL);
		fails(OUTCOME_START_FAILED, OUTCOME_START_VALUE(step, 0xffff), NULL);
	}
	cr_assert_eq(frames_terminal(at, sizeof at, 3, &(struct outcome){OUTCOME_LOST, 0}, false), 0);
}

Test(frames, a_chunk_of_any_size_and_id_reads_back)
{
	static const uint64_t ids[] = {0, 1, 127, 128, 1ull << 53, UINT64_MAX};
	static const size_t sizes[] = {1, 90, 120, 127, 128, 16383, 16384, 32700};
	static uint8_t slot[32 + FRAMES_CHUNK];
	uint8_t *data = slot + 32;

	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			Sandbox__V1__WorkerFrame *frame;
			size_t head;

			memset(data, 'd', sizes[k]);
			head = frames_chunk_head(data, ids[i], (uint8_t)(1 + k % 2), sizes[k]);
			cr_assert_leq(head, FRAMES_CHUNK_HEAD);
			frame = unpack(data - head, head + sizes[k]);
			cr_assert_eq(frame->msg_case, SANDBOX__V1__WORKER_FRAME__MSG_CHUNK);
			cr_assert_eq(frame->chunk->req_id, ids[i]);
			cr_assert_eq(frame->chunk->stream, 1 + k % 2);
			cr_assert_eq(frame->chunk->data.len, sizes[k]);
			cr_assert_eq(memcmp(frame->chunk->data.data, data, sizes[k]), 0);
			sandbox__v1__worker_frame__free_unpacked(frame, NULL);
		}
		cr_assert_eq(frames_chunk_head(data, ids[i], 1, frames_chunk_data(ids[i])) +
				 frames_chunk_data(ids[i]),
			     FRAMES_CHUNK, "two full DATA frames");
		cr_assert_leq(frames_chunk_data(ids[i]), LIMIT_CHUNK_DATA);
	}
}
