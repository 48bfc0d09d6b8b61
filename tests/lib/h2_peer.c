#include "tests/lib/h2_peer.h"

#include "proto/sandbox/v1/sandbox.pb-c.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one whose transport is written to. */
static struct h2_peer *current;

ssize_t h2_peer_writev(const struct iovec *iov, int count)
{
	size_t total = 0;

	if (current->socket_room == 0)
		return -EAGAIN;
	for (int i = 0; i < count; i++) {
		size_t n = iov[i].iov_len;

		if (n > current->socket_room)
			n = current->socket_room;
		cr_assert_leq(n, H2_PEER_WIRE - current->wire_used);
		memcpy(current->wire + current->wire_used, iov[i].iov_base, n);
		current->wire_used += n;
		if (current->socket_room != SIZE_MAX)
			current->socket_room -= n;
		total += n;
		if (n < iov[i].iov_len)
			break;
	}
	current->writes++;
	return (ssize_t)total;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *at, size_t size,
		   void *user)
{
	struct h2_peer *p = user;

	(void)session, (void)flags, (void)stream;
	cr_assert_leq(size, H2_PEER_BODY - p->body_used);
	memcpy(p->body + p->body_used, at, size);
	p->body_used += size;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_peer *p = user;

	(void)session;
	if (frame->hd.type == NGHTTP2_HEADERS)
		p->stream = frame->hd.stream_id;
	if (frame->hd.type == NGHTTP2_DATA) {
		if (p->data_frames < sizeof p->data_sizes / sizeof *p->data_sizes)
			p->data_sizes[p->data_frames] = frame->hd.length;
		p->data_frames++;
		p->ended |= frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	}
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		p->reset = true;
	if (frame->hd.type == NGHTTP2_PING)
		p->pings++;
	return 0;
}

static void new_session(struct h2_peer *p, uint32_t window)
{
	nghttp2_settings_entry settings = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
	nghttp2_session_callbacks *c;
	nghttp2_option *option;

	nghttp2_session_callbacks_new(&c);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
	nghttp2_option_new(&option);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_session_server_new2(&p->session, c, p, option);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(c);
	nghttp2_submit_settings(p->session, NGHTTP2_FLAG_NONE, &settings, 1);
	if (window > NGHTTP2_INITIAL_CONNECTION_WINDOW_SIZE)
		nghttp2_session_set_local_window_size(p->session, NGHTTP2_FLAG_NONE, 0, (int32_t)window);
}

void h2_peer_exchange(struct h2_peer *p)
{
	const uint8_t *at;
	ssize_t n;

	for (bool moved = true; moved;) {
		moved = p->wire_used > 0;
		n = nghttp2_session_mem_recv(p->session, p->wire, p->wire_used);
		cr_assert_eq(n, (ssize_t)p->wire_used, "%s", n < 0 ? nghttp2_strerror((int)n) : "");
		p->wire_used = 0;
		while ((n = nghttp2_session_mem_send(p->session, &at)) > 0) {
			moved = true;
			for (size_t used = 0; used < (size_t)n;) {
				size_t piece = (size_t)n - used < H2_READ ? (size_t)n - used : H2_READ;

				h2_receive(p->h2, at + used, piece, p->h2->now_ms);
				used += piece;
			}
		}
		cr_assert_eq(n, 0);
		moved = moved && p->wire_used > 0;
	}
}

void h2_peer_start(struct h2_peer *p, struct h2 *h, struct sched *s, uint32_t window,
		   void (*done)(void *owner, struct output *o), void *owner, uint64_t now_ms)
{
	static struct settings settings;
	uint8_t hello[FRAMES_HELLO_MAX];

	*p = (struct h2_peer){.h2 = h, .socket_room = SIZE_MAX};
	p->wire = malloc(H2_PEER_WIRE);
	p->body = malloc(H2_PEER_BODY);
	current = p;
	settings_init(&settings);
	strcpy(settings.token, "secret");
	new_session(p, window);
	cr_assert_eq(loop_init(&p->loop), 0);
	sched_init(s, &p->loop, h, done, NULL, owner, now_ms);
	cr_assert_eq(h2_open(h, &s->batch, now_ms), 0);
	sched_connect(s, (struct transport *)p);
	cr_assert_eq(sched_send(s, now_ms), 0);
	h2_peer_exchange(p);
	cr_assert(h->settled);
	cr_assert_eq(h2_request(h, &settings), 0);
	sched_control(s, hello, frames_hello(hello, sizeof hello, &settings));
	cr_assert_eq(sched_send(s, now_ms), 0);
	h2_peer_exchange(p);
	sched_send(s, now_ms);
	h2_peer_exchange(p);
	cr_assert_gt(p->stream, 0);
}

void h2_peer_stop(struct h2_peer *p)
{
	h2_close(p->h2);
	nghttp2_session_del(p->session);
	free(p->wire);
	free(p->body);
	loop_close(&p->loop);
}

void h2_peer_consume(struct h2_peer *p, size_t n)
{
	cr_assert_eq(nghttp2_session_consume(p->session, p->stream, n), 0);
	h2_peer_exchange(p);
}

struct h2_peer_frame h2_peer_next(struct h2_peer *p)
{
	const uint8_t *at = p->body + p->body_read;
	size_t left = p->body_used - p->body_read, size;
	struct h2_peer_frame f = {0};
	Sandbox__V1__WorkerFrame *w;

	if (left < GRPC_PREFIX)
		return f;
	cr_assert_eq(at[0], 0);
	size = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
	if (left < GRPC_PREFIX + size)
		return f;
	p->body_read += GRPC_PREFIX + size;
	w = sandbox__v1__worker_frame__unpack(NULL, size, at + GRPC_PREFIX);
	cr_assert_not_null(w);
	f.kind = w->msg_case;
	if (f.kind == SANDBOX__V1__WORKER_FRAME__MSG_CHUNK) {
		f.req_id = w->chunk->req_id;
		f.stream = w->chunk->stream;
		f.size = w->chunk->data.len;
		f.data = at + GRPC_PREFIX + size - f.size;
	} else if (f.kind == SANDBOX__V1__WORKER_FRAME__MSG_END) {
		f.req_id = w->end->req_id;
		f.exit_code = w->end->exit_code;
		f.truncated = w->end->truncated;
	} else if (f.kind == SANDBOX__V1__WORKER_FRAME__MSG_ERROR) {
		f.req_id = w->error->req_id;
		snprintf(f.message, sizeof f.message, "%s", w->error->message);
	}
	sandbox__v1__worker_frame__free_unpacked(w, NULL);
	return f;
}
