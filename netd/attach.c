#include "netd/attach.h"

#include "common/clock.h"
#include "common/log.h"

#include <errno.h>

static void socket_event(struct loop_source *source, uint32_t events)
{
	struct attach *a = source->owner;

	(void)events; /* edge-triggered; TLS may read to write and write to read, so any event may help either
		       */
	a->readable = true;
	a->sched.more = true;
}

static void heartbeat(struct loop_timer *timer, uint64_t now_ms)
{
	struct attach *a = timer->owner;

	a->sched.heartbeat = true; /* one at most is pending, whatever the window */
	loop_timer_set(a->loop, timer, now_ms + a->settings->heartbeat_ms);
}

/* A PING after silence. */
static void keepalive(struct loop_timer *timer, uint64_t now_ms)
{
	struct attach *a = timer->owner;

	if (!records_ready(a->records))
		a->heard_ms = now_ms;
	if (now_ms - a->heard_ms < a->settings->ping_ms) {
		loop_timer_set(a->loop, timer, a->heard_ms + a->settings->ping_ms);
		return;
	}
	h2_ping(&a->h2);
	a->sched.more = true;
	loop_watch_set(a->loop, &a->ack, LIMIT_PING_ACK_MS);
}

static void heard(struct attach *a, uint64_t now_ms)
{
	a->heard_ms = now_ms;
	if (!a->ack.timer.armed)
		return;
	loop_watch_stop(&a->ack);
	loop_timer_set(a->loop, &a->keepalive, now_ms + a->settings->ping_ms);
}

/* The end of the connection when the PING brings nothing either. While execd does not take records we do not
 * read, and silence says nothing. */
static void no_ack(struct loop_watch *watch, uint64_t now_ms)
{
	struct attach *a = watch->owner;

	if (records_ready(a->records)) {
		attach_fail(a, CHANNEL_CLOSE_KEEPALIVE, GRPC_UNAVAILABLE, "the peer is silent");
		return;
	}
	a->heard_ms = now_ms;
	loop_timer_set(a->loop, &a->keepalive, now_ms + a->settings->ping_ms);
}

static void dialled(void *owner, struct transport *t, const struct transport_end *end)
{
	struct attach *a = owner;
	uint64_t now_ms = clock_now_ms();

	if (a->state != ATTACH_DIALLING) { /* DRAIN came meanwhile */
		transport_free(t);
		return;
	}
	if (end->has_address)
		address_to_bytes(&end->address, a->closed.address);
	if (!t) {
		a->closed.close_class = end->close_class;
		a->state = ATTACH_OVER;
		return;
	}
	a->transport = t;
	a->state = ATTACH_PREFACE;
	a->heard_ms = now_ms;
	a->readable = true;
	a->source = (struct loop_source){.fd = transport_fd(t), .ready = socket_event, .owner = a};
	if (loop_add(a->loop, &a->source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) < 0) {
		attach_fail(a, CHANNEL_CLOSE_INTERNAL, CHANNEL_NO_STATUS, "out of memory");
		return;
	}
	sched_connect(&a->sched, t);
	a->ack.fd = a->source.fd;
	loop_timer_set(a->loop, &a->keepalive, now_ms + a->settings->ping_ms);
}

/* The peer speaks HTTP/2: the request, and Hello right behind it. */
static void begin_call(struct attach *a)
{
	uint8_t hello[FRAMES_HELLO_MAX];
	size_t n = frames_hello(hello, sizeof hello, a->settings);
	int err = h2_request(&a->h2, a->settings);

	settings_wipe(a->settings, true);
	if (err < 0 || n == 0 || sched_control(&a->sched, hello, n) < 0) {
		attach_fail(a, CHANNEL_CLOSE_INTERNAL, CHANNEL_NO_STATUS, "the request cannot be made");
		return;
	}
	a->state = ATTACH_HELLO;
}

static void hello_is_out(struct attach *a, uint64_t now_ms)
{
	int err;

	if (a->state != ATTACH_HELLO || a->h2.frames_sent == 0 || !sched_is_flushed(&a->sched))
		return;
	err = records_say(a->records, CHANNEL_ATTACHED);
	if (err < 0)
		return; /* again in the next pass; a lost channel is seen there */
	a->state = ATTACH_SERVING;
	a->hello_ms = now_ms;
	h2_forget_request(&a->h2);
	transport_forget(a->transport);
	loop_watch_stop(&a->handshake);
	loop_timer_set(a->loop, &a->heartbeat, now_ms + a->settings->heartbeat_ms);
	log_info("attached", LOG_STR("relay", a->settings->relay_host),
		 LOG_U64("port", a->settings->relay_port), LOG_U64("tls", a->settings->relay_tls));
	a->sched.more = true;
}

static void take_message(struct attach *a, enum grpc_step step)
{
	size_t size;
	uint8_t *message;
	int err;

	if (step == GRPC_STEP_MESSAGE) {
		message = grpc_reader_take(&a->reader, &size);
		err = records_message(a->records, message, size);
	} else {
		err = records_skipped(a->records, &a->reader.skim);
	}
	if (err < 0)
		attach_fail(a, CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL, "a message cannot be decoded");
}

static void reader_failed(struct attach *a, int err)
{
	if (err == -EMSGSIZE)
		attach_fail(a, CHANNEL_CLOSE_FLOOD, GRPC_RESOURCE_EXHAUSTED, "a message is over 64 MiB");
	else if (err == -EBADMSG)
		attach_fail(a, CHANNEL_CLOSE_PROTOCOL, GRPC_INTERNAL, "a message is compressed");
	else
		attach_fail(a, CHANNEL_CLOSE_INTERNAL, CHANNEL_NO_STATUS, "out of memory");
}

/* DATA becomes messages, as long as execd takes them. What comes when we no longer serve is dropped. */
static void read_messages(struct attach *a)
{
	const uint8_t *at;
	size_t n, used;

	while ((n = h2_data(&a->h2, &at)) > 0) {
		int step;

		if (a->state > ATTACH_SERVING) {
			h2_take(&a->h2, n);
			continue;
		}
		if (!a->h2.grpc_type || a->h2.http_status != 200 || !records_ready(a->records))
			return;
		step = grpc_reader_feed(&a->reader, at, n, &used);
		if (step < 0) {
			reader_failed(a, step);
			continue;
		}
		h2_take(&a->h2, used);
		if (step != GRPC_STEP_MORE)
			take_message(a, (enum grpc_step)step);
	}
}

/* False: the connection is at its end, or the socket has nothing. */
static bool read_once(struct attach *a, uint64_t now_ms)
{
	ssize_t n = transport_read(a->transport, a->buf, sizeof a->buf);

	if (n == -EAGAIN) {
		a->readable = false;
		return false;
	}
	if (n <= 0) {
		a->readable = false;
		attach_judge(a, now_ms); /* what it did before beats that it went */
		attach_lost(a, (int)n);
		return false;
	}
	heard(a, now_ms);
	if (a->state == ATTACH_CLOSING)
		return true;
	h2_receive(&a->h2, a->buf, (size_t)n, now_ms);
	return true;
}

/* Reads while execd takes what comes of it. Each piece is answered (acks, window updates) before the next. */
static void read_socket(struct attach *a, uint64_t now_ms)
{
	const uint8_t *at;

	read_messages(a);
	for (unsigned i = 0; i < ATTACH_READS && a->readable; i++) {
		if (h2_data(&a->h2, &at) > 0 && a->h2.responded)
			return;
		if (!read_once(a, now_ms))
			return;
		read_messages(a);
		if (a->state < ATTACH_CLOSING)
			h2_collect(&a->h2); /* also what lets nghttp2 close a stream that it found broken */
		if (attach_judge(a, now_ms))
			return;
	}
}

/* The peer is gone, yet what it said before has a say: a status, a GOAWAY. */
static void write_failed(struct attach *a, int err, uint64_t now_ms)
{
	a->readable = true;
	for (unsigned i = 0; i < ATTACH_LAST_READS && a->readable && a->closed.close_class == 0; i++)
		read_socket(a, now_ms);
	attach_lost(a, err);
}

static void pass(struct attach *a, uint64_t now_ms)
{
	int err;

	if (a->state <= ATTACH_DRAINING && records_pass(a->records, now_ms) < 0)
		attach_fail(a, CHANNEL_CLOSE_INTERNAL, CHANNEL_NO_STATUS, "execd is gone");
	if (a->records->drain)
		attach_drain(a, now_ms);
	if (a->transport) {
		read_socket(a, now_ms);
		attach_judge(a, now_ms);
		if (a->state == ATTACH_PREFACE && a->h2.settled)
			begin_call(a);
		err = a->state < ATTACH_CLOSING ? sched_send(&a->sched, now_ms) : 0;
		if (err < 0 && (a->h2.fault != H2_INTERNAL || a->state >= ATTACH_LEAVING))
			write_failed(a, err, now_ms);
		attach_judge(a, now_ms);
		hello_is_out(a, now_ms);
	}
	if (a->records->fault != 0)
		attach_fail(a, a->records->fault,
			    a->records->fault == CHANNEL_CLOSE_FLOOD ? GRPC_RESOURCE_EXHAUSTED
								     : CHANNEL_NO_STATUS,
			    a->records->fault_why);
	attach_leave(a, now_ms);
}

/* Something can go on without an event. */
static bool is_busy(struct attach *a)
{
	const uint8_t *at;
	bool held_up = h2_data(&a->h2, &at) > 0 && !records_ready(a->records);

	if (a->state <= ATTACH_DRAINING && a->records->readable)
		return true;
	return a->transport && ((a->readable && !held_up) || (a->state < ATTACH_CLOSING && a->sched.more));
}

/* What every peer that is dialled is sent, to see whether it is one. */
static int greet(struct attach *a, uint64_t now_ms)
{
	int err = h2_open(&a->h2, &a->sched.batch, now_ms);

	if (err < 0)
		return err;
	a->greeting_size = h2_greeting(&a->h2, a->greeting);
	return a->greeting_size > 0 ? 0 : -ENOMEM;
}

int attach_run(struct attach *a, struct loop *loop, struct settings *settings, struct records *records)
{
	uint64_t now_ms = clock_now_ms();
	int err;

	*a = (struct attach){
	    .loop = loop,
	    .settings = settings,
	    .records = records,
	    .deadline = {.fire = attach_deadline, .owner = a},
	    .heartbeat = {.fire = heartbeat, .owner = a},
	    .keepalive = {.fire = keepalive, .owner = a},
	    .handshake = {.silent = attach_no_handshake, .owner = a, .fd = -1},
	    .ack = {.silent = no_ack, .owner = a, .fd = -1},
	    .closed = {.grpc_status = CHANNEL_NO_STATUS},
	};
	/* A default Go server takes three PINGs without a DATA frame of ours in 5 minutes for an attack. */
	if (settings->heartbeat_ms >= LIMIT_PING_MS && settings->ping_ms < LIMIT_PING_CALM_MS)
		settings->ping_ms = LIMIT_PING_CALM_MS;
	sched_init(&a->sched, loop, &a->h2, records_output_done, records_output_quiet, records, now_ms);
	err = records_run(records, loop, &a->sched);
	if (err < 0)
		return err;
	loop_watch_set(loop, &a->handshake, LIMIT_HANDSHAKE_MS);
	err = greet(a, now_ms);
	if (err == 0)
		err = transport_dial(loop, settings, a->greeting, a->greeting_size, dialled, a);
	while (err == 0 && a->state != ATTACH_OVER) {
		err = loop_pass(loop, is_busy(a) ? 0 : -1);
		pass(a, clock_now_ms());
	}
	grpc_reader_free(&a->reader);
	transport_free(a->transport);
	return err;
}
