#include "netd/race.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define NOTSENT_LOWAT    (128 * 1024) /* byte-path.md: an End must not sit behind megabytes in the kernel */
#define USER_TIMEOUT_MS  40000        /* LIMIT_PING_MS + LIMIT_PING_ACK_MS: what the keepalive would find */
#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_STEP_S 5

static struct race_family *family_of(struct race_order *o, const struct address *a)
{
	return a->any.sa_family == AF_INET6 ? &o->v6 : &o->v4;
}

/* Where it is in its family's list; count: nowhere. */
static unsigned find(const struct race_family *f, const struct address *a)
{
	unsigned i = 0;

	while (i < f->count && !address_same(&f->list[i], a))
		i++;
	return i;
}

static bool is_known(struct race_order *o, const struct address *a)
{
	const struct race_family *f = family_of(o, a);

	return find(f, a) < f->count;
}

void race_order_add(struct race_order *o, const struct address *a)
{
	struct race_family *f = family_of(o, a);

	if (!is_known(o, a) && f->count < RACE_PER_FAMILY)
		f->list[f->count++] = *a;
}

static void add_early(struct race_order *o, const struct address *a)
{
	o->early[o->early_count++] = *a;
}

/* All that are there, in their order, from the one after bad on, which comes last. */
static void turn_after(struct race_order *o, const struct address *bad)
{
	struct address all[RACE_ATTEMPTS];
	unsigned count = 0, at = 0;

	for (unsigned i = 0; i < RACE_PER_FAMILY; i++) {
		if (i < o->v6.count)
			all[count++] = o->v6.list[i];
		if (i < o->v4.count)
			all[count++] = o->v4.list[i];
	}
	while (!address_same(&all[at], bad))
		at++;
	for (unsigned i = 1; i <= count; i++)
		add_early(o, &all[(at + i) % count]);
}

void race_order_begin(struct race_order *o, const struct address_history *history)
{
	if (history->has_good && is_known(o, &history->good))
		add_early(o, &history->good);
	if (history->has_bad && is_known(o, &history->bad))
		turn_after(o, &history->bad);
}

static bool take_nth(struct race_family *f, unsigned n, struct address *ret)
{
	if (n >= f->count || f->taken & 1u << n)
		return false;
	f->taken |= 1u << n;
	*ret = f->list[n];
	return true;
}

static bool take_next(struct race_family *f, struct address *ret)
{
	for (unsigned i = 0; i < f->count; i++) {
		if (take_nth(f, i, ret))
			return true;
	}
	return false;
}

static bool take_early(struct race_order *o, struct address *ret)
{
	while (o->early_next < o->early_count) {
		const struct address *a = &o->early[o->early_next++];
		struct race_family *f = family_of(o, a);

		if (take_nth(f, find(f, a), ret))
			return true;
	}
	return false;
}

bool race_order_take(struct race_order *o, struct address *ret)
{
	if (take_early(o, ret))
		return true;
	if (!take_next(o->v4_turn ? &o->v4 : &o->v6, ret) && !take_next(o->v4_turn ? &o->v6 : &o->v4, ret))
		return false;
	o->v4_turn = ret->any.sa_family == AF_INET6;
	return true;
}

void race_note(struct race *race, const struct address *to, const char *why)
{
	char text[ADDRESS_TEXT];

	buf_text_addf(&race->failures, "%s%s: %s", race->failures.used > 0 ? ", " : "",
		      address_format(to, text), why);
}

static void drop_attempt(struct race *race, struct race_attempt *a)
{
	loop_del(race->loop, &a->source);
	fd_close(&a->source.fd);
	race->pending--;
}

void race_stop(struct race *race)
{
	race->over = true;
	loop_timer_stop(race->loop, &race->stagger);
	loop_timer_stop(race->loop, &race->resolution);
	for (unsigned i = 0; i < RACE_ATTEMPTS; i++) {
		struct race_attempt *a = &race->attempts[i];

		if (a->source.fd < 0)
			continue;
		race_note(race, &a->to, "no answer");
		drop_attempt(race, a);
	}
}

/* None of these is worth a connection, so errors are let pass. */
static void tune(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
	    {IPPROTO_TCP, TCP_NODELAY, 1},
	    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_LOWAT},
	    {IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS},
	    {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
	    {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_STEP_S},
	    {SOL_SOCKET, SO_KEEPALIVE, 1},
	};

	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

static void win(struct race *race, struct race_attempt *a)
{
	int fd = a->source.fd;
	struct address to = a->to;

	loop_del(race->loop, &a->source);
	a->source.fd = -1;
	race->pending--;
	race->given++;
	tune(fd);
	loop_timer_set(race->loop, &race->stagger, clock_now_ms() + RACE_CONNECTED_MS);
	race->done(race->owner, fd, &to);
}

static struct race_attempt *free_attempt(struct race *race)
{
	for (unsigned i = 0; i < RACE_ATTEMPTS; i++) {
		if (race->attempts[i].source.fd < 0)
			return &race->attempts[i];
	}
	return NULL;
}

/* 0: an attempt is under way (a connect that succeeds at once is found by its first event); -errno: it
 * failed. */
static int attempt(struct race *race, const struct address *to)
{
	struct race_attempt *a = free_attempt(race);
	FD_CLOSE int fd = -1;
	int err;

	if (!a)
		return -EMFILE;
	fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, &to->any, address_size(to)) < 0 && errno != EINPROGRESS)
		return -errno;
	a->to = *to;
	a->source.fd = fd;
	err = loop_add(race->loop, &a->source, EPOLLOUT);
	if (err < 0) {
		a->source.fd = -1;
		return err;
	}
	fd_steal(&fd);
	race->pending++;
	return 0;
}

/* Starts the next attempt; one that fails at once does not cost the next its time. */
static void start_next(struct race *race)
{
	struct address to;

	while (race_order_take(&race->order, &to)) {
		int err;

		address_set_port(&to, race->port);
		err = attempt(race, &to);
		if (err == 0) {
			loop_timer_set(race->loop, &race->stagger, clock_now_ms() + RACE_STAGGER_MS);
			return;
		}
		race_note(race, &to, log_errno(err));
	}
	if (race->pending > 0 || race->given > 0 || !race->complete)
		return;
	race_stop(race);
	race->done(race->owner, -1, NULL);
}

static void attempt_ready(struct loop_source *source, uint32_t events)
{
	struct race *race = source->owner;
	/* source is the first member */
	struct race_attempt *a = (struct race_attempt *)(void *)source;
	socklen_t size = sizeof(int);
	int err = 0;

	(void)events;
	if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &err, &size) < 0)
		err = errno;
	if (err == 0) {
		win(race, a);
		return;
	}
	race_note(race, &a->to, log_errno(err));
	drop_attempt(race, a);
	start_next(race);
}

void race_failed(struct race *race, const struct address *to, const char *why)
{
	race->given--;
	race_note(race, to, why);
	if (!race->over)
		start_next(race);
}

static void stagger_over(struct loop_timer *timer, uint64_t now_ms)
{
	(void)now_ms;
	start_next(timer->owner);
}

static void launch(struct race *race)
{
	race->started = true;
	race_order_begin(&race->order, &race->history);
	start_next(race);
}

/* Whether the first turn depends on addresses that may still come. */
static bool may_be_another(struct race *race)
{
	const struct address_history *h = &race->history;

	if (race->complete)
		return false;
	return race->order.v6.count == 0 || h->has_bad || (h->has_good && !is_known(&race->order, &h->good));
}

static void resolution_over(struct loop_timer *timer, uint64_t now_ms)
{
	struct race *race = timer->owner;

	(void)now_ms;
	launch(race);
}

void race_init(struct race *race, struct loop *loop, uint16_t port, const struct address_history *history,
	       void (*done)(void *owner, int fd, const struct address *to), void *owner)
{
	*race = (struct race){.loop = loop, .port = port, .done = done, .owner = owner};
	if (history)
		race->history = *history;
	race->stagger = (struct loop_timer){.fire = stagger_over, .owner = race};
	race->resolution = (struct loop_timer){.fire = resolution_over, .owner = race};
	buf_text_init(&race->failures, race->text, sizeof race->text);
	for (unsigned i = 0; i < RACE_ATTEMPTS; i++) {
		race->attempts[i].source =
		    (struct loop_source){.fd = -1, .ready = attempt_ready, .owner = race};
	}
}

void race_add(struct race *race, const struct address *list, size_t count, bool complete)
{
	if (race->over)
		return;
	for (size_t i = 0; i < count; i++)
		race_order_add(&race->order, &list[i]);
	race->complete |= complete;
	if (!race->started && may_be_another(race)) {
		if (!race->resolution.armed && race->order.v6.count + race->order.v4.count > 0)
			loop_timer_set(race->loop, &race->resolution, clock_now_ms() + RACE_AAAA_DELAY_MS);
		return;
	}
	loop_timer_stop(race->loop, &race->resolution);
	if (!race->started)
		launch(race);
	else if (race->pending + race->given == 0 || !race->stagger.armed)
		start_next(race);
}
