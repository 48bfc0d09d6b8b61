#include "execd/records.h"

#include "common/buf.h"
#include "execd/execs.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* Records taken in one go: a netd that floods must not keep timers and slots waiting. */
#define RECORDS_BATCH 64

/* The one answer that did not fit. */
struct answer {
	bool pending;
	enum channel_type type;
	uint8_t flags;
	uint64_t req_id;
	uint8_t block[CHANNEL_OUTCOME_BLOCK];
	size_t size;
};

static struct {
	struct loop *loop;
	struct loop_source source;
	struct channel channel;
	const struct records_events *events;
	void *owner;
	uint64_t generation; /* moves when the channel is opened or closed: callbacks may do either */
	uint64_t frames;
	uint32_t watched; /* what the loop watches for */
	bool open;
	bool full;    /* a send got -EAGAIN: EPOLLOUT is wanted */
	bool broken;  /* a send failed: only what netd still said is to be read */
	bool hung_up; /* netd has closed its end: no new work from it */
	bool drain_owed;
	struct answer answer;
	uint8_t buffer[LIMIT_RECORD];
} self;

static void ready(struct loop_source *source, uint32_t events);

int records_open(struct loop *loop, int fd, const struct records_events *events, void *owner)
{
	int err;

	records_close();
	self.loop = loop;
	self.source = (struct loop_source){.fd = fd, .ready = ready};
	self.channel =
	    (struct channel){.fd = fd, .receives = CHANNEL_TO_EXECD, .phase = CHANNEL_PHASE_CONFIG};
	self.events = events;
	self.owner = owner;
	self.frames = 0;
	self.full = self.broken = self.hung_up = self.drain_owed = false;
	self.answer.pending = false;
	self.watched = EPOLLIN;
	err = loop_add(loop, &self.source, self.watched);
	if (err < 0) {
		close(fd);
		return err;
	}
	self.open = true;
	self.generation++;
	return 0;
}

void records_close(void)
{
	if (!self.open)
		return;
	self.open = false;
	self.generation++;
	loop_del(self.loop, &self.source);
	close(self.source.fd);
}

bool records_is_open(void)
{
	return self.open;
}

int records_fd(void)
{
	return self.open ? self.source.fd : -1;
}

uint64_t records_frames(void)
{
	return self.frames;
}

enum channel_phase records_phase(void)
{
	return self.open ? self.channel.phase : CHANNEL_PHASE_CLOSED;
}

/* --- sending --- */

/* EPOLLOUT only while something is owed, EPOLLIN only while no answer is pending. */
static void watch(void)
{
	uint32_t events = (self.answer.pending ? 0 : EPOLLIN) | (self.full ? EPOLLOUT : 0);

	if (events == self.watched)
		return;
	self.watched = events;
	loop_mod(self.loop, &self.source, events);
}

/* What to make of a send. The end of the channel comes from the loop, after what netd said before it; the
 * shutdown makes sure that it comes, whatever the error was. */
static int sent(int err)
{
	if (err == -EAGAIN) {
		self.full = true;
	} else if (err < 0) {
		self.broken = true;
		self.full = false;
		self.answer.pending = false;
		shutdown(self.source.fd, SHUT_RDWR);
		err = -EPIPE;
	}
	watch();
	return err;
}

static bool can_send(void)
{
	return self.open && !self.broken && self.channel.phase != CHANNEL_PHASE_CLOSED;
}

static int send_record(enum channel_type type, uint8_t flags, uint64_t req_id, const void *block, size_t size)
{
	if (!can_send())
		return -EPIPE;
	if (self.full)
		return -EAGAIN;
	return sent(channel_send(&self.channel, type, flags, req_id, block, size, NULL, 0));
}

static int send_fds(enum channel_type type, uint8_t flags, uint64_t req_id, const int *fds, size_t count)
{
	int err;

	if (!can_send())
		return -EPIPE;
	if (self.full)
		return -EAGAIN;
	err = channel_send_fds(&self.channel, type, flags, req_id, NULL, 0, fds, count);
	if (err == -EAGAIN || err == -EPIPE || err == -ECONNRESET || err == -ENOTCONN)
		return sent(err);
	return err;
}

int records_set(enum channel_key key, const void *value, size_t size)
{
	return send_record(CHANNEL_SET, (uint8_t)key, 0, value, size);
}

int records_set_u32(enum channel_key key, uint32_t value)
{
	uint8_t block[4];

	buf_put_u32(block, value);
	return records_set(key, block, sizeof block);
}

int records_set_fd(enum channel_key key, int fd)
{
	return send_fds(CHANNEL_SET, (uint8_t)key, 0, &fd, 1);
}

int records_jail(void)
{
	int err = send_record(CHANNEL_JAIL, 0, 0, NULL, 0);

	if (err == 0)
		self.channel.phase = CHANNEL_PHASE_JAILING;
	return err;
}

int records_dial(void)
{
	int err = send_record(CHANNEL_DIAL, 0, 0, NULL, 0);

	if (err == 0)
		self.channel.phase = CHANNEL_PHASE_DIALLING;
	return err;
}

void records_drain(void)
{
	if (self.open)
		self.drain_owed = send_record(CHANNEL_DRAIN, 0, 0, NULL, 0) == -EAGAIN;
}

int records_fetch(uint64_t req_id, uint32_t offset)
{
	uint8_t block[4];

	buf_put_u32(block, offset);
	return send_record(CHANNEL_FETCH, 0, req_id, block, sizeof block);
}

int records_started(uint64_t req_id, const int fds[3])
{
	return send_fds(CHANNEL_STARTED, 0, req_id, fds, 3);
}

int records_left(uint64_t req_id)
{
	return send_record(CHANNEL_LEFT, 0, req_id, NULL, 0);
}

int records_ended(uint64_t req_id, const struct channel_ended *ended, bool truncated)
{
	uint8_t block[CHANNEL_ENDED_BLOCK];

	channel_encode_ended(block, ended);
	return send_record(CHANNEL_ENDED, truncated ? CHANNEL_TRUNCATED : 0, req_id, block, sizeof block);
}

static void answer(enum channel_type type, uint8_t flags, uint64_t req_id, const struct outcome *outcome)
{
	struct answer a = {.pending = true, .type = type, .flags = flags, .req_id = req_id};

	if (outcome) {
		channel_encode_outcome(a.block, outcome);
		a.size = CHANNEL_OUTCOME_BLOCK;
	}
	if (send_record(type, flags, req_id, a.block, a.size) != -EAGAIN)
		return;
	self.answer = a;
	watch();
}

void records_admitted(uint64_t req_id)
{
	answer(CHANNEL_ADMITTED, 0, req_id, NULL);
}

void records_duplicate(uint64_t req_id)
{
	answer(CHANNEL_DUPLICATE, 0, req_id, NULL);
}

void records_replay(uint64_t req_id, const struct outcome *outcome, bool truncated)
{
	answer(CHANNEL_REPLAY, truncated ? CHANNEL_TRUNCATED : 0, req_id, outcome);
}

void records_refused(uint64_t req_id, const struct outcome *outcome)
{
	answer(CHANNEL_REFUSED, 0, req_id, outcome);
}

/* There is room: the pending answer first, for whatever else is owed to that exec must come after it. */
static void send_owed(void)
{
	struct answer *a = &self.answer;

	self.full = false;
	if (a->pending) {
		a->pending = send_record(a->type, a->flags, a->req_id, a->block, a->size) == -EAGAIN;
		if (a->pending)
			return;
	}
	if (self.drain_owed)
		records_drain();
	execs_channel_writable();
	watch();
}

/* --- receiving --- */

/* lost() may open the next channel, so it comes last. */
static void lose(const char *violation)
{
	const struct records_events *events = self.events;
	void *owner = self.owner;

	records_close();
	events->lost(owner, violation);
}

static int take_exec(const struct channel_record *r, const char **ret_why)
{
	struct channel_exec exec;

	if (channel_decode_exec(&r->h, r->body, &exec) < 0) {
		*ret_why = "exec: values out of range";
		return -EPROTO;
	}
	self.frames++;
	/* Its stream is gone already: it would be started only to be killed. */
	if (self.hung_up || self.broken)
		return 0;
	execs_on_exec(r->h.req_id, &exec, r->h.flags & CHANNEL_INLINE ? r->body + CHANNEL_EXEC_BLOCK : NULL);
	return 0;
}

static int take_drained(const struct channel_record *r, const char **ret_why)
{
	struct channel_drained drained;

	channel_decode_drained(r->body, &drained);
	return execs_on_drained(r->h.req_id, r->h.flags & CHANNEL_TRUNCATED, &drained, ret_why);
}

static int take_closed(const struct channel_record *r, const char **ret_why)
{
	struct channel_closed closed;

	if (channel_decode_closed(r->body, &closed) < 0) {
		*ret_why = "closed: values out of range";
		return -EPROTO;
	}
	self.channel.phase = CHANNEL_PHASE_CLOSED;
	self.answer.pending = false;
	self.events->closed(self.owner, &closed);
	return 0;
}

static void take_alive(const struct channel_record *r)
{
	struct channel_alive alive;

	channel_decode_alive(r->body, &alive);
	self.events->alive(self.owner, &alive);
}

/* channel_receive has let through only what goes to execd, in its phase and length. */
static int take(const struct channel_record *r, const char **ret_why)
{
	switch (r->h.type) {
	case CHANNEL_JAILED:
		self.channel.phase = CHANNEL_PHASE_CREDENTIALS;
		self.events->jailed(self.owner);
		return 0;
	case CHANNEL_ATTACHED:
		self.channel.phase = CHANNEL_PHASE_ATTACHED;
		self.events->attached(self.owner);
		return 0;
	case CHANNEL_EXEC:
		return take_exec(r, ret_why);
	case CHANNEL_COMMAND:
		return execs_on_command(r->h.req_id, buf_get_u32(r->body), r->body + CHANNEL_COMMAND_BLOCK,
					r->h.len - CHANNEL_COMMAND_BLOCK, ret_why);
	case CHANNEL_ABORT:
		self.frames++;
		execs_on_abort(r->h.req_id);
		return 0;
	case CHANNEL_DRAINED:
		return take_drained(r, ret_why);
	case CHANNEL_QUIET:
		return execs_on_quiet(r->h.req_id, ret_why);
	case CHANNEL_GOAWAY:
		self.events->goaway(self.owner);
		return 0;
	case CHANNEL_ALIVE:
		take_alive(r);
		return 0;
	case CHANNEL_CLOSED:
		return take_closed(r, ret_why);
	default:
		*ret_why = "unknown type";
		return -EPROTO;
	}
}

static void receive(void)
{
	uint64_t generation = self.generation;
	struct channel_record r;

	for (int i = 0; i < RECORDS_BATCH && !self.answer.pending; i++) {
		const char *why = NULL;
		int got = channel_receive(&self.channel, self.buffer, &r, &why);

		if (got == -EAGAIN)
			return;
		/* Said once, when netd died with records of ours unread: what it said before is still to
		 * come. */
		if (got == -ECONNRESET)
			continue;
		if (got == 1 && take(&r, &why) == 0) {
			if (self.generation != generation)
				return;
			continue;
		}
		lose(why);
		return;
	}
}

static void ready(struct loop_source *source, uint32_t events)
{
	uint64_t generation = self.generation;

	(void)source;
	if (events & (EPOLLHUP | EPOLLERR))
		self.hung_up = true;
	if (self.full && events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		send_owed();
	if (self.generation == generation)
		receive();
}
