#include "netd/dial.h"

#include "common/buf.h"
#include "common/channel.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "netd/lane.h"
#include "netd/proxy.h"
#include "netd/race.h"
#include "netd/resolve.h"
#include "netd/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct dial_files {
	struct resolver *resolver;
	struct tls_setup *tls; /* NULL: plain */
};

struct dial {
	struct loop *loop;
	struct settings *settings;
	void (*done)(void *owner, struct transport *t, const struct transport_end *end);
	void *owner;
	struct loop_watch limit;
	struct loop_timer conclusion;
	unsigned limit_ms;
	bool found; /* an address */
	bool over;
	bool through_proxy;
	struct dial_files *files;
	struct race race;
	struct lane_plan plan;
	struct lane lanes[RACE_ATTEMPTS];
	uint8_t failed_class; /* of the lane that came furthest */
	struct transport *transport;
	struct transport_end end;
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

/* Everything stops; done follows from the loop, so that no caller's frame still uses what is freed then. */
static void conclude(struct dial *d)
{
	d->over = true;
	race_stop(&d->race);
	for (unsigned i = 0; i < RACE_ATTEMPTS; i++)
		lane_stop(&d->lanes[i]);
	explicit_bzero(d->plan.request, sizeof d->plan.request);
	loop_watch_stop(&d->limit);
	loop_timer_set(d->loop, &d->conclusion, clock_now_ms());
}

static void fail(struct dial *d, uint8_t close_class, const char *reason)
{
	char peer[300], proxy[300];
	const struct settings *s = d->settings;

	if (d->over)
		return;
	d->end.close_class = close_class;
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
	void (*done)(void *owner, struct transport *t, const struct transport_end *end) = d->done;
	struct transport_end end = d->end;
	struct transport *t = d->transport;
	void *owner = d->owner;

	(void)now_ms;
	dial_files_free(d->files);
	free(d);
	done(owner, t, &end);
}

static void lane_is_good(void *owner, struct lane *lane)
{
	struct dial *d = owner;
	char peer[300], address[ADDRESS_TEXT];

	d->end.has_address = true;
	d->end.address = lane->to;
	log_info(
	    "connected",
	    LOG_STR("peer", host_port(d->settings->relay_host, d->settings->relay_port, peer, sizeof peer)),
	    LOG_STR("address", address_format(&lane->to, address)),
	    LOG_STR("through", d->through_proxy ? "proxy" : "direct"), LOG_STR("security", lane->security));
	d->transport = lane_take(lane);
	conclude(d);
}

/* How far a connection came that failed so: what it says is worth as much. */
static unsigned weight(uint8_t close_class)
{
	switch (close_class) {
	case 0:
		return 0;
	case CHANNEL_CLOSE_CONNECT:
		return 1;
	case CHANNEL_CLOSE_PROXY:
		return 2;
	case CHANNEL_CLOSE_TLS:
		return 3;
	default:
		return 4;
	}
}

static void note_class(struct dial *d, uint8_t close_class)
{
	if (weight(close_class) > weight(d->failed_class))
		d->failed_class = close_class;
}

static void lane_has_failed(void *owner, struct lane *lane, uint8_t close_class, const char *why)
{
	struct dial *d = owner;
	struct address to = lane->to;
	char text[512];
	struct buf_text kept;

	/* why may be the lane's */
	buf_text_init(&kept, text, sizeof text);
	buf_text_addz(&kept, why);
	note_class(d, close_class);
	lane_stop(lane);
	race_failed(&d->race, &to, text);
}

static void connected(void *owner, int fd, const struct address *to)
{
	struct dial *d = owner;
	unsigned i = 0;

	if (fd < 0) {
		note_class(d, CHANNEL_CLOSE_CONNECT);
		fail(d, d->failed_class, d->race.text);
		return;
	}
	d->end.has_address = true;
	d->end.address = *to;
	while (d->lanes[i].plan) /* as many as there are attempts */
		i++;
	lane_start(&d->lanes[i], &d->plan, fd, to);
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
	d->found = true;
	race_add(&d->race, list, count, complete);
}

/* The furthest of the lanes; what each of them waits for is noted. */
static const char *note_lanes(struct dial *d)
{
	static const char *const waiting_for[] = {
	    [LANE_PROXY] = "the proxy's answer",
	    [LANE_TLS] = "the TLS handshake",
	    [LANE_SETTINGS] = "HTTP/2 (SETTINGS)",
	};
	const struct lane *furthest = NULL;

	for (unsigned i = 0; i < RACE_ATTEMPTS; i++) {
		const struct lane *l = &d->lanes[i];

		if (!l->plan)
			continue;
		if (!furthest || l->phase > furthest->phase)
			furthest = l;
		race_note(&d->race, &l->to, "no answer");
	}
	return furthest ? waiting_for[furthest->phase] : "a connection";
}

static void limit_over(struct loop_watch *watch, uint64_t now_ms)
{
	struct dial *d = watch->owner;
	char text[1280];
	struct buf_text why;

	(void)now_ms;
	buf_text_init(&why, text, sizeof text);
	buf_text_addf(&why, "%u ms are over, waiting for %s", d->limit_ms,
		      d->found ? note_lanes(d) : "the name server");
	race_stop(&d->race);
	if (d->found)
		buf_text_addf(&why, " (%s)", d->race.text);
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
		err = tls_setup_load(d->files->tls, d->settings, &why);
	if (d->through_proxy)
		d->plan.request_size = proxy_request(d->settings, d->plan.request);
	settings_wipe(d->settings, false);
	if (err < 0)
		fail(d, err == -EINVAL ? CHANNEL_CLOSE_CREDENTIALS : CHANNEL_CLOSE_INTERNAL, text);
	return err == 0;
}

int dial_start(struct loop *loop, struct settings *settings, const void *greeting, size_t size,
	       unsigned limit_ms,
	       void (*done)(void *owner, struct transport *t, const struct transport_end *end), void *owner)
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
	    .plan = {.loop = loop,
		     .settings = settings,
		     .tls = settings->dial_files->tls,
		     .greeting = greeting,
		     .greeting_size = size,
		     .good = lane_is_good,
		     .failed = lane_has_failed,
		     .owner = d},
	};
	settings->dial_files = NULL;
	race_init(&d->race, loop, d->through_proxy ? settings->proxy_port : settings->relay_port,
		  &settings->history, connected, d);
	if (!take_credentials(d))
		return 0;
	loop_watch_set(loop, &d->limit, limit_ms);
	resolve_start(d->files->resolver, loop, found, d);
	return 0;
}
