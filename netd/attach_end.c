#include "netd/attach.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"

#include <errno.h>

/* Why a connection is over, and how it is left. */

static const char *class_name(const struct attach *a)
{
	return channel_close_name(a->closed.close_class);
}

void attach_fail(struct attach *a, uint8_t close_class, uint8_t grpc_status, const char *why)
{
	struct h2 *h = &a->h2;

	if (a->closed.close_class != 0)
		return;
	a->closed.close_class = close_class;
	a->closed.grpc_status = grpc_status;
	a->closed.http_status = h->http_status;
	a->closed.h2_error = h->reset ? h->reset_code : h->goaway_code;
	a->closed.ping_ms = h->too_many_pings ? LIMIT_PING_CALM_MS : 0;
	log_emit(close_class == CHANNEL_CLOSE_DRAINED ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "connection closed",
		 LOG_FIELDS(LOG_STR("class", class_name(a)), LOG_STR("why", why),
			    LOG_STR("grpc_status", grpc_code_name(grpc_status)),
			    LOG_STR("grpc_message", h->message), LOG_U64("http_status", h->http_status),
			    LOG_U64("h2_error", a->closed.h2_error), LOG_I64("h2_lib", h->lib_error)));
	records_stop(a->records);
	if (!a->transport || !h->session || close_class == CHANNEL_CLOSE_EOF ||
	    close_class == CHANNEL_CLOSE_TLS) {
		a->state = ATTACH_OVER;
		return;
	}
	/* When the peer has ended the stream while ours is open, nghttp2 would keep it half-closed for ever.
	 */
	h2_leave(h, h->ended ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
	a->state = ATTACH_LEAVING;
	a->sched.more = true;
	loop_timer_stop(a->loop, &a->heartbeat);
	loop_timer_stop(a->loop, &a->keepalive);
	loop_watch_stop(&a->handshake);
	loop_watch_stop(&a->ack);
	loop_timer_set(a->loop, &a->deadline, clock_now_ms() + ATTACH_LEAVE_MS);
}

static bool judge_fault(struct attach *a)
{
	struct h2 *h = &a->h2;
	const char *detail = h->lib_error ? nghttp2_strerror(h->lib_error) : "HTTP/2 is broken";

	switch (h->fault) {
	case H2_FLOOD:
		attach_fail(a, CHANNEL_CLOSE_FLOOD, GRPC_UNAVAILABLE,
			    "the peer sends too much of what carries nothing");
		return true;
	case H2_NOT_HTTP2:
		attach_fail(a, CHANNEL_CLOSE_NOT_HTTP2, GRPC_UNAVAILABLE, "the peer does not speak HTTP/2");
		return true;
	case H2_PROTOCOL:
		attach_fail(a, CHANNEL_CLOSE_PROTOCOL, GRPC_UNAVAILABLE, detail);
		return true;
	case H2_INTERNAL:
		attach_fail(a, CHANNEL_CLOSE_INTERNAL, CHANNEL_NO_STATUS, detail);
		return true;
	case H2_FINE:
		return false;
	}
	return false;
}

/* A relay refuses a token or a second worker of the same id by an OK right after Hello. */
static const char *ended_call(const struct attach *a, uint64_t now_ms)
{
	bool soon = a->state < ATTACH_SERVING || now_ms - a->hello_ms < ATTACH_REFUSED_MS;

	if (a->h2.status == GRPC_OK && soon && a->records->frames_in == 0)
		return "the relay ended the call right after Hello: is the token right for this id, or is "
		       "the id "
		       "attached elsewhere?";
	return "the relay ended the call";
}

/* The stream's own end: the status that came, else what stands for it. */
static bool judge_stream(struct attach *a, uint64_t now_ms)
{
	struct h2 *h = &a->h2;

	/* An OK inside a message is none. */
	if (h->has_status && (h->status != GRPC_OK || !grpc_reader_inside(&a->reader))) {
		attach_fail(a, CHANNEL_CLOSE_STATUS, h->status, ended_call(a, now_ms));
		return true;
	}
	if (h->responded && (h->http_status != 200 || !h->grpc_type)) {
		attach_fail(a, CHANNEL_CLOSE_STATUS, grpc_code_of_http(h->http_status),
			    h->http_status != 200 ? "an HTTP status that is not 200"
						  : "an answer that is not gRPC");
		return true;
	}
	if (h->ended && grpc_reader_inside(&a->reader)) {
		attach_fail(a, CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL, "the stream ended inside a message");
		return true;
	}
	if (h->ended) {
		attach_fail(a, CHANNEL_CLOSE_STATUS, GRPC_UNKNOWN,
			    "the relay ended the call without a status");
		return true;
	}
	if (h->reset && h->lib_error != 0) {
		attach_fail(a, CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL, nghttp2_strerror(h->lib_error));
		return true;
	}
	if (h->reset) {
		attach_fail(a, CHANNEL_CLOSE_RESET, grpc_code_of_reset(h->reset_code),
			    "the relay reset the call");
		return true;
	}
	return false;
}

static bool judge_goaway(struct attach *a)
{
	struct h2 *h = &a->h2;

	if (h->goaway_excludes_us || a->state < ATTACH_SERVING) {
		attach_fail(a, CHANNEL_CLOSE_GOAWAY, GRPC_UNAVAILABLE, "GOAWAY");
		return true;
	}
	if (a->goaway_told)
		return false;
	a->goaway_told = true;
	log_warn("the relay is going away", LOG_U64("h2_error", h->goaway_code),
		 LOG_U64("too_many_pings", h->too_many_pings));
	if (h->too_many_pings)
		a->settings->ping_ms = LIMIT_PING_CALM_MS;
	records_goaway(a->records);
	a->sched.more = true;
	return false;
}

bool attach_judge(struct attach *a, uint64_t now_ms)
{
	const uint8_t *at;

	if (!a->transport || a->closed.close_class != 0)
		return true;
	if (judge_fault(a))
		return true;
	/* Messages before the end count: the end waits until they are read. What is no gRPC has none. */
	if (h2_data(&a->h2, &at) > 0 && a->h2.grpc_type && a->h2.http_status == 200)
		return false;
	if (a->state == ATTACH_FINISHED) {
		if (a->h2.ended || a->h2.reset)
			loop_timer_set(a->loop, &a->deadline, now_ms);
		return false;
	}
	if (a->h2.goaway && judge_goaway(a))
		return true;
	if (judge_stream(a, now_ms))
		return true;
	/* An error of the connection that nghttp2 finds is told by this alone. */
	if (h2_is_dead(&a->h2)) {
		a->h2.fault = a->h2.settled ? H2_PROTOCOL : H2_NOT_HTTP2;
		return judge_fault(a);
	}
	return false;
}

void attach_drain(struct attach *a, uint64_t now_ms)
{
	if (a->state < ATTACH_SERVING) {
		attach_fail(a, CHANNEL_CLOSE_DRAINED, CHANNEL_NO_STATUS, "told to leave");
		return;
	}
	if (a->state != ATTACH_SERVING)
		return;
	a->state = ATTACH_DRAINING;
	loop_timer_set(a->loop, &a->deadline, now_ms + ATTACH_DRAIN_MS);
}

/* We were told to leave, and have: nothing is lost. */
static void finished(struct attach *a, const char *why)
{
	attach_fail(a, a->goaway_told ? CHANNEL_CLOSE_GOAWAY : CHANNEL_CLOSE_DRAINED, CHANNEL_NO_STATUS, why);
}

void attach_lost(struct attach *a, int err)
{
	const char *why = transport_why(a->transport);

	if (!why)
		why = err == 0 ? "the peer closed the connection" : log_errno(err);
	if (a->state >= ATTACH_LEAVING)
		a->state = ATTACH_OVER;
	else if (a->state == ATTACH_FINISHED)
		finished(a, "told to leave");
	else
		attach_fail(a, err == -EPROTO ? CHANNEL_CLOSE_TLS : CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE, why);
}

static void hello_is_stuck(struct attach *a)
{
	char text[128];
	struct buf_text why;

	buf_text_init(&why, text, sizeof text);
	buf_text_addf(&why, "no Hello within 20 s: %s", h2_held_up(&a->h2));
	attach_fail(a, CHANNEL_CLOSE_HANDSHAKE, GRPC_UNAVAILABLE, text);
}

/* The dial has the same limit, and says where it got stuck. */
void attach_no_handshake(struct loop_watch *watch, uint64_t now_ms)
{
	struct attach *a = watch->owner;

	(void)now_ms;
	if (a->state == ATTACH_DIALLING)
		loop_watch_set(a->loop, watch, 1);
	else if (a->state == ATTACH_PREFACE)
		attach_fail(a, CHANNEL_CLOSE_HANDSHAKE, GRPC_UNAVAILABLE, "no HTTP/2 within 20 s");
	else if (a->state == ATTACH_HELLO)
		hello_is_stuck(a);
}

void attach_deadline(struct loop_timer *timer, uint64_t now_ms)
{
	struct attach *a = timer->owner;

	(void)now_ms;
	switch (a->state) {
	case ATTACH_DRAINING:
		finished(a, "told to leave, and the relay does not read");
		break;
	case ATTACH_FINISHED:
		finished(a, "told to leave");
		break;
	case ATTACH_LEAVING:
	case ATTACH_CLOSING:
		a->state = ATTACH_OVER;
		break;
	case ATTACH_DIALLING:
	case ATTACH_PREFACE:
	case ATTACH_HELLO:
	case ATTACH_SERVING:
	case ATTACH_OVER:
		break;
	}
}

void attach_leave(struct attach *a, uint64_t now_ms)
{
	if (a->state == ATTACH_DRAINING && sched_is_flushed(&a->sched)) {
		a->h2.finish = true;
		a->state = ATTACH_FINISHED;
		records_stop(a->records);
		a->sched.more = true;
		loop_timer_set(a->loop, &a->deadline, now_ms + ATTACH_TRAILERS_MS);
	} else if (a->state == ATTACH_LEAVING && batch_is_written(&a->sched.batch) && !a->sched.more) {
		transport_shutdown(a->transport);
		a->state = ATTACH_CLOSING;
		a->readable = true;
		loop_timer_set(a->loop, &a->deadline, now_ms + ATTACH_LEAVE_MS);
	}
}
