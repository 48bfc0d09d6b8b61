/* Misbehaviour on a worker's connection, on request. */
#include "tests/relay/internal.h"
#include "tests/relay/wire.h"

#include <string.h>

static struct relay_conn *conn_of(struct relay_worker *worker)
{
	return worker->stream ? worker->stream->conn : NULL;
}

void relay_cut(struct relay_worker *worker, enum relay_cut how)
{
	struct relay_conn *conn = conn_of(worker);
	uint8_t half[RELAY_GRPC_PREFIX + 50] = {0};

	if (!conn)
		return;
	if (how == RELAY_CUT_MIDDLE) {
		relay_grpc_prefix(half, 100);
		relay_stream_send_raw(worker->stream, half, sizeof half);
		relay_io_flush(&conn->io);
	}
	relay_conn_close(conn, how == RELAY_CUT_RESET);
	relay_flush(worker->relay);
}

void relay_stall(struct relay_worker *worker, bool on)
{
	struct relay_conn *conn = conn_of(worker);

	if (!conn)
		return;
	conn->io.paused = on;
	relay_io_watch(&conn->io);
}

void relay_hold_window(struct relay_worker *worker, bool on)
{
	struct relay_conn *conn = conn_of(worker);

	if (!conn)
		return;
	relay_conn_hold(conn, on);
	relay_flush(worker->relay);
}

void relay_read_rate(struct relay_worker *worker, uint32_t bytes_per_s)
{
	struct relay_conn *conn = conn_of(worker);

	if (!conn)
		return;
	relay_conn_rate(conn, bytes_per_s);
	relay_io_watch(&conn->io);
}

void relay_shrink_window(struct relay_worker *worker, uint32_t size)
{
	nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, size};
	struct relay_conn *conn = conn_of(worker);

	if (!conn)
		return;
	nghttp2_submit_settings(conn->io.session, NGHTTP2_FLAG_NONE, &entry, 1);
	relay_flush(worker->relay);
}

static void send_goaway(struct relay_worker *worker, int32_t last_stream)
{
	struct relay_conn *conn = conn_of(worker);

	if (!conn)
		return;
	nghttp2_submit_goaway(conn->io.session, NGHTTP2_FLAG_NONE, last_stream, NGHTTP2_NO_ERROR, NULL, 0);
	relay_flush(worker->relay);
}

void relay_goaway(struct relay_worker *worker)
{
	if (worker->stream)
		send_goaway(worker, worker->stream->id);
}

void relay_goaway_soon(struct relay_worker *worker)
{
	send_goaway(worker, INT32_MAX);
}

void relay_goaway_without(struct relay_worker *worker)
{
	send_goaway(worker, 0);
}

void relay_calm(struct relay_worker *worker)
{
	static const char why[] = "too_many_pings";
	struct relay_conn *conn = conn_of(worker);

	if (!conn)
		return;
	nghttp2_submit_goaway(conn->io.session, NGHTTP2_FLAG_NONE, worker->stream->id,
			      NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *)why, strlen(why));
	relay_io_flush(&conn->io);
	relay_conn_drain(conn);
	relay_flush(worker->relay);
}

void relay_end_stream(struct relay_worker *worker, int grpc_status, const char *message)
{
	if (!worker->stream)
		return;
	relay_stream_end(worker->stream, grpc_status, message);
	relay_flush(worker->relay);
}

void relay_reset_stream(struct relay_worker *worker, uint32_t code)
{
	struct relay_conn *conn = conn_of(worker);

	if (!conn)
		return;
	nghttp2_submit_rst_stream(conn->io.session, NGHTTP2_FLAG_NONE, worker->stream->id, code);
	relay_flush(worker->relay);
}

void relay_byte_frames(struct relay_worker *worker, bool on)
{
	struct relay_conn *conn = conn_of(worker);

	if (conn)
		conn->manners.byte_frames = on;
}
