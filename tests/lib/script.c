#include "tests/lib/script.h"

#include "common/fd.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define LONGEST_MS (3600u * 1000u)

struct script script;
struct attach script_attach;
struct settings script_settings;
struct records script_records;

static nghttp2_hd_deflater *deflater;
static struct channel execd;
static int watched = -1;          /* the attempt's epoll */
static uint64_t now_ms = 1000000; /* goes on from test to test */
static struct {
	void (*done)(void *owner, struct transport *t,
		     const struct transport_end *end); /* NULL: it has been called */
	void *owner;
} dialling;

/* --- the clock ---------------------------------------------------------------------------------------- */

uint64_t script_now_ms(void)
{
	return now_ms;
}

/* What is watched is readable from a wake to the read that finds nothing more. */
static void wake(void)
{
	uint64_t one = 1;

	cr_assert_eq(write(script.event, &one, sizeof one), sizeof one);
}

static uint64_t passed_ms(void)
{
	return now_ms - script.began_ms;
}

/* When the script goes on, or UINT64_MAX. */
static uint64_t next_later_ms(void)
{
	if (dialling.done)
		return script.began_ms + script.dial_ms;
	if (script.drain_ms > passed_ms())
		return script.began_ms + script.drain_ms;
	for (size_t i = 0; i < script.later_count; i++) {
		if (script.began_ms + script.later[i].ms > now_ms)
			return script.began_ms + script.later[i].ms;
	}
	return UINT64_MAX;
}

/* To execd; a full table of what it has not answered is what it knows of. */
static bool is_anything_owed(void)
{
	const struct records *r = &script_records;

	return r->owed > 0 || r->goaway_owed ||
	       (r->pending.kind != FRAMES_NOTHING && r->works.asked < WORK_ASKED_MAX);
}

/* The first of the two, that is, of what is waited for. */
static bool freezes_before(uint64_t next, int timeout_ms)
{
	uint64_t at = script.began_ms + script.freeze_at_ms;

	return script.freeze_ms > 0 && at > now_ms && at < next &&
	       (timeout_ms < 0 || at < now_ms + (uint64_t)timeout_ms);
}

static void end_dial(void)
{
	void (*done)(void *owner, struct transport *t, const struct transport_end *end) = dialling.done;
	struct transport_end end = {.has_address = true, .address.any.sa_family = AF_INET};

	dialling.done = NULL;
	done(dialling.owner, (struct transport *)&script, &end);
}

int script_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	uint64_t next = next_later_ms();
	int n;

	if (epfd != watched) /* Criterion's own */
		return epoll_pwait(epfd, events, max, timeout_ms, NULL);
	if (dialling.done && passed_ms() >= script.dial_ms) {
		end_dial();
		return 0;
	}
	n = epoll_pwait(epfd, events, max, 0, NULL);
	if (n != 0 || timeout_ms == 0)
		return n;
	cr_assert(timeout_ms > 0 || next != UINT64_MAX, "nothing would ever wake it");
	cr_assert(script_records.watching || !is_anything_owed(),
		  "it waits although execd is to be told something");
	cr_assert_lt(passed_ms(), LONGEST_MS, "it does not end");
	if (freezes_before(next, timeout_ms)) {
		now_ms = script.began_ms + script.freeze_at_ms + script.freeze_ms;
		if (next <= now_ms)
			wake();
		return epoll_pwait(epfd, events, max, 0, NULL);
	}
	if (timeout_ms > 0 && now_ms + (uint64_t)timeout_ms < next) {
		now_ms += (uint64_t)timeout_ms;
		return 0;
	}
	now_ms = next;
	if (script.drain_ms == passed_ms())
		script_records.drain = true;
	wake();
	return epoll_pwait(epfd, events, max, 0, NULL);
}

/* --- the transport ------------------------------------------------------------------------------------ */

static size_t length_at(size_t at)
{
	const uint8_t *p = script.out + at;

	return (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
}

/* The frame at *at of what was written, which then is behind it; false: none is complete. */
static bool next_frame(size_t *at, const uint8_t **ret_head)
{
	if (*at == 0)
		*at = 24; /* the preface */
	if (*at + 9 > script.out_used || *at + 9 + length_at(*at) > script.out_used)
		return false;
	*ret_head = script.out + *at;
	*at += 9 + length_at(*at);
	return true;
}

unsigned script_sent(uint8_t type, uint8_t flags)
{
	const uint8_t *head;
	unsigned count = 0;

	for (size_t at = 0; next_frame(&at, &head);)
		count += head[3] == type && (head[4] & flags) == flags;
	return count;
}

const uint8_t *script_last(uint8_t type, size_t *ret_size)
{
	const uint8_t *head, *found = NULL;

	for (size_t at = 0; next_frame(&at, &head);) {
		if (head[3] != type)
			continue;
		found = head + 9;
		*ret_size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
	}
	return found;
}

void script_sent_field(const char *name, char *ret, size_t size)
{
	const uint8_t *block;
	nghttp2_hd_inflater *inflater;
	int flags = 0;
	size_t left;

	block = script_last(SCRIPT_HEADERS, &left);
	cr_assert_not_null(block);
	cr_assert_eq(nghttp2_hd_inflate_new(&inflater), 0);
	ret[0] = '\0';
	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		nghttp2_nv nv;
		ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, block, left, 1);

		cr_assert_geq(n, 0);
		block += n;
		left -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT && nv.namelen == strlen(name) &&
		    memcmp(nv.name, name, nv.namelen) == 0)
			snprintf(ret, size, "%.*s", (int)nv.valuelen, (const char *)nv.value);
	}
	nghttp2_hd_inflate_del(inflater);
}

static bool hello_was_written(void)
{
	script.hello = script.hello || script_sent(SCRIPT_DATA, 0) > 0;
	return script.hello;
}

int script_dial(const void *greeting, size_t size,
		void (*done)(void *owner, struct transport *t, const struct transport_end *end), void *owner)
{
	dialling.done = done;
	dialling.owner = owner;
	memcpy(script.out, greeting, size);
	script.out_used = size;
	return 0;
}

static bool failure_awaited(void)
{
	return script.write_error != 0 && !script.failed;
}

static bool end_awaited(void)
{
	return script.after_end != SIZE_MAX && script_sent(SCRIPT_DATA, SCRIPT_END_STREAM) == 0;
}

/* How far the relay has come. */
static size_t readable(void)
{
	size_t end = hello_was_written() ? script.size : script.gate;

	for (size_t i = 0; i < script.later_count; i++) {
		if (script.began_ms + script.later[i].ms > now_ms && script.later[i].offset < end)
			end = script.later[i].offset;
	}
	if (failure_awaited() && script.after_error < end)
		end = script.after_error;
	if (end_awaited() && script.after_end < end)
		end = script.after_end;
	return end;
}

ssize_t script_read(void *buf, size_t size)
{
	size_t end = readable(), n = end - script.at;

	if (n == 0 && (end < script.size || script.silent || failure_awaited() || end_awaited())) {
		(void)!read(script.event, &(uint64_t){0}, sizeof(uint64_t));
		return -EAGAIN;
	}
	if (n == 0)
		return script.read_error;
	if (n > size)
		n = size;
	if (n > script.most)
		n = script.most;
	memcpy(buf, script.bytes + script.at, n);
	script.at += n;
	return (ssize_t)n;
}

ssize_t script_writev(const struct iovec *iov, int count)
{
	size_t total = 0;

	if (script.write_error != 0 && hello_was_written()) {
		script.failed = true;
		return script.write_error;
	}
	for (int i = 0; i < count; i++) {
		size_t n = iov[i].iov_len < script.room ? iov[i].iov_len : script.room;
		size_t place = sizeof script.out - script.out_used;

		memcpy(script.out + script.out_used, iov[i].iov_base, n < place ? n : place);
		script.out_used += n < place ? n : place;
		if (script.room != SIZE_MAX)
			script.room -= n;
		total += n;
	}
	if (total == 0)
		return -EAGAIN;
	wake();
	return (ssize_t)total;
}

/* --- what the relay says ------------------------------------------------------------------------------ */

void script_raw(const void *bytes, size_t size)
{
	cr_assert_leq(size, SCRIPT_MAX - script.size);
	memcpy(script.bytes + script.size, bytes, size);
	script.size += size;
}

void script_frame(uint8_t type, uint8_t flags, uint32_t stream, const void *payload, size_t size)
{
	uint8_t head[9] = {
	    (uint8_t)(size >> 16),   (uint8_t)(size >> 8),    (uint8_t)size,          type,           flags,
	    (uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};

	script_raw(head, sizeof head);
	script_raw(payload, size);
}

void script_u32(uint8_t type, uint32_t stream, uint32_t a)
{
	uint8_t p[4] = {(uint8_t)(a >> 24), (uint8_t)(a >> 16), (uint8_t)(a >> 8), (uint8_t)a};

	script_frame(type, 0, stream, p, sizeof p);
}

void script_goaway(uint32_t last, uint32_t code, const char *debug)
{
	uint8_t p[64] = {(uint8_t)(last >> 24), (uint8_t)(last >> 16), (uint8_t)(last >> 8), (uint8_t)last,
			 (uint8_t)(code >> 24), (uint8_t)(code >> 16), (uint8_t)(code >> 8), (uint8_t)code};

	memcpy(p + 8, debug, strlen(debug));
	script_frame(SCRIPT_GOAWAY, 0, 0, p, 8 + strlen(debug));
}

void script_headers(uint8_t flags, const char *first, ...)
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
	script_frame(SCRIPT_HEADERS, flags | SCRIPT_END_HEADERS, 1, block, (size_t)n);
}

void script_response(void)
{
	script_headers(0, ":status", "200", "content-type", "application/grpc", (const char *)NULL);
}

void script_trailers(const char *status, const char *message)
{
	script_headers(SCRIPT_END_STREAM, "grpc-status", status, "grpc-message", message, (const char *)NULL);
}

void script_message(uint8_t flags, const void *body, size_t size)
{
	uint8_t p[16384] = {0, 0, 0, (uint8_t)(size >> 8), (uint8_t)size};

	memcpy(p + 5, body, size);
	script_frame(SCRIPT_DATA, flags, 1, p, 5 + size);
}

void script_later(uint64_t ms)
{
	cr_assert_lt(script.later_count, sizeof script.later / sizeof *script.later);
	script.later[script.later_count].offset = script.size;
	script.later[script.later_count++].ms = ms;
}

void script_begin_empty(void)
{
	uint8_t *bytes = script.bytes ? script.bytes : malloc(SCRIPT_MAX);

	script = (struct script){.bytes = bytes,
				 .most = SIZE_MAX,
				 .room = SIZE_MAX,
				 .gate = SIZE_MAX,
				 .after_error = SIZE_MAX,
				 .after_end = SIZE_MAX};
	if (deflater)
		nghttp2_hd_deflate_del(deflater);
	nghttp2_hd_deflate_new(&deflater, 4096);
	settings_init(&script_settings);
	strcpy(script_settings.token, "the-secret-token");
}

void script_begin(void)
{
	script_begin_empty();
	script_frame(SCRIPT_SETTINGS, 0, 0, "", 0);
	script.gate = script.size;
}

/* --- execd's end -------------------------------------------------------------------------------------- */

static void run_attempt(struct loop *loop)
{
	FD_CLOSE int log = memfd_create("log", MFD_CLOEXEC);
	FD_CLOSE int kept = dup(STDERR_FILENO);
	ssize_t n;

	dup2(log, STDERR_FILENO);
	cr_assert_eq(attach_run(&script_attach, loop, &script_settings, &script_records), 0);
	dup2(kept, STDERR_FILENO);
	n = pread(log, script.log, sizeof script.log - 1, 0);
	cr_assert_geq(n, 0);
	script.log[n] = '\0';
}

void script_said(const char *text)
{
	cr_assert(strstr(script.log, text), "%s", script.log);
}

struct channel_closed script_run(void)
{
	struct loop loop;
	int ours, theirs;

	if (script.gate > script.size)
		script.gate = script.size;
	script.event = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	script.began_ms = now_ms;
	cr_assert_eq(channel_pair(&ours, &theirs), 0);
	records_init(&script_records, theirs, &script_settings);
	script_records.channel.phase = CHANNEL_PHASE_DIALLING;
	execd = (struct channel){.fd = ours, .receives = CHANNEL_TO_EXECD, .phase = CHANNEL_PHASE_DIALLING};
	cr_assert_eq(loop_init(&loop), 0);
	watched = loop.epfd;
	run_attempt(&loop);
	watched = -1;
	records_closed(&script_records, &script_attach.closed);
	loop_close(&loop);
	h2_close(&script_attach.h2);
	fd_close(&script.event);
	script.ended_ms = now_ms - script.began_ms;
	return script_attach.closed;
}

enum channel_type script_next(struct channel_header *ret)
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

void script_end(void)
{
	close(execd.fd);
	close(script_records.channel.fd);
}

/* RST_STREAM unless the stream is over anyhow, GOAWAY, and then the end: a relay that does not see them keeps
 * the session, and refuses the next. */
static void left_in_good_order(const char *what)
{
	size_t size = 0;
	const uint8_t *goaway = script_last(SCRIPT_GOAWAY, &size);
	bool broken = goaway && memcmp(goaway + 4, "\0\0\0", 4) != 0;
	bool over = script_attach.h2.reset || script_sent(SCRIPT_HEADERS, 0) == 0 ||
		    script_sent(SCRIPT_DATA, SCRIPT_END_STREAM) > 0;
	const uint8_t *rst;

	cr_assert_not_null(goaway, "%s: no GOAWAY", what);
	cr_assert(over || broken || script_sent(SCRIPT_RST_STREAM, 0) == 1, "%s: the stream is left open",
		  what);
	rst = script_last(SCRIPT_RST_STREAM, &size);
	if (rst && !broken && script_attach.closed.close_class != CHANNEL_CLOSE_PROTOCOL)
		cr_assert_eq(rst[3], script_attach.h2.ended ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL, "%s: RST %u",
			     what, rst[3]);
	cr_assert(script.shut, "%s: our side is not shut", what);
	cr_assert_eq(script.out_at_shut, script.out_used, "%s: something left after the end", what);
}

void script_expect(const char *what, uint8_t close_class, uint8_t grpc_status)
{
	struct channel_closed c = script_run();
	struct channel_header h;
	enum channel_type type, last = 0;

	cr_assert_eq(c.close_class, close_class, "%s: %s", what, channel_close_name(c.close_class));
	cr_assert_eq(c.grpc_status, grpc_status, "%s: grpc-status %u", what, c.grpc_status);
	while ((type = script_next(&h)))
		last = type;
	cr_assert_eq(last, CHANNEL_CLOSED, "%s", what);
	if (close_class != CHANNEL_CLOSE_EOF && close_class != CHANNEL_CLOSE_TLS)
		left_in_good_order(what);
	script_end();
}
