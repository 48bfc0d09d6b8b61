#include "netd/h2_callbacks.h"

#include "netd/grpc.h"
#include "netd/h2.h"

#include <errno.h>
#include <string.h>

static int flood(struct h2 *h)
{
	h->fault = H2_FLOOD;
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;
	size_t bytes = h->block.bytes;

	(void)session, (void)frame;
	h->block = (struct h2_block){.bytes = bytes};
	return 0;
}

static bool is(const uint8_t *at, size_t size, const char *name)
{
	return size == strlen(name) && memcmp(at, name, size) == 0;
}

/* A block of 12 KB can name one entry of the table thousands of times: its fields are counted as they come.
 */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags, void *user)
{
	struct h2 *h = user;

	(void)session, (void)flags;
	h->block.bytes += name_size + value_size + 32;
	if (h->block.bytes > H2_HEADER_BYTES)
		return flood(h);
	if (frame->hd.stream_id != h->stream)
		return 0;
	if (is(name, name_size, ":status") && value_size == 3) {
		/* nghttp2 has checked that these are three digits. */
		h->block.http_status =
		    (uint16_t)((value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0'));
	} else if (is(name, name_size, "content-type")) {
		h->block.grpc_type = grpc_content_type(value, value_size);
	} else if (is(name, name_size, "grpc-status") && !h->block.has_code) {
		h->block.has_code = true;
		h->block.code = grpc_code_parse(value, value_size);
	} else if (is(name, name_size, "grpc-message")) {
		grpc_message_decode(value, value_size, h->block.message, sizeof h->block.message);
	}
	return 0;
}

static int end_of_headers(struct h2 *h, const nghttp2_frame *frame)
{
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (frame->hd.stream_id != h->stream)
		return 0;
	if (!h->responded && h->block.http_status / 100 == 1) {
		if (++h->informational > H2_INFORMATIONAL)
			return flood(h);
		return 0;
	}
	if (!h->responded) {
		h->responded = true;
		h->http_status = h->block.http_status;
		h->grpc_type = h->block.grpc_type;
	}
	if (end && h->block.has_code && !h->has_status) {
		h->has_status = true;
		h->status = h->block.code;
		memcpy(h->message, h->block.message, sizeof h->message);
	}
	if (end)
		h->ended = true;
	return 0;
}

static int end_of_data(struct h2 *h, const nghttp2_frame *frame)
{
	size_t payload = frame->hd.length - frame->data.padlen;

	if (frame->hd.stream_id != h->stream)
		return 0;
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		h->ended = true;
	else if (payload == 0 || frame->hd.length == 0)
		return h2_flood_spend(h) ? 0 : flood(h);
	h2_flood_earn(h, 2);
	return 0;
}

static void take_goaway(struct h2 *h, const nghttp2_goaway *goaway)
{
	static const char calm[] = "too_many_pings";

	h->goaway = true;
	h->goaway_code = goaway->error_code;
	if (h->stream > goaway->last_stream_id)
		h->goaway_excludes_us = true;
	if (goaway->error_code == NGHTTP2_ENHANCE_YOUR_CALM && goaway->opaque_data_len == sizeof calm - 1 &&
	    memcmp(goaway->opaque_data, calm, sizeof calm - 1) == 0)
		h->too_many_pings = true;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;

	(void)session;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		return end_of_headers(h, frame);
	case NGHTTP2_DATA:
		return end_of_data(h, frame);
	case NGHTTP2_SETTINGS:
		if (frame->hd.flags & NGHTTP2_FLAG_ACK)
			return 0;
		h->settled = true;
		return h2_flood_spend(h) ? 0 : flood(h);
	case NGHTTP2_PING:
		if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
			return h2_flood_spend(h) ? 0 : flood(h);
		h->ping_acked = true;
		return 0;
	case NGHTTP2_RST_STREAM:
		if (frame->hd.stream_id == h->stream && !h->reset) {
			h->reset = true;
			h->reset_code = frame->rst_stream.error_code;
		}
		return 0;
	case NGHTTP2_GOAWAY:
		take_goaway(h, &frame->goaway);
		return 0;
	default:
		return 0;
	}
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *at, size_t size,
		   void *user)
{
	struct h2 *h = user;

	(void)session, (void)flags;
	if (stream != h->stream || size > sizeof h->data - h->data_end)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	memcpy(h->data + h->data_end, at, size);
	h->data_end += size;
	return 0;
}

/* Also when nghttp2 itself resets the stream because of what the peer sent. */
static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
	struct h2 *h = user;

	(void)session;
	if (stream == h->stream && !h->reset && !h->ended) {
		h->reset = true;
		h->reset_code = code;
	}
	return 0;
}

static int on_invalid(nghttp2_session *session, const nghttp2_frame *frame, int lib_error, void *user)
{
	struct h2 *h = user;

	(void)session, (void)frame;
	if (h->lib_error == 0)
		h->lib_error = lib_error;
	return 0;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t size,
			nghttp2_data_source *source, void *user)
{
	struct h2 *h = user;

	(void)session, (void)frame, (void)source;
	if (!batch_frame(h->batch, head, size))
		return NGHTTP2_ERR_WOULDBLOCK;
	h->frames_sent++;
	h2_flood_earn(h, 1);
	return 0;
}

static ssize_t on_pack_extension(nghttp2_session *session, uint8_t *buf, size_t size,
				 const nghttp2_frame *frame, void *user)
{
	(void)session, (void)frame, (void)user;
	explicit_bzero(buf, size);
	return NGHTTP2_ERR_CANCEL;
}

int h2_callbacks_new(nghttp2_session_callbacks **ret)
{
	nghttp2_session_callbacks *c;

	if (nghttp2_session_callbacks_new(&c) != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(c, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(c, on_invalid);
	nghttp2_session_callbacks_set_send_data_callback(c, on_send_data);
	nghttp2_session_callbacks_set_pack_extension_callback(c, on_pack_extension);
	*ret = c;
	return 0;
}
