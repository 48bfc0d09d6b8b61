/* A whole channel session on execd's side, with slots that have no processes (session_slots.c), a clock that
 * the input moves, and a netd played by the input: in order, out of order, hostile, stalled, gone. Checked:
 * what execd answers (each EXEC once and in order, each ADMITTED ended once), that nothing decided runs
 * twice, that no descriptor and no entry is left. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/session_slots.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"
#include "execd/cache.h"
#include "execd/config.h"
#include "execd/execs.h"
#include "execd/inflight.h"
#include "execd/queue.h"
#include "execd/records.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDS     24u
#define PENDING 128u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What netd knows of an id on this connection. */
struct id {
	enum { UNKNOWN, ADMITTED, STARTED, ENDED } state;
	uint8_t fingerprint;
	uint32_t command_len;
	bool fetching;
	bool left; /* QUIET is expected */
	uint32_t offset;
};

static struct {
	struct loop loop;
	struct channel channel; /* netd's end */
	struct id ids[IDS];
	struct {
		uint8_t id;
		uint8_t fingerprint;
		uint32_t command_len;
	} pending[PENDING]; /* EXECs without an answer, in order */
	unsigned pending_count;
	uint8_t done[IDS];  /* the fingerprint whose outcome is decided and cached, plus 1 */
	bool doubtful[IDS]; /* it was in flight when a stream was lost: decided or not, netd was not told */
	bool stalled;
	bool lost;
	bool idle;
	uint64_t now_ms;
	const uint8_t *in;
	size_t left;
	uint8_t record[LIMIT_RECORD];
} netd;

uint64_t clock_now_ms(void)
{
	return netd.now_ms;
}

uint64_t clock_now_us(void)
{
	return netd.now_ms * 1000;
}

static uint8_t next(void)
{
	if (netd.left == 0)
		return 0;
	netd.left--;
	return *netd.in++;
}

/* --- execd's other ends --- */

static void ignore(void *owner)
{
	(void)owner;
}

static void on_alive(void *owner, const struct channel_alive *alive)
{
	(void)owner;
	(void)alive;
}

static void on_closed(void *owner, const struct channel_closed *closed)
{
	(void)owner;
	(void)closed;
}

static void on_jailed(void *owner)
{
	(void)owner;
	MUST(records_set(CHANNEL_KEY_TOKEN, "token", 5) == 0 && records_dial() == 0);
}

static void on_lost(void *owner, const char *violation)
{
	(void)owner;
	(void)violation;
	execs_stream_lost();
	netd.lost = true;
}

static void on_idle(void *owner)
{
	(void)owner;
	netd.idle = true;
}

static const struct records_events events = {
    .jailed = on_jailed,
    .attached = ignore,
    .alive = on_alive,
    .goaway = ignore,
    .closed = on_closed,
    .lost = on_lost,
};

/* --- netd: what it is told --- */

static void take_answer(const struct channel_header *h)
{
	struct id *id = &netd.ids[h->req_id];

	MUST(netd.pending_count > 0 && netd.pending[0].id == h->req_id);
	if (h->type == CHANNEL_ADMITTED) {
		MUST(id->state == UNKNOWN);
		MUST(netd.doubtful[h->req_id] || netd.done[h->req_id] != netd.pending[0].fingerprint + 1);
		*id = (struct id){.state = ADMITTED,
				  .fingerprint = netd.pending[0].fingerprint,
				  .command_len = netd.pending[0].command_len};
	}
	if (h->type == CHANNEL_DUPLICATE)
		MUST(id->state != UNKNOWN && id->fingerprint == netd.pending[0].fingerprint);
	if (h->type == CHANNEL_REPLAY)
		MUST(id->state == UNKNOWN);
	memmove(netd.pending, netd.pending + 1, --netd.pending_count * sizeof *netd.pending);
}

static void take_outcome(const uint8_t *body, bool replay)
{
	struct outcome o;

	MUST(channel_decode_outcome(body, &o) == 0 && o.kind != OUTCOME_LOST);
	MUST(outcome_cached(&o) == replay);
}

static void take_ended(const struct channel_header *h, const uint8_t *body)
{
	struct id *id = &netd.ids[h->req_id];
	struct channel_ended ended;

	MUST(id->state == ADMITTED || id->state == STARTED);
	MUST(channel_decode_ended(body, &ended) == 0 && ended.outcome.kind != OUTCOME_LOST);
	MUST((ended.reading == CHANNEL_READ_NOTHING) == (id->state == ADMITTED));
	id->state = ENDED;
	id->fetching = false;
	if (outcome_cached(&ended.outcome)) {
		netd.done[h->req_id] = (uint8_t)(id->fingerprint + 1);
		netd.doubtful[h->req_id] = false;
	}
}

static void take(const struct channel_header *h, const uint8_t *body)
{
	struct id *id = &netd.ids[h->req_id % IDS];

	MUST(h->req_id < IDS);
	switch (h->type) {
	case CHANNEL_ADMITTED:
	case CHANNEL_DUPLICATE:
		take_answer(h);
		break;
	case CHANNEL_REPLAY:
	case CHANNEL_REFUSED:
		take_outcome(body, h->type == CHANNEL_REPLAY);
		take_answer(h);
		break;
	case CHANNEL_FETCH:
		MUST(id->state == ADMITTED && !id->fetching);
		id->fetching = true;
		id->offset = buf_get_u32(body);
		MUST(id->offset < id->command_len);
		break;
	case CHANNEL_STARTED:
		MUST(id->state == ADMITTED && !id->fetching);
		id->state = STARTED;
		break;
	case CHANNEL_LEFT:
		MUST(id->state == STARTED && !id->left);
		id->left = true;
		break;
	case CHANNEL_ENDED:
		take_ended(h, body);
		break;
	default:
		break;
	}
}

static void receive(void)
{
	struct channel_record r;
	const char *why;

	while (!netd.lost && channel_receive(&netd.channel, netd.record, &r, &why) == 1) {
		for (int i = 0; i < 3; i++) {
			if (r.fds[i] >= 0)
				close(r.fds[i]);
		}
		if (r.h.type == CHANNEL_JAIL)
			netd.channel.phase = CHANNEL_PHASE_CREDENTIALS;
		else if (r.h.type == CHANNEL_DIAL)
			netd.channel.phase = CHANNEL_PHASE_ATTACHED;
		else
			take(&r.h, r.body);
	}
}

/* --- netd: what it says --- */

static void say(enum channel_type type, uint8_t flags, uint64_t req_id, const void *block, size_t block_size,
		const void *bytes, size_t size)
{
	channel_send(&netd.channel, type, flags, req_id, block, block_size, bytes, size);
}

static void say_exec(void)
{
	static const uint32_t lengths[] = {0, 1, 300, 65000, 70000, 150000, LIMIT_COMMAND, LIMIT_COMMAND + 1};
	uint8_t id = next() % IDS, flags = next();
	struct channel_exec exec = {
	    .timeout_s = flags & 4 ? 5 : 0,
	    .command_len = lengths[next() % 8],
	    .bad = flags & 8 ? REFUSAL_COMMAND_NUL : 0,
	};
	uint8_t block[CHANNEL_EXEC_BLOCK];
	bool whole = flags & 2 && exec.command_len <= CHANNEL_INLINE_MAX && !exec.bad;

	if (netd.pending_count == PENDING)
		return;
	exec.fingerprint[0] = flags >> 6;
	channel_encode_exec(block, &exec);
	if (channel_send(&netd.channel, CHANNEL_EXEC, whole ? 3 : 1, id, block, sizeof block, netd.record,
			 whole ? exec.command_len : 0) < 0)
		return;
	netd.pending[netd.pending_count].id = id;
	netd.pending[netd.pending_count].command_len = exec.command_len;
	netd.pending[netd.pending_count++].fingerprint = exec.fingerprint[0];
}

/* The piece that was asked for, or (wrong) one that was not. */
static void say_command(bool wrong)
{
	uint8_t first = next();
	uint8_t block[CHANNEL_COMMAND_BLOCK];
	uint32_t size;

	for (unsigned i = 0; i < IDS; i++) {
		struct id *id = &netd.ids[(first + i) % IDS];

		if (!id->fetching && !wrong)
			continue;
		size = id->command_len - id->offset;
		if (size > CHANNEL_PIECE_MAX || (wrong && first & 64))
			size = CHANNEL_PIECE_MAX;
		buf_put_u32(block, id->offset + (wrong && first & 32));
		id->fetching = false;
		say(CHANNEL_COMMAND, 0, (first + i) % IDS, block, sizeof block, netd.record, size);
		return;
	}
}

static bool is_pending(unsigned id)
{
	for (unsigned i = 0; i < netd.pending_count; i++) {
		if (netd.pending[i].id == id)
			return true;
	}
	return false;
}

/* A right one is not sent while an EXEC of that id waits for its answer: which of the two execd takes first
 * decides between DUPLICATE and REPLAY, and both are right. */
static void say_drained(bool wrong)
{
	uint8_t first = next();
	uint8_t block[CHANNEL_DRAINED_BLOCK] = {0};

	for (unsigned i = 0; i < IDS; i++) {
		struct id *id = &netd.ids[(first + i) % IDS];

		if (wrong == (id->state == ENDED) || is_pending((first + i) % IDS))
			continue;
		if (!wrong)
			*id = (struct id){.state = UNKNOWN};
		say(CHANNEL_DRAINED, first >> 7, (first + i) % IDS, block, sizeof block, NULL, 0);
		return;
	}
}

static void say_quiet(bool wrong)
{
	uint8_t first = next();

	for (unsigned i = 0; i < IDS; i++) {
		struct id *id = &netd.ids[(first + i) % IDS];

		if (wrong == id->left)
			continue;
		id->left = false;
		say(CHANNEL_QUIET, 0, (first + i) % IDS, NULL, 0, NULL, 0);
		return;
	}
}

static void say_raw(void)
{
	size_t n = next() % 80u;

	if (n > netd.left)
		n = netd.left;
	if (send(netd.channel.fd, netd.in, n, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		netd.channel.seq_out++;
	netd.in += n;
	netd.left -= n;
}

/* --- the session --- */

static void pass(void)
{
	for (int i = 0; i < 4; i++) {
		MUST(loop_pass(&netd.loop, 0) == 0);
		if (!netd.stalled)
			receive();
	}
}

static void disconnect(void)
{
	for (unsigned i = 0; i < IDS; i++) {
		if (netd.ids[i].state != UNKNOWN)
			netd.doubtful[i] = true;
	}
	for (unsigned i = 0; i < netd.pending_count; i++)
		netd.doubtful[netd.pending[i].id] = true;
	records_close();
	if (netd.channel.fd >= 0)
		close(netd.channel.fd);
	netd.channel.fd = -1;
}

/* A small buffer, so that a netd which does not read is soon felt. */
static void connect_netd(void)
{
	int s[2], small = 4096;

	disconnect();
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s) == 0);
	setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	netd.channel =
	    (struct channel){.fd = s[1], .receives = CHANNEL_TO_NETD, .phase = CHANNEL_PHASE_CONFIG};
	memset(netd.ids, 0, sizeof netd.ids);
	netd.pending_count = 0;
	netd.lost = netd.stalled = false;
	MUST(records_open(&netd.loop, s[0], &events, NULL) == 0);
	MUST(records_set_u32(CHANNEL_KEY_CAPACITY, SESSION_SLOTS) == 0 && records_jail() == 0);
	pass();
	say(CHANNEL_JAILED, 0, 0, NULL, 0, NULL, 0);
	pass();
	say(CHANNEL_ATTACHED, 0, 0, NULL, 0, NULL, 0);
	pass();
	MUST(records_phase() == CHANNEL_PHASE_ATTACHED);
}

static void do_one(void)
{
	static const uint16_t steps[] = {10, 501, 3001, 5001, 10001, 30001};
	uint8_t op = next();

	switch (op % 16) {
	case 0:
	case 1:
	case 2:
		say_exec();
		break;
	case 3:
		say_command(op == 19);
		break;
	case 4:
		say(CHANNEL_ABORT, 0, next() % IDS, NULL, 0, NULL, 0);
		break;
	case 5:
	case 6:
		say_drained(op == 21);
		break;
	case 7:
	case 8:
	case 9:
	case 10:
		session_slots_speak(op >> 4, next());
		break;
	case 11:
		netd.now_ms += steps[next() % 6];
		break;
	case 12:
		say_raw();
		break;
	case 13:
		netd.stalled = !netd.stalled;
		break;
	case 14:
		if (op & 128)
			execs_goaway(on_idle, NULL);
		else if (op & 64)
			execs_shutdown(op & 32 ? 5000 : 0, on_idle, NULL);
		break;
	default:
		if (op == 15)
			connect_netd(), execs_stream_lost();
		else if (op == 31 || op == 47)
			say_quiet(op == 31);
		else
			say(CHANNEL_ALIVE, 0, 0, (uint8_t[CHANNEL_ALIVE_BLOCK]){0}, CHANNEL_ALIVE_BLOCK, NULL,
			    0);
		break;
	}
	pass();
	MUST(execs_counters()->running <= SESSION_SLOTS);
	MUST(execs_counters()->running + queue_count() <= SESSION_SLOTS + LIMIT_WAITING);
}

static int count_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 128; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config config = {.max_concurrent = SESSION_SLOTS};
	static bool once;
	int before;

	if (!once) {
		log_init("fuzz", LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
		/* Opens what it keeps open, once. */
		MUST(loop_init(&netd.loop) == 0 && execs_init(&netd.loop, &config) == 0);
		loop_close(&netd.loop);
		once = true;
	}
	before = count_descriptors();
	memset(&netd, 0, sizeof netd);
	netd.in = data;
	netd.left = size;
	netd.now_ms = 1000;
	netd.channel.fd = -1;
	MUST(loop_init(&netd.loop) == 0 && execs_init(&netd.loop, &config) == 0);
	session_slots_reset();
	config.background_kill = !(next() & 1);
	connect_netd();
	while (netd.left > 0) {
		do_one();
		if (netd.lost)
			connect_netd();
	}
	disconnect();
	execs_stream_lost();
	session_slots_finish();
	pass();
	MUST(!inflight_next(NULL) && queue_count() == 0 && execs_counters()->running == 0);
	cache_clear();
	loop_close(&netd.loop);
	MUST(count_descriptors() == before);
	return 0;
}
