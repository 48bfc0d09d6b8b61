/* A relay that attacks, through the whole worker: netd is lost in good order, with one line, in bounded
 * memory; execd, its cache and its slots do not notice, and the next relay is served. What else such a relay
 * may send is asked of netd alone, in interop/hostile.py. */
#include "tests/lib/bound.h"
#include "tests/lib/stage.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NETD_MORE  (16u * 1024 * 1024) /* than a netd at peace */
#define EXECD_MORE (2u * 1024 * 1024)
#define ATTACK_MS  15000u

TestSuite(hostile_relay, .timeout = 120, .fini = stage_fini);

#define FRAME_HEAD                         9
#define FRAME(length, type, flags, stream) 0, (length) >> 8, (length)&0xff, type, flags, 0, 0, 0, stream
#define SETTINGS                           FRAME(0, 4, 0, 0)
#define PREFACE                            24
#define HEADERS                            1

/* The block of an answer that is gRPC's: :status 200, content-type application/grpc. */
#define ANSWER                                                                                               \
	0x88, 0x0f, 0x10, 16, 'a', 'p', 'p', 'l', 'i', 'c', 'a', 't', 'i', 'o', 'n', '/', 'g', 'r', 'p', 'c'
#define ANSWER_SIZE 20

static const uint8_t settings[] = {SETTINGS};

struct attack {
	const char *why;      /* what the worker must say of it */
	bool call;            /* it begins with SETTINGS, and the rest once the call has come */
	const uint8_t *first; /* sent once; NULL: nothing */
	size_t first_size;
	const uint8_t *flood; /* then again and again; NULL: nothing, and the peer stays */
	size_t flood_size;
};

static void discard(int fd)
{
	uint8_t waste[65536];

	while (recv(fd, waste, sizeof waste, MSG_DONTWAIT) > 0)
		;
}

static bool read_exactly(int fd, uint8_t *at, size_t size)
{
	return recv(fd, at, size, MSG_WAITALL) == (ssize_t)size;
}

/* CHILD. An answer to a call that has not come would be an attack of another kind. */
static bool await_call(int fd)
{
	uint8_t head[FRAME_HEAD], body[16384], preface[PREFACE];

	if (!read_exactly(fd, preface, PREFACE))
		return false;
	do {
		size_t size;

		if (!read_exactly(fd, head, sizeof head))
			return false;
		size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		if (size > sizeof body || !read_exactly(fd, body, size))
			return false;
	} while (head[3] != HEADERS);
	return true;
}

/* CHILD. The worker's side ends it; what it says meanwhile is read and forgotten. */
static void attack(int fd, const struct attack *a)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (a->call && (send(fd, settings, sizeof settings, MSG_NOSIGNAL) < 0 || !await_call(fd)))
		return;
	if (a->first && send(fd, a->first, a->first_size, MSG_NOSIGNAL) < 0)
		return;
	for (;;) {
		if (a->flood && send(fd, a->flood, a->flood_size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
		    errno != EAGAIN)
			return;
		p.revents = 0;
		poll(&p, 1, a->flood ? 0 : -1);
		if (p.revents & (POLLHUP | POLLERR))
			return;
		if (p.revents & POLLIN && recv(fd, &(char){0}, 1, MSG_PEEK) <= 0)
			return;
		discard(fd);
	}
}

/* In the relay's place, for one connection. */
static pid_t take_place(uint16_t port, const struct attack *a)
{
	struct sockaddr_in at = {
	    .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	cr_assert_eq(bind(listener, (struct sockaddr *)&at, sizeof at), 0, "%s", strerror(errno));
	cr_assert_eq(listen(listener, 4), 0);
	pid = bound_fork();
	if (pid == 0) {
		int fd;

		/* The relay's connection among them: it is to be cut. */
		dup2(listener, STDIN_FILENO);
		close_range(STDERR_FILENO + 1, ~0u, 0);
		fd = accept(STDIN_FILENO, NULL, NULL);
		close(STDIN_FILENO);
		attack(fd, a);
		_exit(0);
	}
	close(listener);
	return pid;
}

static bool never(const void *arg)
{
	(void)arg;
	return false;
}

static unsigned warnings(const struct stage *s)
{
	return worker_said_times(&s->worker, "netd level=warn") +
	       worker_said_times(&s->worker, "netd level=error");
}

/* Until the attempt has failed; the most memory that its netd had. */
static size_t watch(struct stage *s, unsigned attempts)
{
	size_t peak = 0;

	for (unsigned i = 0; i < ATTACK_MS / 5; i++) {
		pid_t netd = worker_netd(&s->worker);
		size_t now = netd > 0 ? process_peak(netd) : 0;

		peak = now > peak ? now : peak;
		if (worker_said_times(&s->worker, "backoff_ms=") > attempts)
			return peak;
		relay_wait(s->relay, never, NULL, 5);
	}
	cr_assert_fail("netd bears it");
	return 0;
}

static void survive(const struct attack *a)
{
	struct relay_request request = {.req_id = 100, .streaming = true};
	char command[FOLDER_PATH_MAX + 64], ran[FOLDER_PATH_MAX];
	struct relay_exec *exec;
	unsigned attempts, warned;
	struct stage *s;
	size_t peak, netd_before, execd_before;

	s = stage_open(WORKER_SETTINGS());
	folder_join(ran, s->folder, "ran");
	snprintf(command, sizeof command, "echo >> '%s'; exit 7", ran);
	request.command = command;
	stage_expect_end(relay_exec(s->attached, &request), 7);

	netd_before = process_peak(worker_netd(&s->worker));
	execd_before = process_peak(s->worker.pid);
	relay_deaf(s->relay);
	attempts = worker_said_times(&s->worker, "backoff_ms=") + 1; /* the cut's own */
	take_place(relay_port(s->relay), a);
	relay_cut(s->attached, RELAY_CUT_RESET);
	cr_assert(worker_wait_said(&s->worker, "stream lost", STAGE_WAIT_MS));
	warned = warnings(s);
	peak = watch(s, attempts);
	cr_assert_eq(warnings(s) - warned, 1, "one line says why");
	cr_assert(worker_said(&s->worker, a->why), "not %s", a->why);
	cr_assert_lt(peak, netd_before + NETD_MORE, "netd had %zu bytes, at peace %zu", peak, netd_before);
	cr_assert_lt(process_peak(s->worker.pid), execd_before + EXECD_MORE);

	cr_assert_eq(relay_listen(s->relay), 0);
	stage_reattach(s);
	exec = relay_exec(s->attached, &request);
	stage_expect_end(exec, 7);
	cr_assert_eq(folder_size(ran), 1, "it ran twice");
	stage_expect_end(stage_exec(s, "exit 3"), 3);
	stage_close(s);
}

#define CARRIES_NOTHING "class=flood why=\"the peer sends too much of what carries nothing\""

Test(hostile_relay, that_floods_settings)
{
	static const uint8_t flood[] = {SETTINGS, SETTINGS, SETTINGS, SETTINGS, SETTINGS, SETTINGS, SETTINGS};

	survive(&(struct attack){CARRIES_NOTHING, true, NULL, 0, flood, sizeof flood});
}

Test(hostile_relay, that_floods_pings)
{
	static const uint8_t flood[] = {FRAME(8, 6, 0, 0), 1, 2, 3, 4, 5, 6, 7, 8};

	survive(&(struct attack){CARRIES_NOTHING, true, NULL, 0, flood, sizeof flood});
}

/* Each byte of the rest names a field of the table: accept-encoding, "gzip, deflate". */
Test(hostile_relay, that_never_ends_its_headers)
{
	static const uint8_t begin[] = {FRAME(ANSWER_SIZE, HEADERS, 0, 1), ANSWER};
	static uint8_t flood[FRAME_HEAD + 4096] = {FRAME(4096, 9, 0, 1)};

	memset(flood + FRAME_HEAD, 0x90, sizeof flood - FRAME_HEAD);
	survive(&(struct attack){CARRIES_NOTHING, true, begin, sizeof begin, flood, sizeof flood});
}

Test(hostile_relay, that_floods_empty_data)
{
	static const uint8_t begin[] = {FRAME(ANSWER_SIZE, HEADERS, 4, 1), ANSWER};
	static const uint8_t flood[] = {FRAME(0, 0, 0, 1), FRAME(0, 0, 0, 1), FRAME(0, 0, 0, 1)};

	survive(&(struct attack){CARRIES_NOTHING, true, begin, sizeof begin, flood, sizeof flood});
}

Test(hostile_relay, that_announces_four_gigabytes)
{
	static const uint8_t begin[] = {
	    FRAME(ANSWER_SIZE, HEADERS, 4, 1), ANSWER, FRAME(5, 0, 0, 1), 0, 0xff, 0xff, 0xff, 0xff};

	survive(&(struct attack){"class=flood why=\"a message is over 64 MiB\"", true, begin, sizeof begin,
				 NULL, 0});
}

Test(hostile_relay, that_talks_nonsense)
{
	static uint8_t flood[4096];

	for (size_t i = 0; i < sizeof flood; i++)
		flood[i] = (uint8_t)(i * 167 + (i >> 5) * 29);
	survive(&(struct attack){": the peer does not speak HTTP/2\"", false, flood, sizeof flood, flood,
				 sizeof flood});
}
