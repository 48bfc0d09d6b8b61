/* The log on whatever stderr is: it never waits, and it tells what was lost. */
#include "common/log.h"

#include "common/fd.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANY 20000u /* lines: more than any buffer here takes */

static int reader = -1;
static char said[4u * 1024 * 1024];
static size_t used;

/* A test that waits is ended by this. */
TestSuite(log, .timeout = 20);

/* Criterion reports by another descriptor than stderr. */
static void become_stderr(int fd)
{
	cr_assert_geq(dup2(fd, STDERR_FILENO), 0);
	close(fd);
	log_init("test", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
}

/* Leaves less room than a line needs: poll(2) calls that writable. */
static void nearly_fill(void)
{
	static const char junk[64] = {[63] = '\n'};
	int slave = open(ptsname(reader), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	char some[8192];

	cr_assert_geq(slave, 0);
	for (int quiet = 0; quiet < 20; quiet++) {
		while (write(slave, junk, sizeof junk) > 0)
			quiet = 0;
		usleep(1000); /* the kernel moves it on by itself */
	}
	cr_assert_gt(read(reader, some, sizeof some), 0);
	close(slave);
}

static void begin_terminal(void)
{
	int slave;

	reader = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	cr_assert(reader >= 0 && grantpt(reader) == 0 && unlockpt(reader) == 0);
	slave = open(ptsname(reader), O_RDWR | O_NOCTTY);
	cr_assert_geq(slave, 0);
	nearly_fill();
	become_stderr(slave);
}

static void begin_pipe(void)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	reader = ends[0];
	become_stderr(ends[1]);
}

static void begin_socket(int type)
{
	int ends[2];

	cr_assert_eq(socketpair(AF_UNIX, type, 0, ends), 0);
	reader = ends[0];
	become_stderr(ends[1]);
}

/* What a terminal adds, and the junk it was filled with, are no part of it. */
static size_t keep_text(size_t size)
{
	size_t kept = 0;

	for (size_t i = 0; i < size; i++) {
		if (said[i] != '\r' && said[i] != '\0')
			said[kept++] = said[i];
	}
	return kept;
}

/* All that is there to read now. */
static void read_said(void)
{
	struct pollfd p = {.fd = reader, .events = POLLIN};
	ssize_t n;

	while (poll(&p, 1, 200) == 1 && (n = read(reader, said + used, sizeof said - 1 - used)) > 0)
		used = keep_text(used + (size_t)n);
	said[used] = '\0';
}

static unsigned count(const char *text)
{
	unsigned n = 0;

	for (const char *at = said; (at = strstr(at, text)); at++)
		n++;
	return n;
}

static void fill(void)
{
	for (unsigned i = 0; i < MANY; i++)
		log_info("a line", LOG_U64("number", i));
	cr_assert_gt(log_dropped(), 0);
	cr_assert_lt(log_dropped(), MANY);
}

/* The sum of what was told of. */
static uint64_t told(void)
{
	static const char text[] = "\ntest level=warn msg=\"log lines lost\" lines=";
	uint64_t sum = 0;

	for (const char *at = said; (at = strstr(at, text));) {
		at += sizeof text - 1;
		sum += strtoull(at, NULL, 10);
	}
	return sum;
}

/* After a pause in which nobody read, the next line comes with what was lost before it, and each is whole. */
static void expect_lost_and_told(void)
{
	uint64_t lost;

	fill();
	lost = log_dropped();
	read_said();
	cr_assert_lt(told(), lost);
	log_info("the next");
	read_said();
	cr_assert_eq(told(), lost);
	cr_assert(strstr(said, "\ntest level=info msg=\"the next\"\n"));
	cr_assert_geq(count("msg=\"a line\" number="), MANY - lost);
	log_info("and on");
	read_said();
	cr_assert_eq(told(), lost, "told twice");
	cr_assert_eq(log_dropped(), lost);
}

static void expect_description(bool own)
{
	int before = dup(STDERR_FILENO);

	cr_assert_eq(log_own_stderr(), 0);
	cr_assert_eq((fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) != 0, own);
	cr_assert_eq(fcntl(STDERR_FILENO, F_GETFD), 0, "netd's log would be closed");
	cr_assert_eq(fcntl(before, F_GETFL) & O_NONBLOCK, 0, "others have this description too");
	close(before);
}

Test(log, does_not_wait_for_a_terminal)
{
	begin_terminal();
	expect_description(true);
	expect_lost_and_told();
}

/* As after su(1): the terminal is somebody else's. */
Test(log, does_not_wait_for_a_terminal_that_it_may_not_open)
{
	begin_terminal();
	cr_assert_eq(fchmod(STDERR_FILENO, 0), 0);
	if (geteuid() == 0)
		cr_assert_eq(setresuid(65532, 65532, 65532), 0);
	cr_assert_lt(open("/proc/self/fd/2", O_WRONLY | O_NOCTTY), 0);
	expect_description(false);
	expect_lost_and_told();
}

Test(log, does_not_wait_for_a_pipe)
{
	begin_pipe();
	expect_description(true);
	expect_lost_and_told();
}

Test(log, does_not_wait_for_a_stream_socket)
{
	begin_socket(SOCK_STREAM);
	expect_description(false);
	expect_lost_and_told();
}

Test(log, does_not_wait_for_a_datagram_socket)
{
	begin_socket(SOCK_DGRAM);
	expect_description(false);
	expect_lost_and_told();
}

Test(log, shares_the_place_in_a_file)
{
	char path[] = "/tmp/log-XXXXXX";
	int fd = mkstemp(path), beside;

	cr_assert(fd >= 0 && unlink(path) == 0);
	reader = dup(fd);
	beside = dup(fd);
	become_stderr(fd);
	expect_description(false);
	log_info("one");
	cr_assert_eq(write(beside, "two\n", 4), 4);
	log_info("three");
	lseek(reader, 0, SEEK_SET);
	cr_assert_gt(read(reader, said, sizeof said - 1), 0);
	cr_assert_str_eq(said, "test level=info msg=one\ntwo\ntest level=info msg=three\n");
}

/* EFBIG stands for ENOSPC and EIO: a limit is easier had than a full disk. */
Test(log, tells_what_a_full_file_lost)
{
	char path[] = "/tmp/log-XXXXXX";
	int fd = mkstemp(path);

	cr_assert(fd >= 0 && unlink(path) == 0);
	reader = dup(fd);
	become_stderr(fd);
	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, RLIM_INFINITY}), 0);
	for (unsigned i = 0; i < 5; i++)
		log_info("fifty bytes or so, that is half of what it takes");
	cr_assert_eq(log_dropped(), 4);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
	log_info("room again");
	lseek(reader, 0, SEEK_SET);
	cr_assert_gt(read(reader, said, sizeof said - 1), 0);
	cr_assert(strstr(said, "\ntest level=warn msg=\"log lines lost\" lines=4\n"
			       "test level=info msg=\"room again\"\n"),
		  "%s", said);
}

Test(log, lives_on_without_a_reader)
{
	signal(SIGPIPE, SIG_IGN);
	begin_socket(SOCK_STREAM);
	close(reader);
	log_info("for nobody");
	begin_pipe();
	close(reader);
	log_info("for nobody");
	cr_assert_eq(log_own_stderr(), 0);
	log_info("for nobody");
	cr_assert_eq(log_dropped(), 3);
}
