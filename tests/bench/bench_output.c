/* netd's byte path, command's pipe to socket, as a ratio to reading the same pipe with plain 64 KiB reads in
 * the same run. Absolute figures are the machine's; the ratio is ours. usage: bench_output [MiB [rounds]] */
#include "common/clock.h"
#include "common/fd.h"
#include "common/loop.h"
#include "netd/h2.h"
#include "netd/sched.h"
#include "netd/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 15

struct result {
	double seconds;
	double cpu; /* of this process */
};

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

/* head(1) as the command: it writes bytes of zeros as fast as they are read. */
static pid_t produce(size_t mib, int *ret_fd)
{
	char count[32];
	char *argv[] = {(char[]){"head"}, (char[]){"-c"}, count, (char[]){"/dev/zero"}, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		die("pipe2");
	snprintf(count, sizeof count, "%zu", mib << 20);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, p[1], STDOUT_FILENO);
	if (posix_spawnp(&pid, "head", &actions, NULL, argv, NULL) != 0)
		die("head");
	posix_spawn_file_actions_destroy(&actions);
	close(p[1]);
	*ret_fd = p[0];
	return pid;
}

static struct result plain_reads(size_t mib)
{
	static uint8_t buf[65536];
	uint64_t began = clock_now_us();
	double cpu = cpu_now();
	struct result r;
	size_t total = 0;
	ssize_t n;
	int fd;
	pid_t pid = produce(mib, &fd);

	while ((n = read(fd, buf, sizeof buf)) > 0)
		total += (size_t)n;
	r = (struct result){(double)(clock_now_us() - began) / 1e6, cpu_now() - cpu};
	close(fd);
	waitpid(pid, NULL, 0);
	if (total != mib << 20)
		die("short read");
	return r;
}

/* A relay that opens its windows once, to 2 GiB, and throws away what comes. */
static _Noreturn void sink(int listener, int theirs)
{
	static const uint8_t hello[] = {
	    0, 0, 6, 4, 0, 0, 0, 0, 0, 0,    4,    0x7f, 0xff, 0xff, 0xff, /* SETTINGS */
	    0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0,    0};               /* WINDOW_UPDATE */
	static uint8_t buf[1 << 18];
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(theirs); /* or there would be no end of file */
	fd = accept(listener, NULL, NULL);
	if (fd < 0 || write(fd, hello, sizeof hello) != sizeof hello)
		_exit(1);
	while (read(fd, buf, sizeof buf) > 0)
		;
	_exit(0);
}

static int connect_to_sink(pid_t *ret_pid)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof a;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1, low = 128 * 1024;

	if (bind(listener, (struct sockaddr *)&a, sizeof a) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&a, &size) < 0)
		die("listen");
	*ret_pid = fork();
	if (*ret_pid == 0)
		sink(listener, fd);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
		die("connect");
	close(listener);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &low, sizeof low);
	fd_set_nonblock(fd, true);
	return fd;
}

static struct {
	struct loop loop;
	struct loop_source source;
	struct transport *transport;
	struct h2 h2;
	struct sched sched;
	struct output output;
	bool readable;
	bool done;
} path;

static void socket_event(struct loop_source *source, uint32_t events)
{
	(void)source, (void)events;
	path.readable = true;
	path.sched.more = true;
}

static void output_done(void *owner, struct output *o)
{
	(void)owner;
	sched_forget(&path.sched, o);
	path.done = true;
}

static void pass(void)
{
	static uint8_t buf[H2_READ];
	ssize_t n;

	if (loop_pass(&path.loop, path.sched.more ? 0 : -1) < 0)
		die("loop");
	while (path.readable) {
		n = transport_read(path.transport, buf, sizeof buf);
		path.readable = n > 0;
		if (n > 0)
			h2_receive(&path.h2, buf, (size_t)n, clock_now_ms());
	}
	if (sched_send(&path.sched, clock_now_ms()) < 0)
		die("send");
}

static void open_path(pid_t *ret_sink)
{
	static struct settings settings;
	uint64_t now_ms = clock_now_ms();
	int fd = connect_to_sink(ret_sink);

	settings_init(&settings);
	strcpy(settings.token, "token");
	path.done = false;
	path.transport = transport_new(fd, NULL);
	if (loop_init(&path.loop) < 0 || !path.transport)
		die("loop");
	path.source = (struct loop_source){.fd = fd, .ready = socket_event};
	sched_init(&path.sched, &path.loop, &path.h2, output_done, output_done, NULL, now_ms);
	if (h2_open(&path.h2, &path.sched.batch, now_ms) < 0 ||
	    loop_add(&path.loop, &path.source, EPOLLIN | EPOLLOUT | EPOLLET) < 0)
		die("h2");
	sched_connect(&path.sched, path.transport);
	while (!path.h2.settled)
		pass();
	if (h2_request(&path.h2, &settings) < 0)
		die("request");
}

static struct result through_netd(size_t mib)
{
	struct channel_ended how = {.outcome = {OUTCOME_EXITED, 0}, .reading = CHANNEL_READ_KEEP};
	pid_t sink_pid, pid;
	uint64_t began;
	struct result r;
	double cpu;
	int fd, nothing[2];

	open_path(&sink_pid);
	if (pipe2(nothing, O_CLOEXEC | O_NONBLOCK) < 0)
		die("pipe2");
	close(nothing[1]);
	began = clock_now_us();
	cpu = cpu_now();
	pid = produce(mib, &fd);
	fd_set_nonblock(fd, true);
	if (sched_begin(&path.sched, &path.output, 1, true, (int[]){fd, nothing[0]}) < 0)
		die("begin");
	while (path.output.pipe[OUTPUT_STDOUT].fd >= 0)
		pass();
	sched_end(&path.sched, &path.output, &how, clock_now_ms());
	while (!path.done || !sched_is_flushed(&path.sched))
		pass();
	r = (struct result){(double)(clock_now_us() - began) / 1e6, cpu_now() - cpu};
	if (path.sched.bytes_out != mib << 20)
		die("bytes are missing");
	waitpid(pid, NULL, 0);
	h2_close(&path.h2);
	transport_free(path.transport);
	loop_close(&path.loop);
	waitpid(sink_pid, NULL, 0);
	return r;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof *values, by_value);
	return values[count / 2];
}

int main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 512;
	unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
	double speed[ROUNDS_MAX], cost[ROUNDS_MAX];

	if (mib < 1 || mib > 1900 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_output [MiB, 1 to 1900 [rounds, 1 to %d]]\n", ROUNDS_MAX);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < rounds; i++) {
		struct result raw = plain_reads(mib), netd = through_netd(mib);
		double gib = (double)mib / 1024;

		speed[i] = raw.seconds / netd.seconds;
		cost[i] = netd.cpu / raw.cpu;
		printf("raw %.2f GiB/s, %.2f CPU s/GiB; netd %.2f GiB/s, %.2f CPU s/GiB\n", gib / raw.seconds,
		       raw.cpu / gib, gib / netd.seconds, netd.cpu / gib);
	}
	printf("median: netd's speed is %.2f of the plain reads', its CPU %.2f times theirs\n",
	       median(speed, rounds), median(cost, rounds));
	return 0;
}
