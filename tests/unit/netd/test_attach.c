/* A connection attempt against scripted relays: raw frames from memory in place of a socket, and a channel
 * whose other end the test reads afterwards. */
#include "netd/attach.h"

#include "common/buf.h"
#include "common/fd.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SCRIPT_MAX (24u * 1024u * 1024u)

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8 };

/* --- the transport: bytes before the request, bytes after Hello, then the end of the stream --- */
static struct {
	uint8_t *bytes;
	size_t size;
	size_t gate; /* what lies beyond waits for Hello */
	size_t at;
	size_t most; /* bytes of one read */
	int event;
	bool shut;
	bool tls_breaks; /* instead of an end */
	uint8_t out[65536];
	size_t out_used;
} wire;

static bool hello_was_written(void)
{
	/* preface, SETTINGS, WINDOW_UPDATE, ACK, HEADERS and a DATA frame on stream 1 */
	for (size_t at = 24; at + 9 <= wire.out_used;) {
		size_t n = (size_t)wire.out[at] << 16 | (size_t)wire.out[at + 1] << 8 | wire.out[at + 2];

		if (wire.out[at + 3] == DATA)
			return true;
		at += 9 + n;
	}
	return false;
}

int transport_dial(struct loop *loop, struct settings *settings,
		   void (*done)(void *owner, struct transport *t, uint8_t close_class), void *owner)
{
	(void)loop, (void)settings;
	wire.event = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	done(owner, (struct transport *)&wire, 0);
	return 0;
}

int transport_fd(const struct transport *t)
{
	(void)t;
	return wire.event;
}

ssize_t transport_read(struct transport *t, void *buf, size_t size)
{
	size_t end = hello_was_written() ? wire.size : wire.gate;
	size_t n = end - wire.at;

	(void)t;
	if (n == 0)
		return end < wire.size ? -EAGAIN : wire.tls_breaks ? -EPROTO : 0;
	if (n > size)
		n = size;
	if (n > wire.most)
		n = wire.most;
	memcpy(buf, wire.bytes + wire.at, n);
	wire.at += n;
	return (ssize_t)n;
}

ssize_t transport_writev(struct transport *t, const struct iovec *iov, int count)
{
	uint64_t one = 1;
	size_t total = 0;

	(void)t;
	for (int i = 0; i < count; i++) {
		size_t n = iov[i].iov_len, room = sizeof wire.out - wire.out_used;

		memcpy(wire.out + wire.out_used, iov[i].iov_base, n < room ? n : room);
		wire.out_used += n < room ? n : room;
		total += n;
	}
	cr_assert_eq(write(wire.event, &one, sizeof one), sizeof one);
	return (ssize_t)total;
}

bool transport_read_wants_write(const struct transport *t)
{
	(void)t;
	return false;
}

bool transport_write_wants_read(const struct transport *t)
{
	(void)t;
	return false;
}

bool transport_pending(const struct transport *t)
{
	(void)t;
	return false;
}

const char *transport_why(const struct transport *t)
{
	(void)t;
	return wire.tls_breaks ? "TLS says why" : NULL;
}

void transport_shutdown(struct transport *t)
{
	(void)t;
	wire.shut = true;
}

void transport_free(struct transport *t)
{
	(void)t;
}

/* --- scripts --- */
static nghttp2_hd_deflater *deflater;

static void raw(const void *bytes, size_t size)
{
	cr_assert_leq(size, SCRIPT_MAX - wire.size);
	memcpy(wire.bytes + wire.size, bytes, size);
	wire.size += size;
}

static void frame(uint8_t type, uint8_t flags, uint32_t stream, const void *payload, size_t size)
{
	uint8_t head[9] = {
	    (uint8_t)(size >> 16),   (uint8_t)(size >> 8),    (uint8_t)size,          type,           flags,
	    (uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};

	raw(head, sizeof head);
	raw(payload, size);
}

static void u32(uint8_t type, uint32_t stream, uint32_t a)
{
	uint8_t p[4] = {(uint8_t)(a >> 24), (uint8_t)(a >> 16), (uint8_t)(a >> 8), (uint8_t)a};

	frame(type, 0, stream, p, sizeof p);
}

static void goaway(uint32_t last, uint32_t code, const char *debug)
{
	uint8_t p[64] = {(uint8_t)(last >> 24), (uint8_t)(last >> 16), (uint8_t)(last >> 8), (uint8_t)last,
			 (uint8_t)(code >> 24), (uint8_t)(code >> 16), (uint8_t)(code >> 8), (uint8_t)code};

	memcpy(p + 8, debug, strlen(debug));
	frame(GOAWAY, 0, 0, p, 8 + strlen(debug));
}

/* name, value, …, NULL */
static void headers(uint8_t flags, const char *first, ...)
{
	nghttp2_nv nv[16];
	uint8_t block[8192];
	size_t count = 0;
	ssize_t n;
	va_list ap;

	va_start(ap, first);
	for (const char *name = first; name; name = va_arg(ap, const char *)) {
		const char *value = va_arg(ap, const char *);

		nv[count++] = (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value,
					   strlen(name), strlen(value), 0};
	}
	va_end(ap);
	n = nghttp2_hd_deflate_hd(deflater, block, sizeof block, nv, count);
	cr_assert_gt(n, 0);
	frame(HEADERS, flags | END_HEADERS, 1, block, (size_t)n);
}

static void response(void)
{
	headers(0, ":status", "200", "content-type", "application/grpc", NULL);
}

static void trailers(const char *status, const char *message)
{
	headers(END_STREAM, "grpc-status", status, "grpc-message", message, NULL);
}

/* One message of up to 16,000 bytes in one DATA frame. */
static void message(uint8_t flags, const void *body, size_t size)
{
	uint8_t p[16384] = {0, 0, 0, (uint8_t)(size >> 8), (uint8_t)size};

	memcpy(p + 5, body, size);
	frame(DATA, flags, 1, p, 5 + size);
}

static void script(void)
{
	free(wire.bytes);
	wire.bytes = malloc(SCRIPT_MAX);
	wire.size = wire.gate = wire.at = wire.out_used = 0;
	wire.most = SIZE_MAX;
	wire.shut = false;
	if (deflater)
		nghttp2_hd_deflate_del(deflater);
	nghttp2_hd_deflate_new(&deflater, 4096);
	frame(SETTINGS, 0, 0, "", 0);
	wire.gate = wire.size;
}

/* --- execd's end --- */
static struct attach attach;
static struct records records;
static struct settings settings;
static struct channel execd;

static struct channel_closed run(void)
{
	struct loop loop;
	int ours, theirs;

	cr_assert_eq(channel_pair(&ours, &theirs), 0);
	settings_init(&settings);
	strcpy(settings.token, "the-secret-token");
	records_init(&records, theirs, &settings);
	records.channel.phase = CHANNEL_PHASE_DIALLING;
	execd = (struct channel){.fd = ours, .receives = CHANNEL_TO_EXECD, .phase = CHANNEL_PHASE_DIALLING};
	cr_assert_eq(loop_init(&loop), 0);
	cr_assert_eq(attach_run(&attach, &loop, &settings, &records), 0);
	records_closed(&records, &attach.closed);
	loop_close(&loop);
	fd_close(&wire.event);
	return attach.closed;
}

/* The next record that is not ALIVE; 0: none. */
static enum channel_type next(struct channel_header *ret)
{
	static uint8_t buf[LIMIT_RECORD];
	struct channel_record r;
	const char *why = "";
	int n;

	do {
		n = channel_receive(&execd, buf, &r, &why);
		cr_assert(n != -EPROTO, "%s", why);
		if (n == 1 && r.h.type == CHANNEL_ATTACHED)
			execd.phase = CHANNEL_PHASE_ATTACHED;
	} while (n == 1 && r.h.type == CHANNEL_ALIVE);
	if (n != 1)
		return 0;
	*ret = r.h;
	return r.h.type;
}

static void expect(const char *what, uint8_t close_class, uint8_t grpc_status)
{
	struct channel_closed c = run();
	struct channel_header h;
	enum channel_type type, last = 0;

	cr_assert_eq(c.close_class, close_class, "%s: %s", what, channel_close_name(c.close_class));
	cr_assert_eq(c.grpc_status, grpc_status, "%s: grpc-status %u", what, c.grpc_status);
	while ((type = next(&h)))
		last = type;
	cr_assert_eq(last, CHANNEL_CLOSED, "%s", what);
	close(execd.fd);
	close(records.channel.fd);
}

Test(attach, says_hello_first_with_a_token_that_is_never_indexed)
{
	nghttp2_hd_inflater *inflater;
	struct channel_header h;
	bool saw_token = false;
	size_t at = 24, n;
	int flags = 0;

	script();
	response();
	run();
	cr_assert_eq(next(&h), CHANNEL_ATTACHED);
	cr_assert_eq(memcmp(wire.out, "PRI * HTTP/2.0", 14), 0);
	for (;; at += 9 + n) {
		n = (size_t)wire.out[at] << 16 | (size_t)wire.out[at + 1] << 8 | wire.out[at + 2];
		if (wire.out[at + 3] == HEADERS)
			break;
	}
	cr_assert_eq(wire.out[at + 4] & END_STREAM, 0, "never half-closed");
	nghttp2_hd_inflate_new(&inflater);
	for (size_t used = 0; !(flags & NGHTTP2_HD_INFLATE_FINAL);) {
		nghttp2_nv nv;
		ssize_t k =
		    nghttp2_hd_inflate_hd2(inflater, &nv, &flags, wire.out + at + 9 + used, n - used, 1);

		cr_assert_geq(k, 0);
		used += (size_t)k;
		if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
			continue;
		cr_assert_not(saw_token, "authorization is the last");
		if (nv.namelen == 13 && memcmp(nv.name, "authorization", 13) == 0) {
			saw_token = true;
			cr_assert(nv.flags & NGHTTP2_NV_FLAG_NO_INDEX);
			cr_assert(nv.valuelen == 23 && memcmp(nv.value, "Bearer the-secret-token", 23) == 0);
		}
	}
	cr_assert(saw_token);
	nghttp2_hd_inflate_del(inflater);
	at += 9 + n;
	cr_assert_eq(wire.out[at + 3], DATA);
	cr_assert_eq(wire.out[at + 9 + GRPC_PREFIX], 1 << 3 | 2, "WorkerFrame.hello");
	cr_assert_eq(settings.token[0], '\0', "wiped");
}

Test(attach, no_request_leaves_before_the_peer_has_said_settings)
{
	script();
	wire.size = wire.gate = 0;
	expect("silence, then the end", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
	cr_assert_null(memmem(wire.out, wire.out_used, "sandbox", 7));
	cr_assert_leq(wire.out_used, 24 + 9 + 18 + 13);
}

Test(attach, broken_tls_is_left_at_once)
{
	script();
	wire.size = wire.gate = 0;
	wire.tls_breaks = true;
	expect("an alert", CHANNEL_CLOSE_TLS, GRPC_UNAVAILABLE);
	cr_assert(!wire.shut);
}

Test(attach, tells_peers_that_do_not_speak_http2)
{
	static const char http1[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";

	for (size_t most = 1; most < 10; most++) {
		script();
		wire.size = 0;
		wire.most = most;
		raw(http1, sizeof http1 - 1);
		wire.gate = wire.size;
		expect("HTTP/1.1", CHANNEL_CLOSE_NOT_HTTP2, GRPC_UNAVAILABLE);
	}
	script();
	wire.size = 0;
	frame(PING, 0, 0, "12345678", 8);
	wire.gate = wire.size;
	expect("no SETTINGS first", CHANNEL_CLOSE_NOT_HTTP2, GRPC_UNAVAILABLE);
	script();
	wire.size = 0;
	raw("220 mail.example ESMTP\r\n220 again and again\r\n", 45);
	wire.gate = wire.size;
	expect("SMTP", CHANNEL_CLOSE_NOT_HTTP2, GRPC_UNAVAILABLE);
}

Test(attach, takes_the_status_of_complete_trailers)
{
	script();
	headers(END_STREAM, ":status", "200", "content-type", "application/grpc", "grpc-status", "0", NULL);
	expect("OK right after Hello", CHANNEL_CLOSE_STATUS, GRPC_OK);
	for (int code = 0; code <= 16; code++) {
		char text[4];

		snprintf(text, sizeof text, "%d", code);
		script();
		response();
		trailers(text, "b%61d");
		expect("trailers", CHANNEL_CLOSE_STATUS, (uint8_t)code);
		cr_assert_str_eq(attach.h2.message, "bad");
		cr_assert(wire.shut);
	}
	script();
	response();
	trailers("seven", "");
	expect("not a number", CHANNEL_CLOSE_STATUS, GRPC_UNKNOWN);
	script();
	response();
	trailers("0", "");
	u32(RST_STREAM, 1, 0);
	expect("trailers, then RST(0)", CHANNEL_CLOSE_STATUS, GRPC_OK);
	script();
	headers(END_STREAM, ":status", "503", "content-type", "text/html", "grpc-status", "5", NULL);
	expect("a status beats HTTP's", CHANNEL_CLOSE_STATUS, 5);
}

Test(attach, a_status_in_a_block_that_is_not_complete_or_not_valid_does_not_count)
{
	static const uint8_t upper[] = {0x10, 11,  'g', 'r', 'p', 'c',  '-', 's', 't', 'a',
					't',  'u', 's', 1,   '0', 0x10, 1,   'X', 1,   'x'};

	script();
	response();
	frame(HEADERS, END_STREAM | END_HEADERS, 1, upper, sizeof upper);
	expect("an upper-case name", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script();
	response();
	headers(0, "grpc-status", "0", NULL);
	expect("trailers without END_STREAM", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script();
	response();
	frame(HEADERS, END_STREAM, 1, upper, 15);
	expect("a block that does not end", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
}

Test(attach, maps_ends_without_a_status)
{
	static const struct {
		const char *http;
		uint8_t code;
	} map[] = {{"400", 13}, {"401", 16}, {"403", 7},  {"404", 12},
		   {"429", 14}, {"502", 14}, {"503", 14}, {"302", 2}};

	for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
		script();
		headers(0, ":status", map[i].http, "content-type", "text/html", NULL);
		frame(DATA, END_STREAM, 1, "<h1>no</h1>", 11);
		expect(map[i].http, CHANNEL_CLOSE_STATUS, map[i].code);
		cr_assert_eq(attach.closed.http_status, strtoul(map[i].http, NULL, 10));
	}
	script();
	headers(0, ":status", "200", "content-type", "text/html", NULL);
	frame(DATA, 0, 1, "<h1>", 4);
	expect("200 but no gRPC", CHANNEL_CLOSE_STATUS, GRPC_UNKNOWN);
	script();
	response();
	frame(DATA, END_STREAM, 1, "", 0);
	expect("END_STREAM without trailers", CHANNEL_CLOSE_STATUS, GRPC_UNKNOWN);
}

Test(attach, maps_resets)
{
	static const struct {
		uint32_t h2;
		uint8_t code;
	} map[] = {{0, 13}, {2, 13}, {7, 14}, {8, 1}, {11, 8}, {12, 7}, {13, 13}, {99, 13}};

	for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
		script();
		response();
		u32(RST_STREAM, 1, map[i].h2);
		expect("reset", CHANNEL_CLOSE_RESET, map[i].code);
		cr_assert_eq(attach.closed.h2_error, map[i].h2);
	}
}

Test(attach, refuses_broken_messages)
{
	script();
	response();
	frame(DATA, 0, 1, "\1\0\0\0\2\x0a\0", 7);
	expect("compressed", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script();
	response();
	frame(DATA, 0, 1, "\0\4\0\0\1", 5);
	expect("64 MiB and a byte", CHANNEL_CLOSE_FLOOD, GRPC_RESOURCE_EXHAUSTED);
	script();
	response();
	frame(DATA, END_STREAM, 1, "\0\0\0\0\5ab", 7);
	expect("the end inside a message", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script();
	response();
	frame(DATA, 0, 1, "\0\0\0\0\5ab", 7);
	trailers("0", "");
	expect("trailers inside a message", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script();
	response();
	message(0, "\x0a\x05\x08", 3);
	expect("not protobuf", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
}

Test(attach, hands_execs_and_aborts_on_whatever_the_split)
{
	static const char exec[] = "\x0a\x0c\x08\x07\x12\x06"
				   "echo 1\x28\x01";
	static const size_t reads[] = {1, 2, 3, 7, 100, 16384};

	for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
		struct channel_header h;
		uint8_t bytes[64] = {0, 0, 0, 0, sizeof exec - 1};

		script();
		wire.most = reads[i];
		response();
		message(0, "", 0);
		message(0, "\x1a\x02\x08\x07", 4);
		memcpy(bytes + 5, exec, sizeof exec - 1);
		for (size_t k = 0; k < 5 + sizeof exec - 1; k++) {
			frame(DATA, 0, 1, bytes + k, 1);
			frame(DATA, 0, 1, "", 0);
			frame(DATA, PADDED, 1, "\3\0\0\0", 4);
		}
		message(0, "\x12\x02\x08\x07", 4);
		trailers("0", "");
		run();
		cr_assert_eq(next(&h), CHANNEL_ATTACHED);
		cr_assert_eq(next(&h), CHANNEL_EXEC);
		cr_assert_eq(h.req_id, 7);
		cr_assert_eq(h.flags, CHANNEL_STREAMING | CHANNEL_INLINE);
		cr_assert_eq(h.len, CHANNEL_EXEC_BLOCK + 6);
		cr_assert_eq(next(&h), CHANNEL_ABORT);
		cr_assert_eq(h.req_id, 7);
		cr_assert_eq(next(&h), CHANNEL_CLOSED);
		close(execd.fd);
		close(records.channel.fd);
	}
}

Test(attach, reads_a_message_over_the_limit_through_and_refuses_it)
{
	uint32_t size = LIMIT_MESSAGE + 1, in = size - 11;
	uint8_t head[16] = {0, (uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
			    (uint8_t)size};
	static uint8_t piece[16384];
	struct channel_header h;

	script();
	response();
	/* Exec{req_id: 9, stdin: all the rest} */
	head[5] = 1 << 3 | 2;
	for (int i = 0; i < 4; i++)
		head[6 + i] = (uint8_t)(((size - 5) >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0));
	memcpy(head + 10, "\x08\x09\x1a", 3);
	frame(DATA, 0, 1, head, 13);
	for (int i = 0; i < 4; i++)
		head[i] = (uint8_t)((in - 1) >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0);
	frame(DATA, 0, 1, head, 4);
	for (in--; in > 0; in -= in < sizeof piece ? in : (uint32_t)sizeof piece)
		frame(DATA, 0, 1, piece, in < sizeof piece ? in : sizeof piece);
	message(0, "\x12\x02\x08\x07", 4);
	trailers("0", "");
	cr_assert_eq(run().close_class, CHANNEL_CLOSE_STATUS);
	cr_assert_eq(next(&h), CHANNEL_ATTACHED);
	cr_assert_eq(next(&h), CHANNEL_EXEC);
	cr_assert(h.req_id == 9 && h.flags == 0 && h.len == CHANNEL_EXEC_BLOCK);
	cr_assert_eq(next(&h), CHANNEL_ABORT, "its neighbours live");
	cr_assert_eq(next(&h), CHANNEL_CLOSED);
}

Test(attach, tells_a_goaway_that_excludes_us_from_one_that_does_not)
{
	struct channel_header h;
	struct channel_closed c;

	script();
	goaway(0, 0, "");
	expect("last stream 0", CHANNEL_CLOSE_GOAWAY, GRPC_UNAVAILABLE);
	script();
	response();
	goaway(0x7fffffff, 0, "");
	goaway(1, 0, "");
	trailers("14", "");
	c = run();
	cr_assert(c.close_class == CHANNEL_CLOSE_STATUS && c.grpc_status == 14);
	cr_assert_eq(next(&h), CHANNEL_ATTACHED);
	cr_assert_eq(next(&h), CHANNEL_GOAWAY);
	cr_assert_eq(next(&h), CHANNEL_CLOSED);
}

Test(attach, learns_from_too_many_pings)
{
	script();
	response();
	goaway(1, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
	expect("too many pings", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
	cr_assert_eq(attach.closed.ping_ms, LIMIT_PING_CALM_MS);
	script();
	response();
	goaway(1, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_others");
	expect("calm about something else", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
	cr_assert_eq(attach.closed.ping_ms, 0);
}

Test(attach, bounds_informational_responses)
{
	for (unsigned count = H2_INFORMATIONAL - 1; count <= H2_INFORMATIONAL + 1; count++) {
		script();
		for (unsigned i = 0; i < count; i++)
			headers(0, ":status", "103", "link", "x", NULL);
		response();
		trailers("0", "");
		if (count <= H2_INFORMATIONAL)
			expect("1xx", CHANNEL_CLOSE_STATUS, GRPC_OK);
		else
			expect("1xx", CHANNEL_CLOSE_FLOOD, GRPC_UNAVAILABLE);
	}
}

Test(attach, bounds_header_bombs)
{
	static uint8_t block[16000];
	size_t n = 0;

	script();
	response();
	/* one entry of 3,900 bytes in the dynamic table, then named again and again */
	memcpy(block,
	       "\x40\x01"
	       "a\x7f\xbd\x1d",
	       6);
	n = 6 + 3900;
	memset(block + 6, 'v', 3900);
	memset(block + n, 0xbe, 12000);
	frame(HEADERS, END_STREAM | END_HEADERS, 1, block, n + 12000);
	expect("a bomb", CHANNEL_CLOSE_FLOOD, GRPC_UNAVAILABLE);
	cr_assert_leq(attach.h2.memory, H2_MEMORY);
}

static void flood(const char *what, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
		  size_t size, unsigned count, bool drowned)
{
	script();
	response();
	for (unsigned i = 0; i < count; i++)
		frame(type, flags, stream, payload, size);
	trailers("0", "");
	if (drowned)
		expect(what, CHANNEL_CLOSE_FLOOD, GRPC_UNAVAILABLE);
	else
		expect(what, CHANNEL_CLOSE_STATUS, GRPC_OK);
}

Test(attach, bounds_frames_that_carry_nothing)
{
	static const uint8_t padding[256] = {255};
	unsigned below = H2_IDLE_FRAMES - 10, above = 3 * H2_IDLE_FRAMES;

	flood("empty DATA", DATA, 0, 1, "", 0, below, false);
	flood("empty DATA", DATA, 0, 1, "", 0, above, true);
	flood("padding", DATA, PADDED, 1, padding, sizeof padding, below, false);
	flood("padding", DATA, PADDED, 1, padding, sizeof padding, above, true);
	flood("PING", PING, 0, 0, "12345678", 8, below, false);
	flood("PING", PING, 0, 0, "12345678", 8, above, true);
	flood("SETTINGS", SETTINGS, 0, 0, "", 0, below, false);
	flood("SETTINGS", SETTINGS, 0, 0, "", 0, above, true);
}

Test(attach, refuses_what_breaks_http2)
{
	static uint8_t big[16385];

	script();
	response();
	frame(DATA, 0, 1, big, sizeof big);
	expect("a frame too big", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script();
	response();
	u32(WINDOW_UPDATE, 0, 0x7fffffff);
	expect("the connection's window overflows", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script();
	response();
	frame(SETTINGS, 0, 0, "\0\4\xff\xff\xff\xff", 6);
	expect("a window over 2^31", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script();
	frame(SETTINGS, ACK, 0, "", 0);
	response();
	frame(PUSH_PROMISE, END_HEADERS, 1, "\0\0\0\2\x82\x84\x86", 7);
	expect("a push", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script();
	frame(DATA, 0, 1, "xx", 2);
	expect("DATA before HEADERS", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script();
	response();
	frame(HEADERS, END_HEADERS, 1, "\xff\xff\xff\xff\xff\xff", 6);
	expect("HPACK that cannot be", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
	script();
	headers(0, "content-type", "application/grpc", NULL);
	expect("no :status", CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL);
	script();
	response();
	u32(WINDOW_UPDATE, 1, 0);
	expect("a window update of nothing", CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE);
}

Test(attach, passes_over_what_it_need_not_know)
{
	script();
	frame(0x77, 0xff, 1, "hello", 5);
	frame(PRIORITY, 0, 3, "\0\0\0\0\1", 5);
	frame(0xa, 0, 0, "\0\1ah2=", 6);
	response();
	frame(0xbb, 0, 0, "x", 1);
	trailers("0", "");
	expect("unknown frames", CHANNEL_CLOSE_STATUS, GRPC_OK);
}
