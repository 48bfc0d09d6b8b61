#include "netd/records.h"

#include "common/clock.h"
#include "common/log.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

void records_init(struct records *r, int fd, struct settings *settings)
{
	*r = (struct records){
	    .channel = {.fd = fd, .receives = CHANNEL_TO_NETD, .phase = CHANNEL_PHASE_CONFIG},
	    .settings = settings,
	};
	works_init(&r->works);
}

static int violation(const char *why)
{
	log_error("execd broke the channel's rules", LOG_STR("why", why));
	return -EPROTO;
}

/* Waits for events on the channel; false after ms. */
static bool wait_for(const struct records *r, short events, int ms)
{
	struct pollfd p = {.fd = r->channel.fd, .events = events};

	return poll(&p, 1, ms) == 1;
}

static int send_alive(struct records *r)
{
	uint8_t block[CHANNEL_ALIVE_BLOCK];
	struct channel_alive alive = {
	    .held = input_held(),
	    .frames_in = r->frames_in,
	    .bytes_out = r->sched ? r->sched->bytes_out : 0,
	    .stalled_ms = r->sched ? r->sched->stalled_ms : 0,
	    .log_dropped = log_dropped(),
	};

	channel_encode_alive(block, &alive);
	return channel_send(&r->channel, CHANNEL_ALIVE, 0, 0, block, sizeof block, NULL, 0);
}

static int take_setting(struct records *r, struct channel_record *record)
{
	const char *why;
	int err =
	    settings_take(r->settings, record->h.flags, record->body, record->h.len, record->fds[0], &why);

	explicit_bzero(r->buf, CHANNEL_HEADER + record->h.len);
	if (err < 0)
		log_error("a setting that cannot be used", LOG_U64("key", record->h.flags),
			  LOG_STR("why", why));
	return err;
}

int records_await(struct records *r, enum channel_type last)
{
	bool jailed = r->channel.phase == CHANNEL_PHASE_CREDENTIALS;

	for (;;) {
		struct channel_record record;
		const char *why;
		int err = channel_receive(&r->channel, r->buf, &record, &why);

		if (err == -EPROTO)
			return violation(why);
		if (err == 0)
			return -EPIPE;
		if (err == -EAGAIN && !wait_for(r, POLLIN, (int)LIMIT_ALIVE_MS) && jailed)
			send_alive(r);
		if (err == -EAGAIN)
			continue;
		if (err < 0)
			return err;
		if (record.h.type == last)
			break;
		if (record.h.type == CHANNEL_DRAIN)
			return -ECANCELED;
		err = take_setting(r, &record);
		if (err < 0)
			return err;
	}
	r->channel.phase = last == CHANNEL_JAIL ? CHANNEL_PHASE_JAILING : CHANNEL_PHASE_DIALLING;
	return 0;
}

int records_say(struct records *r, enum channel_type type)
{
	int err = channel_send(&r->channel, type, 0, 0, NULL, 0, NULL, 0);

	if (err == 0)
		r->channel.phase =
		    type == CHANNEL_JAILED ? CHANNEL_PHASE_CREDENTIALS : CHANNEL_PHASE_ATTACHED;
	return err;
}

static void ready(struct loop_source *source, uint32_t events)
{
	struct records *r = source->owner;

	(void)events;
	r->readable = true;
}

static void say_alive(struct loop_timer *timer, uint64_t now_ms)
{
	struct records *r = timer->owner;

	r->alive_owed = true;
	loop_timer_set(r->loop, timer, now_ms + LIMIT_ALIVE_MS);
}

int records_run(struct records *r, struct loop *loop, struct sched *sched)
{
	r->loop = loop;
	r->sched = sched;
	r->readable = true;
	r->source = (struct loop_source){.fd = r->channel.fd, .ready = ready, .owner = r};
	r->alive = (struct loop_timer){.fire = say_alive, .owner = r};
	r->alive_owed = true;
	loop_timer_set(loop, &r->alive, clock_now_ms() + LIMIT_ALIVE_MS);
	return loop_add(loop, &r->source, EPOLLIN);
}

int records_send(struct records *r, enum channel_type type, uint8_t flags, uint64_t req_id, const void *block,
		 size_t block_size, const void *bytes, size_t size)
{
	return channel_send(&r->channel, type, flags, req_id, block, block_size, bytes, size);
}

static int settle_all(struct records *r)
{
	for (unsigned i = 0; r->owed > 0 && i < WORK_MAX; i++) {
		struct work *w = &r->works.table[i];

		if (w->state == WORK_OVER || w->fetch_owed || w->quiet_owed) {
			int err = records_settle(r, w);

			if (err < 0)
				return err;
		}
	}
	return 0;
}

/* What is owed goes first, in this order: an answer that execd waits for, then news. */
static int pay(struct records *r)
{
	int err = settle_all(r);

	if (err == 0 && r->goaway_owed) {
		err = records_send(r, CHANNEL_GOAWAY, 0, 0, NULL, 0, NULL, 0);
		r->goaway_owed = err != 0;
	}
	if (err == 0 && r->alive_owed) {
		err = send_alive(r);
		r->alive_owed = err != 0;
	}
	if (err == 0 && r->pending.kind != FRAMES_NOTHING)
		err = records_push(r);
	return err;
}

static void watch(struct records *r, bool full)
{
	if (full == r->watching)
		return;
	r->watching = full;
	loop_mod(r->loop, &r->source, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static int receive(struct records *r, uint64_t now_ms)
{
	for (unsigned i = 0; i < RECORDS_PASS; i++) {
		struct channel_record record;
		const char *why = "";
		int err = channel_receive(&r->channel, r->buf, &record, &why);

		if (err == -EAGAIN) {
			r->readable = false;
			return 0;
		}
		if (err == 0)
			return -EPIPE;
		if (err > 0)
			err = records_take(r, &record, now_ms, &why);
		if (err == -EPROTO)
			return violation(why);
		if (err < 0)
			return err;
	}
	return 0;
}

int records_pass(struct records *r, uint64_t now_ms)
{
	int err = r->readable ? receive(r, now_ms) : 0;

	if (err == 0)
		err = pay(r);
	watch(r, err == -EAGAIN);
	if (err == 0 || err == -EAGAIN)
		return 0;
	r->lost = true;
	return err;
}

void records_stop(struct records *r)
{
	if (!r->loop)
		return;
	loop_del(r->loop, &r->source);
	loop_timer_stop(r->loop, &r->alive);
	r->readable = false;
}

bool records_ready(const struct records *r)
{
	return r->channel.phase == CHANNEL_PHASE_ATTACHED && r->pending.kind == FRAMES_NOTHING &&
	       r->owed == 0 && !r->goaway_owed;
}

void records_fail(struct records *r, uint8_t close_class, const char *why)
{
	if (r->fault != 0)
		return;
	r->fault = close_class;
	r->fault_why = why;
}

void records_goaway(struct records *r)
{
	r->goaway_owed = true;
	r->readable = true; /* the next pass comes at once, and pays */
}

void records_closed(struct records *r, const struct channel_closed *closed)
{
	uint64_t until = clock_now_ms() + RECORDS_CLOSED_MS;
	uint8_t block[CHANNEL_CLOSED_BLOCK];

	if (r->goaway_owed) /* said in the same breath as what ended the connection */
		channel_send(&r->channel, CHANNEL_GOAWAY, 0, 0, NULL, 0, NULL, 0);
	channel_encode_closed(block, closed);
	while (!r->lost) {
		int err = channel_send(&r->channel, CHANNEL_CLOSED, 0, 0, block, sizeof block, NULL, 0);
		uint64_t now = clock_now_ms();

		if (err != -EAGAIN || now >= until || !wait_for(r, POLLOUT, (int)(until - now)))
			return;
	}
}
