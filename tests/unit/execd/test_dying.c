/* What only dies is told from what may still do something. */
#include "execd/slot/dying.h"
#include "tests/lib/bound.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A stat with the state, flags and pending signals given. */
static bool dying(char state, unsigned flags, unsigned pending)
{
	char text[512];
	int n = snprintf(
	    text, sizeof text,
	    "12 (a) R 4) %c 1 2 3 0 -1 %u 5 6 7 8 9 10 11 12 20 0 1 0 99 1000 10 1 2 3 4 5 6 %u 8 9 10",
	    state, flags, pending);

	return dying_parse(text, (size_t)n);
}

Test(dying, is_what_is_dead_exits_or_only_lacks_the_processor_for_it)
{
	cr_expect(dying('Z', 0, 0));
	cr_expect(dying('X', 0, 0));
	cr_expect(dying('R', 0x400004, 0));
	cr_expect(dying('D', 0x4, 0));
	cr_expect(dying('R', 0, 1u << (SIGKILL - 1)));
}

Test(dying, is_not_what_runs_sleeps_or_waits_in_the_kernel_under_sigkill)
{
	cr_expect(!dying('R', 0x400000, 0));
	cr_expect(!dying('S', 0, 1u << (SIGTERM - 1)));
	cr_expect(!dying('T', 0, 0));
	cr_expect(!dying('D', 0, 1u << (SIGKILL - 1)));
	cr_expect(!dying('R', 0, 1u << (SIGTERM - 1)));
}

Test(dying, is_not_what_cannot_be_read)
{
	static const char text[] = "12 (a) R 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 99 1000 10 1 2 3 4 5 6";

	for (size_t size = 0; size <= strlen(text); size++)
		cr_expect(!dying_parse(text, size), "%zu", size);
}

Test(dying, counts_what_lives_below_a_process)
{
	int p[2];
	char c;
	pid_t pid;

	cr_assert_eq(pipe(p), 0);
	pid = bound_fork();
	if (pid == 0) {
		(void)!write(p[1], "x", 1);
		for (;;)
			pause();
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(read(p[0], &c, 1), 1);
	cr_expect_eq(dying_count_others(getpid(), NULL, DESCENDANTS_MAX), 1);
	kill(pid, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	cr_expect_eq(dying_count_others(getpid(), NULL, DESCENDANTS_MAX), 0);
	waitpid(pid, NULL, 0);
	cr_expect_lt(dying_count_others(pid, NULL, DESCENDANTS_MAX), 0);
}
