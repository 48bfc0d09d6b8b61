#include "netd/dial.h"

#include "common/buf.h"
#include "common/channel.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "netd/proxy.h"
#include "netd/race.h"
#include "netd/resolve.h"
#include "netd/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct dial_files {
	struct resolver *resolver;
	struct tls_setup *tls; /* NULL: plain */
};

enum dial_phase { DIAL_RESOLVING, DIAL_CONNECTING, DIAL_PROXY, DIAL_TLS };

struct dial {
	struct loop *loop;
	struct settings *settings;
	void (*done)(void *owner, struct transport *t, uint8_t close_class);
	void *owner;
	struct loop_watch limit;
	struct loop_timer conclusion;
	unsigned limit_ms;
	enum dial_phase phase;
	bool over;
	bool through_proxy;
	struct dial_files *files;
	struct race race;
	struct loop_source socket; /* connected; fd -1 before */
	uint32_t watched;          /* EPOLL* it is in the loop with, 0: not in it */
	char address[ADDRESS_TEXT];
	char request[PROXY_REQUEST_MAX];
	size_t request_size;
	size_t request_sent;
	struct proxy_reply reply;
	struct tls *tls;
	struct transport *transport;
	uint8_t close_class;
};

static const char *target_host(const struct settings *s)
{
	return proxy_wanted(s) ? s->proxy_host : s->relay_host;
}

int dial_prepare(const struct settings *settings, struct dial_files **ret)
{
	struct dial_files *files = calloc(1, sizeof *files);
	int err;

	if (!files)
		return -ENOMEM;
	err = resolve_prepare(target_host(settings), &files->resolver);
	if (err == 0 && settings->relay_tls)
		err = tls_setup_new(settings->ca_dir, &files->tls);
	if (err < 0)
		dial_files_free(files);
	else
		*ret = files;
	return err;
}

void dial_files_free(struct dial_files *files)
{
	if (!files)
		return;
	resolve_free(files->resolver);
	tls_setup_free(files->tls);
	free(files);
}

static const char *host_port(const char *host, uint16_t port, char *out, size_t size)
{
	struct buf_text t;
	bool v6 = strchr(host, ':') && host[0] != '[';

	buf_text_init(&t, out, size);
	buf_text_addf(&t, "%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "", port);
	return out;
}

static void unwatch(struct dial *d)
{
	if (d->watched != 0)
		loop_del(d->loop, &d->socket);
	d->watched = 0;
}

static int watch(struct dial *d, uint32_t events)
{
	int err = 0;

	if (d->watched == 0)
		err = loop_add(d->loop, &d->socket, events);
	else if (d->watched != events)
		err = loop_mod(d->loop, &d->socket, events);
	if (err == 0)
		d->watched = events;
	return err;
}

/* Everything stops; done follows from the loop, so that no caller's frame still uses what is freed then. */
static void conclude(struct dial *d)
{
	d->over = true;
	unwatch(d);
	race_stop(&d->race);
	loop_watch_stop(&d->limit);
	loop_timer_set(d->loop, &d->conclusion, clock_now_ms());
}

static void fail(struct dial *d, uint8_t close_class, const char *reason)
{
	char peer[300], proxy[300];
	const struct settings *s = d->settings;

	if (d->over)
		return;
	d->close_class = close_class;
	host_port(s->relay_host, s->relay_port, peer, sizeof peer);
	host_port(s->proxy_host, s->proxy_port, proxy, sizeof proxy);
	if (d->through_proxy)
		log_warn("dial failed", LOG_STR("class", channel_close_name(close_class)),
			 LOG_STR("peer", peer), LOG_STR("proxy", proxy), LOG_STR("reason", reason));
	else
		log_warn("dial failed", LOG_STR("class", channel_close_name(close_class)),
			 LOG_STR("peer", peer), LOG_STR("reason", reason));
	conclude(d);
}

static void finish(struct loop_timer *timer, uint64_t now_ms)
{
	struct dial *d = timer->owner;
	struct transport *t = d->transport;
	uint8_t close_class = d->close_class;
	void (*done)(void *owner, struct transport *t, uint8_t close_class) = d->done;
	void *owner = d->owner;

	(void)now_ms;
	tls_free(d->tls);
	fd_close(&d->socket.fd);
	dial_files_free(d->files);
	explicit_bzero(d->request, sizeof d->request);
	free(d);
	done(owner, t, close_class);
}

static void succeed(struct dial *d)
{
	char peer[300];

	unwatch(d);
	d->transport = transport_new(d->socket.fd, d->tls);
	if (!d->transport) {
		fail(d, CHANNEL_CLOSE_INTERNAL, "out of memory");
		return;
	}
	log_info(
	    "connected",
	    LOG_STR("peer", host_port(d->settings->relay_host, d->settings->relay_port, peer, sizeof peer)),
	    LOG_STR("address", d->address), LOG_STR("through", d->through_proxy ? "proxy" : "direct"),
	    LOG_STR("security", d->tls ? tls_version(d->tls) : "plaintext"));
	fd_steal(&d->socket.fd);
	d->tls = NULL;
	conclude(d);
}

static void step_tls(struct dial *d)
{
	char text[512];
	struct buf_text why;
	uint32_t events;
	uint8_t close_class;
	int done;

	buf_text_init(&why, text, sizeof text);
	done = tls_handshake(d->tls, &events, &why, &close_class);
	if (done < 0)
		fail(d, close_class, text);
	else if (done == 1)
		succeed(d);
	else if (watch(d, events) < 0)
		fail(d, CHANNEL_CLOSE_INTERNAL, "cannot watch the socket");
}

static void secure(struct dial *d)
{
	if (!d->tls) {
		succeed(d);
		return;
	}
	d->phase = DIAL_TLS;
	if (tls_set_fd(d->tls, d->socket.fd) < 0) {
		fail(d, CHANNEL_CLOSE_INTERNAL, "out of memory");
		return;
	}
	step_tls(d);
}

static void fail_io(struct dial *d, const char *what, int err)
{
	char text[256];
	struct buf_text why;

	buf_text_init(&why, text, sizeof text);
	buf_text_addf(&why, "%s: %s", what, log_errno(err));
	fail(d, CHANNEL_CLOSE_PROXY, text);
}

static void step_request(struct dial *d)
{
	ssize_t n = write(d->socket.fd, d->request + d->request_sent, d->request_size - d->request_sent);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		fail_io(d, "writing to the proxy", errno);
		return;
	}
	if (n > 0)
		d->request_sent += (size_t)n;
	if (d->request_sent == d->request_size)
		explicit_bzero(d->request, sizeof d->request);
	if (watch(d, d->request_sent == d->request_size ? EPOLLIN : EPOLLOUT) < 0)
		fail(d, CHANNEL_CLOSE_INTERNAL, "cannot watch the socket");
}

/* Looks first, then takes no more than the header: what follows belongs to the tunnel, and may be there
 * already. */
static void step_reply(struct dial *d)
{
	char bytes[1024], text[512];
	struct buf_text why;
	size_t taken;
	int done;
	ssize_t n = recv(d->socket.fd, bytes, sizeof bytes, MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		fail_io(d, "reading from the proxy", errno);
		return;
	}
	if (n == 0) {
		fail(d, CHANNEL_CLOSE_PROXY, "the proxy closed the connection");
		return;
	}
	buf_text_init(&why, text, sizeof text);
	done = proxy_reply_take(&d->reply, bytes, (size_t)n, &taken, &why);
	if (done < 0) {
		fail(d, CHANNEL_CLOSE_PROXY, text);
		return;
	}
	if (recv(d->socket.fd, bytes, taken, 0) != (ssize_t)taken) {
		fail_io(d, "reading from the proxy", errno);
		return;
	}
	if (done == 1)
		secure(d);
}

static void socket_ready(struct loop_source *source, uint32_t events)
{
	struct dial *d = source->owner;

	(void)events;
	if (d->phase == DIAL_TLS)
		step_tls(d);
	else if (d->request_sent < d->request_size)
		step_request(d);
	else
		step_reply(d);
}

static void race_done(void *owner, int fd, const struct address *to)
{
	struct dial *d = owner;

	if (fd < 0) {
		fail(d, CHANNEL_CLOSE_CONNECT, d->race.text);
		return;
	}
	d->socket.fd = fd;
	address_format(to, d->address);
	if (!d->through_proxy) {
		secure(d);
		return;
	}
	d->phase = DIAL_PROXY;
	step_request(d);
}

static void found(void *owner, const struct address *list, size_t count, bool complete, const char *why)
{
	struct dial *d = owner;
	char text[512];
	struct buf_text reason;

	if (d->over)
		return;
	if (why) {
		buf_text_init(&reason, text, sizeof text);
		buf_text_addf(&reason, "cannot resolve %s: %s", target_host(d->settings), why);
		fail(d, CHANNEL_CLOSE_RESOLVE, text);
		return;
	}
	if (d->phase == DIAL_RESOLVING)
		d->phase = DIAL_CONNECTING;
	race_add(&d->race, list, count, complete);
}

static void limit_over(struct loop_watch *watch, uint64_t now_ms)
{
	static const char *const waiting_for[] = {
	    [DIAL_RESOLVING] = "the name server",
	    [DIAL_CONNECTING] = "a connection",
	    [DIAL_PROXY] = "the proxy's answer",
	    [DIAL_TLS] = "the TLS handshake",
	};
	struct dial *d = watch->owner;
	char text[1280];
	struct buf_text why;

	(void)now_ms;
	buf_text_init(&why, text, sizeof text);
	buf_text_addf(&why, "%u ms are over, waiting for %s", d->limit_ms, waiting_for[d->phase]);
	if (d->phase == DIAL_CONNECTING) {
		race_stop(&d->race);
		buf_text_addf(&why, " (%s)", d->race.text);
	}
	fail(d, CHANNEL_CLOSE_HANDSHAKE, text);
}

/* Uses the credentials at once, so that they can be wiped. */
static bool take_credentials(struct dial *d)
{
	char text[512];
	struct buf_text why;
	int err = 0;

	buf_text_init(&why, text, sizeof text);
	if (d->files->tls)
		err = tls_new(d->files->tls, d->settings, &why, &d->tls);
	if (d->through_proxy) {
		d->request_size = proxy_request(d->settings, d->request);
		proxy_reply_init(&d->reply);
	}
	settings_wipe(d->settings, false);
	if (err < 0)
		fail(d, err == -EINVAL ? CHANNEL_CLOSE_CREDENTIALS : CHANNEL_CLOSE_INTERNAL, text);
	return err == 0;
}

int dial_start(struct loop *loop, struct settings *settings, unsigned limit_ms,
	       void (*done)(void *owner, struct transport *t, uint8_t close_class), void *owner)
{
	struct dial *d = calloc(1, sizeof *d);
	int err;

	if (!d)
		return -ENOMEM;
	if (!settings->dial_files) {
		err = dial_prepare(settings, &settings->dial_files);
		if (err < 0) {
			free(d);
			return err;
		}
	}
	*d = (struct dial){
	    .loop = loop,
	    .settings = settings,
	    .done = done,
	    .owner = owner,
	    .limit_ms = limit_ms,
	    .limit = {.silent = limit_over, .owner = d, .fd = -1},
	    .conclusion = {.fire = finish, .owner = d},
	    .files = settings->dial_files,
	    .through_proxy = proxy_wanted(settings),
	    .socket = {.fd = -1, .ready = socket_ready, .owner = d},
	};
	settings->dial_files = NULL;
	race_init(&d->race, loop, d->through_proxy ? settings->proxy_port : settings->relay_port, race_done,
		  d);
	if (!take_credentials(d))
		return 0;
	loop_watch_set(loop, &d->limit, limit_ms);
	resolve_start(d->files->resolver, loop, found, d);
	return 0;
}
