#include "tests/lib/cutter.h"

#include "common/clock.h"
#include "common/fd.h"
#include "tests/lib/peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PREFACE 24u /* RFC 9113, 3.4 */
#define HEADER  9u

enum { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_RST_STREAM = 3, FRAME_PING = 6 };

static void close_side(struct cutter *cutter, struct cutter_side *side)
{
	if (side->source.fd >= 0)
		loop_del(cutter->loop, &side->source);
	fd_close(&side->source.fd);
	relay_bytes_free(&side->in);
	relay_bytes_free(&side->out);
}

static void close_connection(struct cutter_connection *c)
{
	loop_timer_stop(c->cutter->loop, &c->idle);
	close_side(c->cutter, &c->worker);
	close_side(c->cutter, &c->relay);
}

/* False: the connection is gone. */
static bool write_out(struct cutter_connection *c, struct cutter_side *side)
{
	while (side->out.size > 0) {
		ssize_t n = send(side->source.fd, side->out.at, side->out.size, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			close_connection(c);
			return false;
		}
		relay_bytes_drop(&side->out, (size_t)n);
	}
	loop_mod(c->cutter->loop, &side->source, EPOLLIN | (side->out.size > 0 ? EPOLLOUT : 0u));
	return true;
}

static void add_reset(struct relay_bytes *out, uint32_t stream)
{
	const uint8_t frame[HEADER + 4] = {0,
					   0,
					   4,
					   FRAME_RST_STREAM,
					   0,
					   (uint8_t)(stream >> 24),
					   (uint8_t)(stream >> 16),
					   (uint8_t)(stream >> 8),
					   (uint8_t)stream,
					   0,
					   0,
					   0,
					   8 /* CANCEL */};

	relay_bytes_add(out, frame, sizeof frame);
}

static void idle_over(struct loop_timer *timer, uint64_t now_ms)
{
	struct cutter_connection *c = timer->owner;

	(void)now_ms;
	c->cut = true;
	c->cutter->cuts++;
	add_reset(&c->worker.out, c->stream);
	add_reset(&c->relay.out, c->stream);
	if (write_out(c, &c->worker))
		write_out(c, &c->relay);
}

static void look_at(struct cutter_connection *c, const uint8_t *head)
{
	bool starts = head[3] == FRAME_HEADERS && c->stream == 0;

	if (starts)
		c->stream =
		    (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
	if (head[3] == FRAME_PING && !(head[4] & 1))
		c->cutter->pings++;
	if ((starts || head[3] == FRAME_DATA) && !c->cut)
		loop_timer_set(c->cutter->loop, &c->idle, clock_now_ms() + c->cutter->idle_ms);
}

/* Whole frames go on, so that one of ours may go between any two. */
static void pass_frames(struct cutter_connection *c, struct cutter_side *from, struct cutter_side *to)
{
	if (!from->greeted && from->in.size >= PREFACE) {
		from->greeted = true;
		relay_bytes_add(&to->out, from->in.at, PREFACE);
		relay_bytes_drop(&from->in, PREFACE);
	}
	while (from->greeted && from->in.size >= HEADER) {
		const uint8_t *h = from->in.at;
		size_t size = HEADER + ((size_t)h[0] << 16 | (size_t)h[1] << 8 | h[2]);

		if (from->in.size < size)
			return;
		look_at(c, h);
		relay_bytes_add(&to->out, h, size);
		relay_bytes_drop(&from->in, size);
	}
}

static void on_ready(struct loop_source *source, uint32_t events)
{
	struct cutter_connection *c = source->owner;
	struct cutter_side *from = source == &c->worker.source ? &c->worker : &c->relay;
	struct cutter_side *to = from == &c->worker ? &c->relay : &c->worker;
	char bytes[16384];
	ssize_t n;

	if ((events & EPOLLOUT) && !write_out(c, from))
		return;
	if (!(events & ~(uint32_t)EPOLLOUT))
		return;
	n = read(source->fd, bytes, sizeof bytes);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		close_connection(c);
		return;
	}
	relay_bytes_add(&from->in, bytes, (size_t)n);
	pass_frames(c, from, to);
	write_out(c, to);
}

static void begin_side(struct cutter_connection *c, struct cutter_side *side, int fd)
{
	cr_assert(fd >= 0, "%m");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	cr_assert_eq(fd_set_nonblock(fd, true), 0);
	side->source = (struct loop_source){.fd = fd, .ready = on_ready, .owner = c};
	cr_assert_eq(loop_add(c->cutter->loop, &side->source, EPOLLIN), 0);
}

static void on_dial(struct loop_source *source, uint32_t events)
{
	struct cutter *cutter = source->owner;
	struct cutter_connection *c = &cutter->connections[cutter->used];
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(cutter->relay_port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int relay = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)events;
	cr_assert_lt(cutter->used++, CUTTER_CONNECTIONS, "more connections than this proxy can take");
	cr_assert_eq(connect(relay, (struct sockaddr *)&a, sizeof a), 0, "%m");
	c->cutter = cutter;
	c->idle = (struct loop_timer){.fire = idle_over, .owner = c};
	c->relay.greeted = true;
	begin_side(c, &c->worker, accept4(source->fd, NULL, NULL, SOCK_CLOEXEC));
	begin_side(c, &c->relay, relay);
}

void cutter_start(struct cutter *cutter, struct loop *loop, uint16_t relay_port, uint32_t idle_ms)
{
	*cutter = (struct cutter){.loop = loop, .relay_port = relay_port, .idle_ms = idle_ms};
	for (unsigned i = 0; i < CUTTER_CONNECTIONS; i++)
		cutter->connections[i].worker.source.fd = cutter->connections[i].relay.source.fd = -1;
	cutter->listener =
	    (struct loop_source){.fd = peer_listen(&cutter->port), .ready = on_dial, .owner = cutter};
	cr_assert_eq(loop_add(loop, &cutter->listener, EPOLLIN), 0);
}

void cutter_stop(struct cutter *cutter)
{
	loop_del(cutter->loop, &cutter->listener);
	fd_close(&cutter->listener.fd);
	for (unsigned i = 0; i < cutter->used; i++)
		close_connection(&cutter->connections[i]);
}
