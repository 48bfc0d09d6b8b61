/* Many deaths at once are taken piece by piece. */
#include "execd/children.h"

#include "common/clock.h"
#include "execd/netd_proc.h"
#include "execd/slots.h"

#include <criterion/criterion.h>
#include <unistd.h>

#define MANY    (3u * CHILDREN_MAX + 7u)
#define WAIT_MS 20000u

static unsigned taken;

bool netd_proc_reap(pid_t pid, int wait_status)
{
	(void)pid;
	(void)wait_status;
	return false;
}

const char *slots_reap(pid_t pid, int wait_status)
{
	(void)pid;
	(void)wait_status;
	taken++;
	return "orphan";
}

static void until_all_exited(void)
{
	char c;
	int p[2];

	cr_assert_eq(pipe(p), 0);
	for (unsigned i = 0; i < MANY; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		cr_assert_gt(pid, 0);
	}
	close(p[1]);
	cr_assert_eq(read(p[0], &c, 1), 0);
	close(p[0]);
}

Test(children, are_taken_a_few_in_each_pass_of_the_loop)
{
	uint64_t end = clock_now_ms() + WAIT_MS;
	unsigned most = 0, before;
	struct loop loop;

	cr_assert_eq(loop_init(&loop), 0);
	until_all_exited();
	children_reap(&loop);
	cr_expect_leq(taken, CHILDREN_MAX);
	while (taken < MANY) {
		cr_assert_lt(clock_now_ms(), end);
		before = taken;
		loop_pass(&loop, 1);
		most = taken - before > most ? taken - before : most;
		if (taken == before)
			children_reap(&loop); /* as the next SIGCHLD would */
	}
	cr_expect_leq(most, CHILDREN_MAX);
	cr_expect_eq(taken, MANY);
	loop_close(&loop);
}
