/* A connection that lives for as long as a test wants, on a clock that only the loop moves: where netd would
 * wait, its time comes at once. The relay is an HTTP/2 server session in memory that says nothing of its own.
 * Included once by each test program; its definitions take the place of the kernel's and netd.a's. */
#ifndef TESTS_UNIT_NETD_HEARTBEATS_H
#define TESTS_UNIT_NETD_HEARTBEATS_H

#include "common/clock.h"
#include "netd/attach.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <nghttp2/nghttp2.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEARTBEAT_BYTES "\0\0\0\0\2\x12" /* gRPC's prefix, WorkerFrame.heartbeat; the length 0 ends it */

/* 2^32 ms come soon. */
static struct {
	uint64_t now_ms;
	nghttp2_session *server;
	struct channel execd;
	int event;
	int epfd; /* netd's */
	uint8_t to_netd[65536];
	size_t to_netd_used;
	uint8_t frame[64]; /* the last DATA frame */
	size_t frame_used;
	uint64_t beats, wanted, alive, pings;
	uint64_t beat_ms, ping_ms; /* when the last came */
	size_t heap;               /* after the first thousand */
} life = {.now_ms = (1ull << 32) - 1000000, .epfd = -1};

uint64_t clock_now_ms(void)
{
	return life.now_ms;
}

uint64_t clock_now_us(void)
{
	return life.now_ms * 1000;
}

/* --- the relay --- */

static int relay_on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
			 size_t size, void *user)
{
	(void)session, (void)flags, (void)stream, (void)user;
	if (life.frame_used + size <= sizeof life.frame)
		memcpy(life.frame + life.frame_used, data, size);
	life.frame_used += size;
	return 0;
}

static void take_beat(void)
{
	cr_assert_eq(life.frame_used, sizeof HEARTBEAT_BYTES, "%zu bytes", life.frame_used);
	cr_assert_eq(memcmp(life.frame, HEARTBEAT_BYTES, sizeof HEARTBEAT_BYTES), 0);
	if (life.beats++ > 0)
		cr_assert_eq(life.now_ms - life.beat_ms, LIMIT_HEARTBEAT_MS, "heartbeat %llu",
			     (unsigned long long)life.beats);
	life.beat_ms = life.now_ms;
	if (life.beats == 1000)
		life.heap = mallinfo2().uordblks;
}

static int relay_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	static bool hello;

	(void)session, (void)user;
	if (frame->hd.type == NGHTTP2_PING && !(frame->hd.flags & NGHTTP2_FLAG_ACK)) {
		/* 30 s after the last byte: the answer to the one before, or a WINDOW_UPDATE. */
		cr_assert_geq(life.now_ms - life.ping_ms, LIMIT_PING_MS);
		cr_assert_leq(life.now_ms - life.ping_ms, LIMIT_PING_MS + 2 * LIMIT_HEARTBEAT_MS);
		life.ping_ms = life.now_ms;
		life.pings++;
	}
	if (frame->hd.type != NGHTTP2_DATA)
		return 0;
	if (hello)
		take_beat();
	hello = true;
	life.frame_used = 0;
	return 0;
}

static void relay_start(void)
{
	nghttp2_session_callbacks *callbacks;

	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, relay_on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, relay_on_frame);
	cr_assert_eq(nghttp2_session_server_new(&life.server, callbacks, NULL), 0);
	nghttp2_session_callbacks_del(callbacks);
	cr_assert_eq(nghttp2_submit_settings(life.server, 0, NULL, 0), 0);
}

static void relay_speak(void)
{
	const uint8_t *at;
	uint64_t one = 1;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(life.server, &at)) > 0) {
		cr_assert_leq(life.to_netd_used + (size_t)n, sizeof life.to_netd);
		memcpy(life.to_netd + life.to_netd_used, at, (size_t)n);
		life.to_netd_used += (size_t)n;
		cr_assert_eq(write(life.event, &one, sizeof one), sizeof one);
	}
	cr_assert_eq(n, 0);
}

/* --- execd: takes what comes --- */

static void execd_listen(void)
{
	static uint8_t buf[LIMIT_RECORD];
	struct channel_record r;
	const char *why = "";
	int n;

	while ((n = channel_receive(&life.execd, buf, &r, &why)) == 1) {
		if (r.h.type == CHANNEL_ATTACHED) {
			life.execd.phase = CHANNEL_PHASE_ATTACHED;
			life.ping_ms = life.now_ms;
		}
		life.alive += r.h.type == CHANNEL_ALIVE;
	}
	cr_assert_neq(n, -EPROTO, "%s", why);
}

/* --- what netd waits by; Criterion has a loop of its own --- */

int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	long n;

	if (epfd != life.epfd)
		return (int)syscall(SYS_epoll_pwait, epfd, events, maxevents, timeout, NULL, 0);
	relay_speak();
	execd_listen();
	n = syscall(SYS_epoll_pwait, epfd, events, maxevents, 0, NULL, 0);
	if (n != 0 || timeout == 0)
		return (int)n;
	cr_assert_gt(timeout, 0, "it would wait for ever");
	life.now_ms += (uint64_t)timeout;
	return 0;
}

int transport_dial(struct loop *loop, struct settings *settings, const void *greeting, size_t size,
		   void (*done)(void *owner, struct transport *t, const struct transport_end *end),
		   void *owner)
{
	struct iovec first = {(void *)(uintptr_t)greeting, size};
	struct transport_end end = {0};

	(void)loop, (void)settings;
	life.event = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	cr_assert_eq(transport_writev((struct transport *)&life, &first, 1), (ssize_t)size);
	done(owner, (struct transport *)&life, &end);
	return 0;
}

int transport_fd(const struct transport *t)
{
	(void)t;
	return life.event;
}

/* After the last heartbeat the relay is gone. */
ssize_t transport_read(struct transport *t, void *buf, size_t size)
{
	size_t n = life.to_netd_used;

	(void)t;
	if (life.beats >= life.wanted)
		return 0;
	if (n == 0)
		return -EAGAIN;
	cr_assert_leq(n, size);
	memcpy(buf, life.to_netd, n);
	life.to_netd_used = 0;
	return (ssize_t)n;
}

ssize_t transport_writev(struct transport *t, const struct iovec *iov, int count)
{
	uint64_t one = 1;
	size_t total = 0;

	(void)t;
	for (int i = 0; i < count; i++) {
		ssize_t n = nghttp2_session_mem_recv(life.server, iov[i].iov_base, iov[i].iov_len);

		cr_assert_eq(n, (ssize_t)iov[i].iov_len);
		total += iov[i].iov_len;
	}
	if (life.beats >= life.wanted)
		cr_assert_eq(write(life.event, &one, sizeof one), sizeof one);
	return (ssize_t)total;
}

bool transport_read_wants_write(const struct transport *t)
{
	(void)t;
	return false;
}

bool transport_write_wants_read(const struct transport *t)
{
	(void)t;
	return false;
}

bool transport_pending(const struct transport *t)
{
	(void)t;
	return false;
}

const char *transport_why(const struct transport *t)
{
	(void)t;
	return NULL;
}

size_t transport_unsent(const struct transport *t)
{
	(void)t;
	return 0;
}

void transport_forget(struct transport *t)
{
	(void)t;
}

void transport_shutdown(struct transport *t)
{
	(void)t;
}

void transport_free(struct transport *t)
{
	(void)t;
}

/* --- the test --- */

/* So many heartbeats, each at its time; PINGs and ALIVEs too; and no more memory at the end than near the
 * start. */
static void live_for(uint64_t heartbeats)
{
	static struct attach attach;
	static struct records records;
	static struct settings settings;
	uint64_t began = life.now_ms, ms = heartbeats * LIMIT_HEARTBEAT_MS;
	struct loop loop;
	int ours, theirs;

	life.wanted = heartbeats;
	relay_start();
	cr_assert_eq(channel_pair(&ours, &theirs), 0);
	settings_init(&settings);
	strcpy(settings.token, "token");
	records_init(&records, theirs, &settings);
	records.channel.phase = CHANNEL_PHASE_DIALLING;
	life.execd =
	    (struct channel){.fd = ours, .receives = CHANNEL_TO_EXECD, .phase = CHANNEL_PHASE_DIALLING};
	cr_assert_eq(loop_init(&loop), 0);
	life.epfd = loop.epfd;
	cr_assert_eq(attach_run(&attach, &loop, &settings, &records), 0);
	life.epfd = -1;
	loop_close(&loop);
	cr_assert_eq(attach.closed.close_class, CHANNEL_CLOSE_EOF);
	cr_assert_eq(life.beats, heartbeats);
	cr_assert_eq(life.now_ms - began, ms);
	cr_assert(life.pings >= ms / (LIMIT_PING_MS + LIMIT_HEARTBEAT_MS) &&
		  life.pings <= ms / LIMIT_PING_MS);
	cr_assert(life.alive + 1 >= ms / LIMIT_ALIVE_MS && life.alive <= ms / LIMIT_ALIVE_MS + 1, "%llu",
		  (unsigned long long)life.alive);
	/* What is in use at the end is a little less: the session is closed. */
	cr_assert_leq(mallinfo2().uordblks, life.heap + 1024);
	nghttp2_session_del(life.server);
	close(life.event);
	close(ours);
	close(theirs);
}

#endif
