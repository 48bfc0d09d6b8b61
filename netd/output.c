#include "netd/output.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct output_block {
	struct output_block *next;
	size_t used;
	uint8_t data[OUTPUT_BLOCK];
};

static uint8_t nowhere[OUTPUT_BLOCK]; /* what is read only to be dropped */

/* Out of the loop first: the slot has a duplicate, so closing ours does not end the watch, and its events
 * would come with a pointer to nothing. */
static void close_pipe(struct output_pipe *p)
{
	if (p->fd < 0)
		return;
	loop_del(p->output->loop, &p->source);
	fd_close(&p->fd);
	p->readable = false;
}

static int open_pipe(struct output *o, struct output_pipe *p, int fd, uint8_t stream,
		     void (*ready)(struct loop_source *source, uint32_t events))
{
	*p = (struct output_pipe){
	    .fd = fd,
	    .stream = stream,
	    .readable = true,
	    .output = o,
	    .source = {.fd = fd, .ready = ready, .owner = p},
	};
	return loop_add(o->loop, &p->source, EPOLLIN | EPOLLET);
}

int output_open(struct output *o, struct loop *loop, uint64_t req_id, bool streaming,
		const int fds[OUTPUT_PIPES], void (*ready)(struct loop_source *source, uint32_t events))
{
	int first, second;

	*o = (struct output){.loop = loop, .req_id = req_id, .streaming = streaming};
	first = open_pipe(o, &o->pipe[OUTPUT_STDOUT], fds[OUTPUT_STDOUT], 1, ready);
	second = open_pipe(o, &o->pipe[OUTPUT_STDERR], fds[OUTPUT_STDERR], 2, ready);
	if (first == 0 && second == 0)
		return 0;
	output_free(o);
	return first < 0 ? first : second;
}

static void drop_first(struct output_pipe *p)
{
	struct output_block *b = p->first;

	p->first = b->next;
	if (!p->first)
		p->last = NULL;
	p->taken = 0;
	free(b);
}

void output_free(struct output *o)
{
	for (int i = 0; i < OUTPUT_PIPES; i++) {
		close_pipe(&o->pipe[i]);
		while (o->pipe[i].first)
			drop_first(&o->pipe[i]);
	}
}

/* What streams goes by the clock that stops while the relay takes nothing. */
static uint64_t clock_of(const struct output *o, uint64_t now_ms, uint64_t open_ms)
{
	return o->streaming ? open_ms : now_ms;
}

/* poll tells an empty pipe from one at its end without reading: the relay's window may be shut. */
static void look(struct output_pipe *p)
{
	struct pollfd f = {.fd = p->fd, .events = POLLIN};

	if (p->fd < 0)
		return;
	if (poll(&f, 1, 0) == 1 && f.revents & POLLIN) {
		p->readable = true;
		return;
	}
	p->readable = false;
	p->dry = true;
	if (f.revents & (POLLHUP | POLLERR))
		close_pipe(p);
}

static uint64_t in_pipe(const struct output_pipe *p)
{
	int n = 0;

	return p->fd < 0 || ioctl(p->fd, FIONREAD, &n) < 0 || n < 0 ? 0 : (uint64_t)n;
}

/* What the leader wrote is in front of what others did since. */
static void begin_reading(struct output *o, enum channel_reading reading, uint64_t now_ms, uint64_t open_ms)
{
	o->reading = reading;
	o->ended_clock = clock_of(o, now_ms, open_ms);
	o->data_clock = o->ended_clock;
	for (int i = 0; i < OUTPUT_PIPES; i++) {
		struct output_pipe *p = &o->pipe[i];

		p->bytes_at_end = p->bytes;
		p->dry = false;
		look(p);
		p->left = p->readable ? in_pipe(p) : 0;
	}
}

void output_left(struct output *o, uint64_t now_ms, uint64_t open_ms)
{
	o->left = true;
	begin_reading(o, CHANNEL_READ_KEEP, now_ms, open_ms);
}

void output_end(struct output *o, const struct channel_ended *how, uint64_t now_ms, uint64_t open_ms)
{
	o->ended = true;
	o->how = *how;
	o->ended_ms = now_ms;
	begin_reading(o, how->reading, now_ms, open_ms);
}

/* A read that is small because the window was is not tiny: the pipe had more. */
static void note_tiny(struct output_pipe *p, size_t n, size_t asked, uint64_t now_ms)
{
	if (n >= OUTPUT_TINY || n == asked) {
		p->tiny_reads = 0;
		p->paced = false;
		return;
	}
	if (p->tiny_reads == 0 || now_ms - p->tiny_since_ms > OUTPUT_TINY_MS) {
		p->tiny_reads = 0;
		p->tiny_since_ms = now_ms;
	}
	if (++p->tiny_reads > OUTPUT_TINY_READS)
		p->paced = true;
	if (p->paced)
		p->not_before_ms = now_ms + 1;
}

/* More room where much is moved: fewer wake-ups. Refused (EPERM) when the user's pipes hold too much; never
 * once the leader is gone, since what keeps a pipe then keeps its pages. */
static void enlarge(struct output_pipe *p)
{
	if (p->big || p->bytes < OUTPUT_BIG_AFTER || p->output->left || p->output->ended)
		return;
	p->big = true;
	(void)fcntl(p->fd, F_SETPIPE_SZ, OUTPUT_BIG_PIPE);
}

static ssize_t read_pipe(struct output_pipe *p, const struct iovec *iov, int count, uint64_t clock)
{
	ssize_t n;

	if (p->fd < 0)
		return 0;
	n = readv(p->fd, iov, count);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		p->readable = errno == EINTR;
		p->dry |= errno == EAGAIN;
		p->paced = p->paced && errno == EINTR;
		return -EAGAIN;
	}
	if (n <= 0) {
		close_pipe(p);
		return 0;
	}
	p->bytes += (uint64_t)n;
	p->output->data_clock = clock;
	enlarge(p);
	return n;
}

static ssize_t take_buffered(struct output_pipe *p, const struct iovec *iov, int count)
{
	size_t total = 0;

	for (int i = 0; i < count; i++) {
		size_t used = 0;

		while (used < iov[i].iov_len && p->first) {
			size_t n = p->first->used - p->taken;

			if (n > iov[i].iov_len - used)
				n = iov[i].iov_len - used;
			memcpy((uint8_t *)iov[i].iov_base + used, p->first->data + p->taken, n);
			p->taken += n;
			used += n;
			if (p->taken == p->first->used)
				drop_first(p);
		}
		total += used;
	}
	p->waiting -= total;
	return (ssize_t)total;
}

static size_t size_of(const struct iovec *iov, int count)
{
	size_t size = 0;

	for (int i = 0; i < count; i++)
		size += iov[i].iov_len;
	return size;
}

ssize_t output_take(struct output_pipe *p, const struct iovec *iov, int count, uint64_t now_ms,
		    uint64_t open_ms)
{
	ssize_t n;

	if (!p->output->streaming) {
		n = take_buffered(p, iov, count);
	} else {
		n = read_pipe(p, iov, count, open_ms);
		if (n > 0)
			note_tiny(p, (size_t)n, size_of(iov, count), now_ms);
	}
	if (n > 0)
		p->output->sent += (uint64_t)n;
	return n;
}

/* The block that takes the next bytes, or NULL: read into nothing. */
static struct output_block *block_with_room(struct output_pipe *p)
{
	struct output_block *b = p->last;

	if (b && b->used < OUTPUT_BLOCK)
		return b;
	if (p->buffered >= LIMIT_BUFFERED)
		return NULL;
	b = malloc(sizeof *b);
	if (!b)
		return NULL;
	b->next = NULL;
	b->used = 0;
	if (p->last)
		p->last->next = b;
	else
		p->first = b;
	p->last = b;
	return b;
}

ssize_t output_absorb(struct output_pipe *p, uint64_t now_ms)
{
	struct output_block *b = block_with_room(p);
	struct iovec iov = {nowhere, sizeof nowhere};
	ssize_t n;

	if (b)
		iov = (struct iovec){b->data + b->used, OUTPUT_BLOCK - b->used};
	n = read_pipe(p, &iov, 1, now_ms);
	if (n <= 0)
		return n;
	if (!b) {
		p->dropped += (uint64_t)n;
		return n;
	}
	b->used += (size_t)n;
	p->buffered += (size_t)n;
	p->waiting += (size_t)n;
	return n;
}

static bool left_is_read(const struct output_pipe *p)
{
	return p->fd < 0 || p->dry || p->bytes - p->bytes_at_end >= p->left;
}

static bool all(const struct output *o, bool (*is)(const struct output_pipe *))
{
	return is(&o->pipe[OUTPUT_STDOUT]) && is(&o->pipe[OUTPUT_STDERR]);
}

static bool is_closed(const struct output_pipe *p)
{
	return p->fd < 0;
}

static bool is_quiet(const struct output_pipe *p)
{
	return p->fd < 0 || !p->readable;
}

static uint64_t until(uint64_t clock, uint64_t since, uint64_t limit)
{
	return clock - since >= limit ? 0 : limit - (clock - since);
}

/* Bytes may have come that the loop has not told of yet. */
static bool is_quiet_still(struct output *o)
{
	for (int i = 0; i < OUTPUT_PIPES; i++)
		look(&o->pipe[i]);
	return all(o, is_quiet);
}

bool output_read_enough(struct output *o, uint64_t now_ms, uint64_t open_ms, uint64_t *ret_wait_ms)
{
	uint64_t clock = clock_of(o, now_ms, open_ms);
	uint64_t in_all = o->reading == CHANNEL_READ_KILLED ? LIMIT_AFTER_KILL_MS : LIMIT_LINGER_MS;
	uint64_t wait = until(clock, o->ended_clock, in_all);

	if (all(o, is_closed) || o->reading == CHANNEL_READ_NOTHING)
		return true;
	if (all(o, left_is_read) && (wait == 0 || o->reading != CHANNEL_READ_KEEP))
		return true;
	if (wait == 0 && o->reading == CHANNEL_READ_KILLED)
		return true;
	if (o->reading == CHANNEL_READ_KEEP && all(o, is_quiet)) {
		uint64_t quiet = until(clock, o->data_clock, LIMIT_QUIET_MS);

		if (quiet == 0 && is_quiet_still(o))
			return true;
		if (quiet > 0)
			wait = wait == 0 || quiet < wait ? quiet : wait;
	}
	/* The clock may stand still, or what is left may take longer: look again now and then. */
	*ret_wait_ms = wait > 0 ? wait : 100;
	return false;
}

/* Of what the command had written, the bytes that nobody will read: all that is there while others write on,
 * else what was there when the last was dead. What comes later is somebody else's, who was passed a write
 * end. */
static uint64_t unread(const struct output_pipe *p)
{
	uint64_t taken = p->bytes - p->bytes_at_end;

	if (p->output->reading == CHANNEL_READ_KEEP)
		return in_pipe(p);
	return left_is_read(p) ? 0 : p->left - taken;
}

void output_stop(struct output *o)
{
	for (int i = 0; i < OUTPUT_PIPES; i++) {
		struct output_pipe *p = &o->pipe[i];

		p->dropped += unread(p);
		close_pipe(p);
	}
	o->read_over = true;
}

bool output_waiting(const struct output *o)
{
	return o->pipe[OUTPUT_STDOUT].waiting > 0 || o->pipe[OUTPUT_STDERR].waiting > 0;
}

bool output_truncated(const struct output *o)
{
	return o->pipe[OUTPUT_STDOUT].dropped > 0;
}

uint64_t output_dropped(const struct output *o)
{
	return o->pipe[OUTPUT_STDOUT].dropped + o->pipe[OUTPUT_STDERR].dropped;
}
