/* What a test starts beside itself goes with it. */
#include "tests/lib/bound.h"
#include "tests/lib/process.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(bound, .timeout = 30);

#define TIMES   50
#define WAIT_MS 5000

/* On one processor the parent is most often gone before its child has run. */
Test(bound, ends_with_a_parent_that_ended_first)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
	process_adopt_orphans();
	for (int i = 0; i < TIMES; i++) {
		pid_t parent = fork();

		cr_assert_geq(parent, 0);
		if (parent == 0) {
			if (bound_fork() == 0) {
				for (;;)
					pause();
			}
			_exit(0);
		}
		cr_assert_eq(waitpid(parent, NULL, 0), parent);
	}
	cr_assert(process_wait_no_children(NULL, WAIT_MS), "some live on");
}
