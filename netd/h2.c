#include "netd/h2.h"

#include "netd/h2_callbacks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int to_errno(int lib_error)
{
	return lib_error == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
}

static int new_session(struct h2 *h, nghttp2_session_callbacks *callbacks)
{
	nghttp2_option *option;
	nghttp2_mem mem;
	int err;

	if (nghttp2_option_new(&option) != 0)
		return -ENOMEM;
	nghttp2_option_set_no_auto_window_update(option, 1);
	h2_memory_init(&mem, &h->memory);
	/* nghttp2 copies mem; its user data points into *h, which must not move. */
	err = nghttp2_session_client_new3(&h->session, callbacks, h, option, &mem);
	nghttp2_option_del(option);
	return err == 0 ? 0 : -ENOMEM;
}

int h2_open(struct h2 *h, struct batch *batch, uint64_t now_ms)
{
	static const nghttp2_settings_entry settings[] = {
	    {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	    {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW},
	    {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 16384},
	};
	nghttp2_session_callbacks *callbacks;
	int err;

	*h = (struct h2){.batch = batch, .credit = H2_IDLE_FRAMES, .credit_ms = now_ms, .now_ms = now_ms};
	err = h2_callbacks_new(&callbacks);
	if (err < 0)
		return err;
	err = new_session(h, callbacks);
	nghttp2_session_callbacks_del(callbacks);
	if (err < 0)
		return err;
	err = nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings,
				      sizeof settings / sizeof *settings);
	if (err == 0)
		err = nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, H2_WINDOW);
	return err == 0 ? 0 : to_errno(err);
}

size_t h2_greeting(struct h2 *h, uint8_t out[H2_GREETING])
{
	const uint8_t *at;
	size_t used = 0;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(h->session, &at)) > 0 && (size_t)n <= H2_GREETING - used) {
		memcpy(out + used, at, (size_t)n);
		used += (size_t)n;
	}
	return n == 0 ? used : 0;
}

void h2_close(struct h2 *h)
{
	nghttp2_session_del(h->session);
	h->session = NULL;
}

/* What is offered is framed without a copy; on_send_data takes it from the batch. */
static ssize_t provide(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t size, uint32_t *flags,
		       nghttp2_data_source *source, void *user)
{
	struct h2 *h = user;
	size_t n = h->batch->unframed;

	(void)session, (void)stream, (void)buf, (void)source;
	if (n == 0 && !h->finish)
		return NGHTTP2_ERR_DEFERRED;
	if (n == 0) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		return 0;
	}
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	return (ssize_t)(n < size ? n : size);
}

static nghttp2_nv field(const char *name, const char *value, uint8_t flags)
{
	return (nghttp2_nv){
	    .name = (uint8_t *)(uintptr_t)name,
	    .value = (uint8_t *)(uintptr_t)value,
	    .namelen = strlen(name),
	    .valuelen = strlen(value),
	    .flags = flags,
	};
}

static void put_authority(char *at, size_t size, const struct settings *s)
{
	const char *host = s->relay_tls && s->server_name[0] ? s->server_name : s->relay_host;
	bool v6 = strchr(host, ':') != NULL;

	snprintf(at, size, "%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "", s->relay_port);
}

int h2_request(struct h2 *h, const struct settings *settings)
{
	char authority[sizeof settings->relay_host + 16];
	char bearer[sizeof "Bearer " + LIMIT_TOKEN + 1];
	nghttp2_data_provider body = {.read_callback = provide};
	int32_t stream;

	put_authority(authority, sizeof authority, settings);
	snprintf(bearer, sizeof bearer, "Bearer %s", settings->token);
	nghttp2_nv fields[] = {
	    field(":method", "POST", 0),
	    field(":scheme", settings->relay_tls ? "https" : "http", 0),
	    field(":path", "/sandbox.v1.SandboxWorker/Attach", 0),
	    field(":authority", authority, 0),
	    field("te", "trailers", 0),
	    field("content-type", "application/grpc", 0),
	    field("user-agent", "sandbox-worker/" WORKER_VERSION, 0),
	    field("authorization", bearer, NGHTTP2_NV_FLAG_NO_INDEX),
	};
	stream =
	    nghttp2_submit_request(h->session, NULL, fields, sizeof fields / sizeof *fields, &body, NULL);
	explicit_bzero(bearer, sizeof bearer);
	if (stream < 0)
		return to_errno(stream);
	h->stream = stream;
	return 0;
}

/* nghttp2 keeps the buffer in which it makes frames. Our callback wipes it and has the frame dropped. */
void h2_forget_request(struct h2 *h)
{
	nghttp2_submit_extension(h->session, H2_WIPE_FRAME, NGHTTP2_FLAG_NONE, 0, NULL);
}

void h2_receive(struct h2 *h, const uint8_t *at, size_t size, uint64_t now_ms)
{
	ssize_t n;

	h->data_at = h->data_end = 0;
	h->now_ms = now_ms;
	n = nghttp2_session_mem_recv(h->session, at, size);
	if (n >= 0)
		return;
	if (h->lib_error == 0)
		h->lib_error = (int)n;
	if (h->fault == H2_FINE && n == NGHTTP2_ERR_FLOODED)
		h->fault = H2_FLOOD;
	/* A peer that makes nghttp2 go over its budget is flooding us, whatever with. */
	if (h->fault == H2_FINE && n == NGHTTP2_ERR_NOMEM)
		h->fault = H2_FLOOD;
	if (h->fault == H2_FINE)
		h->fault = h->settled ? H2_PROTOCOL : H2_NOT_HTTP2;
}

size_t h2_data(const struct h2 *h, const uint8_t **ret_at)
{
	*ret_at = h->data + h->data_at;
	return h->data_end - h->data_at;
}

void h2_take(struct h2 *h, size_t n)
{
	h->data_at += n;
	if (n > 0)
		nghttp2_session_consume(h->session, h->stream, n);
}

int h2_collect(struct h2 *h)
{
	const uint8_t *at;
	ssize_t n;

	while (batch_takes_own(h->batch)) {
		n = nghttp2_session_mem_send(h->session, &at);
		if (n < 0) {
			h->fault = H2_INTERNAL;
			h->lib_error = (int)n;
			return to_errno((int)n);
		}
		if (n == 0)
			return 0;
		batch_own(h->batch, at, (size_t)n);
	}
	return 0;
}

void h2_resume(struct h2 *h)
{
	/* It fails when the stream does not wait for us but for the window; the window's update resumes it
	 * then. */
	if (h->stream > 0)
		nghttp2_session_resume_data(h->session, h->stream);
}

size_t h2_room(const struct h2 *h)
{
	int32_t stream, connection;

	if (h->stream <= 0)
		return 0;
	stream = nghttp2_session_get_stream_remote_window_size(h->session, h->stream);
	connection = nghttp2_session_get_remote_window_size(h->session);
	if (stream <= 0 || connection <= 0)
		return 0;
	return (size_t)(stream < connection ? stream : connection);
}

const char *h2_held_up(const struct h2 *h)
{
	if (!batch_is_written(h->batch))
		return "the relay does not read";
	if (nghttp2_session_get_stream_remote_window_size(h->session, h->stream) < 0)
		return "the relay allows no stream (SETTINGS_MAX_CONCURRENT_STREAMS)";
	if (h2_room(h) == 0)
		return "the relay's window is shut (SETTINGS_INITIAL_WINDOW_SIZE)";
	return "execd does not take the news";
}

size_t h2_window(const struct h2 *h)
{
	return nghttp2_session_get_remote_settings(h->session, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE);
}

int h2_ping(struct h2 *h)
{
	int err = nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, NULL);

	h->ping_acked = false;
	return err == 0 ? 0 : to_errno(err);
}

/* Both sides have ended it, and nghttp2 has forgotten it. */
static bool is_over(const struct h2 *h)
{
	return h->ended && nghttp2_session_get_stream_local_close(h->session, h->stream) != 0;
}

void h2_leave(struct h2 *h, int code)
{
	if (h->stream > 0 && !h->reset && !is_over(h) && code >= 0)
		nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, h->stream, (uint32_t)code);
	nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
}

bool h2_is_dead(const struct h2 *h)
{
	return !nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session);
}
