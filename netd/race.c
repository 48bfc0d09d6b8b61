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

void race_order_add(struct race_order *o, const struct address *a)
{
	struct race_family *f = a->any.sa_family == AF_INET6 ? &o->v6 : &o->v4;

	for (unsigned i = 0; i < f->count; i++) {
		if (address_in_network(a, &f->list[i], a->any.sa_family == AF_INET6 ? 128 : 32))
			return;
	}
	if (f->count < RACE_PER_FAMILY)
		f->list[f->count++] = *a;
}

bool race_order_take(struct race_order *o, struct address *ret)
{
	struct race_family *first = o->v4_turn ? &o->v4 : &o->v6;
	struct race_family *second = o->v4_turn ? &o->v6 : &o->v4;
	struct race_family *f = first->next < first->count ? first : second;

	if (f->next == f->count)
		return false;
	*ret = f->list[f->next++];
	o->v4_turn = f == &o->v6;
	return true;
}

static void note_failure(struct race *race, const struct address *to, const char *why)
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
		note_failure(race, &a->to, "no answer");
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
	race_stop(race);
	tune(fd);
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
		note_failure(race, &to, log_errno(err));
	}
	if (race->pending > 0 || !race->complete)
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
	note_failure(race, &a->to, log_errno(err));
	drop_attempt(race, a);
	start_next(race);
}

static void stagger_over(struct loop_timer *timer, uint64_t now_ms)
{
	(void)now_ms;
	start_next(timer->owner);
}

static void resolution_over(struct loop_timer *timer, uint64_t now_ms)
{
	struct race *race = timer->owner;

	(void)now_ms;
	race->started = true;
	start_next(race);
}

void race_init(struct race *race, struct loop *loop, uint16_t port,
	       void (*done)(void *owner, int fd, const struct address *to), void *owner)
{
	*race = (struct race){.loop = loop, .port = port, .done = done, .owner = owner};
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
	if (!race->started && !race->complete && race->order.v6.count == 0) {
		if (!race->resolution.armed && race->order.v4.count > 0)
			loop_timer_set(race->loop, &race->resolution, clock_now_ms() + RACE_AAAA_DELAY_MS);
		return;
	}
	loop_timer_stop(race->loop, &race->resolution);
	race->started = true;
	if (race->pending == 0 || !race->stagger.armed)
		start_next(race);
}
