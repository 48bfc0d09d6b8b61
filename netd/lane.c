#include "netd/lane.h"

#include "common/buf.h"
#include "common/channel.h"
#include "common/fd.h"
#include "common/log.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void unwatch(struct lane *l)
{
	if (l->watched != 0)
		loop_del(l->plan->loop, &l->source);
	l->watched = 0;
}

static void fail(struct lane *l, uint8_t close_class, const char *why)
{
	unwatch(l);
	l->plan->failed(l->plan->owner, l, close_class, why);
}

static void watch(struct lane *l, uint32_t events)
{
	int err = 0;

	if (l->watched == 0)
		err = loop_add(l->plan->loop, &l->source, events);
	else if (l->watched != events)
		err = loop_mod(l->plan->loop, &l->source, events);
	if (err < 0)
		fail(l, CHANNEL_CLOSE_INTERNAL, "cannot watch the socket");
	else
		l->watched = events;
}

void lane_stop(struct lane *l)
{
	if (!l->plan)
		return;
	unwatch(l);
	if (l->transport) {
		transport_free(l->transport);
	} else {
		tls_free(l->tls);
		fd_close(&l->source.fd);
	}
	*l = (struct lane){0};
}

struct transport *lane_take(struct lane *l)
{
	struct transport *t = l->transport;

	unwatch(l);
	transport_unread(t, l->first, l->first_count);
	*l = (struct lane){0};
	return t;
}

/* --- the greeting --------------------------------------------------------------------------------------- */

static bool is_settings(const uint8_t first[LANE_FIRST])
{
	static const uint8_t stream_0[4] = {0};

	return first[3] == 4 && !(first[4] & 1) && memcmp(first + 5, stream_0, 4) == 0;
}

/* What the first bytes are that are no SETTINGS; NULL: more are needed, or they are. A server that wants TLS
 * answers plaintext with an alert, or with an HTTP/1 error. */
static const char *strange(const struct lane *l)
{
	bool plain = !l->plan->settings->relay_tls;

	if (l->first_count >= 2 && l->first[0] == 0x15 && l->first[1] == 3 && plain)
		return "the peer answers in TLS: RELAY_TLS=1?";
	if (l->first_count >= 5 && memcmp(l->first, "HTTP/", 5) == 0)
		return plain ? "the peer does not speak HTTP/2, but HTTP/1 (or it wants TLS: RELAY_TLS=1?)"
			     : "the peer does not speak HTTP/2, but HTTP/1";
	if (l->first_count == LANE_FIRST && !is_settings(l->first))
		return "the peer does not speak HTTP/2";
	return NULL;
}

/* A read or write that ended the connection (err 0: an end of stream). */
static void lost(struct lane *l, int err)
{
	const char *why = transport_why(l->transport);
	bool left = err == 0 || err == -ECONNRESET || err == -EPIPE;

	if (!why && left && l->first_count == 0 && !l->plan->settings->relay_tls)
		why = "the peer closed the connection without a word: RELAY_TLS=1?";
	else if (!why)
		why = err == 0 ? "the peer closed the connection" : log_errno(err);
	fail(l, err == -EPROTO ? CHANNEL_CLOSE_TLS : CHANNEL_CLOSE_EOF, why);
}

static void read_first(struct lane *l)
{
	while (l->first_count < LANE_FIRST) {
		ssize_t n =
		    transport_read(l->transport, l->first + l->first_count, LANE_FIRST - l->first_count);

		if (n == -EAGAIN) {
			watch(l, transport_read_wants_write(l->transport) ? EPOLLOUT : EPOLLIN);
			return;
		}
		if (n <= 0) {
			lost(l, (int)n);
			return;
		}
		l->first_count += (size_t)n;
		if (strange(l)) {
			fail(l, CHANNEL_CLOSE_NOT_HTTP2, strange(l));
			return;
		}
	}
	l->plan->good(l->plan->owner, l);
}

/* A peer that hangs up on our greeting may have said why. */
static void step_settings(struct lane *l)
{
	const struct lane_plan *plan = l->plan;

	while (l->greeting_sent < plan->greeting_size) {
		struct iovec rest = {(void *)(uintptr_t)(plan->greeting + l->greeting_sent),
				     plan->greeting_size - l->greeting_sent};
		ssize_t n = transport_writev(l->transport, &rest, 1);

		if (n == -EAGAIN) {
			watch(l, transport_write_wants_read(l->transport) ? EPOLLIN : EPOLLOUT);
			return;
		}
		if (n < 0)
			break;
		l->greeting_sent += (size_t)n;
	}
	read_first(l);
}

static void greet(struct lane *l)
{
	l->security = l->tls ? tls_version(l->tls) : "plaintext";
	l->transport = transport_new(l->source.fd, l->tls);
	if (!l->transport) {
		fail(l, CHANNEL_CLOSE_INTERNAL, "out of memory");
		return;
	}
	l->tls = NULL;
	l->phase = LANE_SETTINGS;
	if (l->plan->greeting_size > 0)
		step_settings(l);
	else
		l->plan->good(l->plan->owner, l);
}

/* --- TLS ------------------------------------------------------------------------------------------------ */

static void step_tls(struct lane *l)
{
	char text[512];
	struct buf_text why;
	uint32_t events;
	uint8_t close_class;
	int done;

	buf_text_init(&why, text, sizeof text);
	done = tls_handshake(l->tls, &events, &why, &close_class);
	if (done < 0)
		fail(l, close_class, text);
	else if (done == 1)
		greet(l);
	else
		watch(l, events);
}

static void secure(struct lane *l)
{
	if (!l->plan->tls) {
		greet(l);
		return;
	}
	l->phase = LANE_TLS;
	if (tls_open(l->plan->tls, l->plan->settings, l->source.fd, &l->tls) < 0)
		fail(l, CHANNEL_CLOSE_INTERNAL, "out of memory");
	else
		step_tls(l);
}

/* --- the proxy ------------------------------------------------------------------------------------------ */

static void fail_io(struct lane *l, const char *what, int err)
{
	char text[256];
	struct buf_text why;

	buf_text_init(&why, text, sizeof text);
	buf_text_addf(&why, "%s: %s", what, log_errno(err));
	fail(l, CHANNEL_CLOSE_PROXY, text);
}

static void step_request(struct lane *l)
{
	const struct lane_plan *plan = l->plan;
	ssize_t n =
	    write(l->source.fd, plan->request + l->request_sent, plan->request_size - l->request_sent);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		fail_io(l, "writing to the proxy", errno);
		return;
	}
	if (n > 0)
		l->request_sent += (size_t)n;
	watch(l, l->request_sent == plan->request_size ? EPOLLIN : EPOLLOUT);
}

/* Looks first, then takes no more than the header: what follows belongs to the tunnel, and may be there
 * already. */
static void step_reply(struct lane *l)
{
	char bytes[1024], text[512];
	struct buf_text why;
	size_t taken;
	int done;
	ssize_t n = recv(l->source.fd, bytes, sizeof bytes, MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		fail_io(l, "reading from the proxy", errno);
		return;
	}
	if (n == 0) {
		fail(l, CHANNEL_CLOSE_PROXY, "the proxy closed the connection");
		return;
	}
	buf_text_init(&why, text, sizeof text);
	done = proxy_reply_take(&l->reply, bytes, (size_t)n, &taken, &why);
	if (done < 0) {
		fail(l, CHANNEL_CLOSE_PROXY, text);
		return;
	}
	if (recv(l->source.fd, bytes, taken, 0) != (ssize_t)taken) {
		fail_io(l, "reading from the proxy", errno);
		return;
	}
	if (done == 1)
		secure(l);
}

static void socket_ready(struct loop_source *source, uint32_t events)
{
	struct lane *l = source->owner;

	(void)events;
	if (l->phase == LANE_SETTINGS)
		step_settings(l);
	else if (l->phase == LANE_TLS)
		step_tls(l);
	else if (l->request_sent < l->plan->request_size)
		step_request(l);
	else
		step_reply(l);
}

void lane_start(struct lane *l, struct lane_plan *plan, int fd, const struct address *to)
{
	*l = (struct lane){
	    .plan = plan,
	    .to = *to,
	    .source = {.fd = fd, .ready = socket_ready, .owner = l},
	};
	if (plan->request_size == 0) {
		secure(l);
		return;
	}
	proxy_reply_init(&l->reply);
	step_request(l);
}
