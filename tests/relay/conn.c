/* A connection: the nghttp2 server session, its callbacks, and its end. */
#include "tests/relay/internal.h"

#include "common/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define RATE_SLICE_MS 20u

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
						     relay_stream_open(user, frame->hd.stream_id));
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags, void *user)
{
	struct relay_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (stream)
		relay_stream_header(stream, name, name_size, value, value_size);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t size,
		   void *user)
{
	struct relay_stream *stream = nghttp2_session_get_stream_user_data(session, id);
	struct relay_conn *conn = user;

	(void)flags;
	if (stream && conn->manners.hold_window)
		stream->held += size;
	else
		nghttp2_session_consume(session, id, size);
	if (stream)
		relay_stream_data(stream, data, size);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct relay_stream *stream = NULL;
	struct relay_conn *conn = user;

	if (frame->hd.stream_id > 0)
		stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (frame->hd.type == NGHTTP2_HEADERS && stream)
		relay_stream_requested(stream);
	if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) && stream)
		relay_stream_half_closed(stream);
	if (frame->hd.type == NGHTTP2_RST_STREAM && stream && stream->worker) {
		stream->worker->reset = true;
		stream->worker->reset_code = frame->rst_stream.error_code;
	}
	if (frame->hd.type == NGHTTP2_PING && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
		conn->pings++;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		conn->said_goaway = true;
	if (conn->worker) {
		conn->worker->pings = conn->pings;
		conn->worker->said_goaway = conn->said_goaway;
	}
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct relay_stream *stream = nghttp2_session_get_stream_user_data(session, id);

	(void)code;
	(void)user;
	if (stream)
		relay_stream_closed(stream);
	return 0;
}

static int before_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	const struct relay_conn *conn = user;
	bool ack = frame->hd.flags & NGHTTP2_FLAG_ACK;

	(void)session;
	if (ack && frame->hd.type == NGHTTP2_SETTINGS && conn->manners.no_settings_ack)
		return NGHTTP2_ERR_CANCEL;
	if (ack && frame->hd.type == NGHTTP2_PING && conn->manners.no_ping_ack)
		return NGHTTP2_ERR_CANCEL;
	return 0;
}

static int make_session(struct relay_conn *conn)
{
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *option = NULL;
	int r = -ENOMEM;

	if (nghttp2_session_callbacks_new(&cb) == 0 && nghttp2_option_new(&option) == 0) {
		nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
		nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
		nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
		nghttp2_session_callbacks_set_before_frame_send_callback(cb, before_frame_send);
		nghttp2_option_set_no_auto_window_update(option, 1);
		if (nghttp2_session_server_new2(&conn->io.session, cb, conn, option) == 0)
			r = 0;
	}
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(option);
	return r;
}

static void conn_read(struct relay_conn *conn)
{
	size_t *budget = conn->manners.read_rate > 0 ? &conn->rate_budget : NULL;
	char waste[4096];
	int r;

	if (conn->draining) {
		ssize_t n = recv(conn->io.source.fd, waste, sizeof waste, MSG_DONTWAIT);

		conn->over = n == 0 || (n < 0 && errno != EAGAIN);
		return;
	}
	conn->relay->busy = true;
	r = relay_io_read(&conn->io, budget);
	conn->relay->busy = false;
	if (r == -EPROTO)
		relay_complain(conn->relay, "a peer broke HTTP/2 or TLS");
	conn->over |= r < 0;
	if (budget && *budget == 0) {
		conn->io.paused = true;
		loop_timer_set(conn->io.loop, &conn->rate_timer, clock_now_ms() + RATE_SLICE_MS);
	}
}

static void on_rate(struct loop_timer *timer, uint64_t now_ms)
{
	struct relay_conn *conn = timer->owner;

	(void)now_ms;
	conn->rate_budget = conn->manners.read_rate * RATE_SLICE_MS / 1000u + 1;
	conn->io.paused = false;
	conn_read(conn);
	relay_flush(conn->relay);
}

static void on_ready(struct loop_source *source, uint32_t events)
{
	struct relay_conn *conn = source->owner;

	if (conn->io.paused && (events & (EPOLLHUP | EPOLLERR)))
		conn->over = true;
	else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) || conn->io.tls)
		conn_read(conn);
	relay_flush(conn->relay);
}

void relay_conn_accept(struct relay *relay, int fd)
{
	struct relay_conn *conn = calloc(1, sizeof *conn);
	nghttp2_settings_entry window = {.settings_id = NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE};

	if (!conn)
		abort();
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	conn->relay = relay;
	conn->manners = relay->manners;
	conn->rate_timer = (struct loop_timer){.fire = on_rate, .owner = conn};
	conn->rate_budget = conn->manners.read_rate * RATE_SLICE_MS / 1000u + 1;
	conn->io = (struct relay_io){.loop = &relay->loop, .mute = conn->manners.mute};
	conn->io.source = (struct loop_source){.fd = fd, .ready = on_ready, .owner = conn};
	if (make_session(conn) < 0 || loop_add(&relay->loop, &conn->io.source, EPOLLIN) < 0)
		abort();
	if (relay->tls) {
		conn->io.tls = SSL_new(relay->tls);
		if (!conn->io.tls || !SSL_set_fd(conn->io.tls, fd))
			abort();
		SSL_set_accept_state(conn->io.tls);
	}
	window.value = conn->manners.initial_window;
	nghttp2_submit_settings(conn->io.session, NGHTTP2_FLAG_NONE, &window,
				conn->manners.set_initial_window);
	conn->next = relay->conns;
	relay->conns = conn;
	relay->connections++;
	relay_flush(relay);
}

void relay_conn_close(struct relay_conn *conn, bool reset)
{
	struct relay_conn **at = &conn->relay->conns;
	bool busy = conn->relay->busy;

	conn->relay->busy = true;
	while (conn->streams)
		relay_stream_closed(conn->streams);
	conn->relay->busy = busy;
	loop_timer_stop(conn->io.loop, &conn->rate_timer);
	relay_io_close(&conn->io, reset);
	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	free(conn);
}

void relay_conn_drain(struct relay_conn *conn)
{
	bool busy = conn->relay->busy;

	conn->draining = true;
	conn->io.mute = true;
	conn->io.paused = false;
	if (conn->io.tls)
		SSL_shutdown(conn->io.tls);
	shutdown(conn->io.source.fd, SHUT_WR);
	conn->relay->busy = true;
	while (conn->streams)
		relay_stream_closed(conn->streams);
	conn->relay->busy = busy;
	conn->io.want_write = false;
	relay_io_watch(&conn->io);
}

void relay_conn_hold(struct relay_conn *conn, bool on)
{
	conn->manners.hold_window = on;
	for (struct relay_stream *s = conn->streams; s && !on; s = s->next) {
		nghttp2_session_consume(conn->io.session, s->id, s->held);
		s->held = 0;
	}
}

void relay_conn_rate(struct relay_conn *conn, uint32_t bytes_per_s)
{
	loop_timer_stop(conn->io.loop, &conn->rate_timer);
	conn->manners.read_rate = bytes_per_s;
	conn->rate_budget = bytes_per_s * RATE_SLICE_MS / 1000u + 1;
	conn->io.paused = false;
}
