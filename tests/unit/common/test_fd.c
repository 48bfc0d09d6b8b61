/* Descriptors are closed where close_range(2) is refused and the limit is as high as some systems set it. */
#include "common/fd.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_MS 20000u

/* The C library's, replaced. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int close_range(unsigned first, unsigned last, int flags)
{
	(void)first;
	(void)last;
	(void)flags;
	errno = ENOSYS;
	return -1;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
	if (resource == RLIMIT_NOFILE) {
		*limit = (struct rlimit){1u << 30, 1u << 30};
		return 0;
	}
	return (int)syscall(SYS_prlimit64, 0, resource, NULL, limit);
}

/* Somewhere above all that the test's own process has open. */
static int open_high(int from)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), high = fcntl(fd, F_DUPFD_CLOEXEC, from);

	close(fd);
	cr_assert_geq(high, from);
	return high;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

Test(fd, are_closed_one_by_one_up_to_what_can_be)
{
	int below = open_high(200), in = open_high(below + 1);
	uint64_t from = clock_now_ms();

	fd_close_between((unsigned)in, ~0u);
	cr_expect(is_open(below));
	cr_expect(!is_open(in));
	cr_expect_lt(clock_now_ms() - from, WAIT_MS);
	fd_close_between((unsigned)below, (unsigned)below);
	cr_expect(!is_open(below));
	fd_close_between(1, 0);
	cr_expect(is_open(0));
}
