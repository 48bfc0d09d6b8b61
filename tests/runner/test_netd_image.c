/* netd starts shut to processes of its own user, and says so where it could not be. */
#include "tests/lib/outer.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>

TestSuite(netd_image, .timeout = 60, .fini = stage_fini);

#define OPEN "started dumpable"

Test(netd_image, starts_shut_from_its_sealed_copy)
{
	struct stage *s = stage_open(WORKER_SETTINGS());

	cr_assert(!worker_said(&s->worker, OPEN));
	cr_assert(!worker_said(&s->worker, "no sealed copy"));
	stage_close(s);
}

/* By path, from a file that it may read: open until its main. It serves all the same. */
Test(netd_image, warns_that_it_was_open_where_there_is_no_copy)
{
	struct stage *s;

	outer_no_memfd();
	s = stage_open(WORKER_SETTINGS("LOG_FORMAT=json"));
	cr_assert(worker_said(&s->worker, "no sealed copy of netd: it is run from its file"));
	cr_assert_eq(worker_said_times(&s->worker, OPEN), 1);
	cr_assert(worker_said(&s->worker, "\"level\":\"warn\""));
	stage_expect_end(stage_exec(s, "exit 4"), 4);
	stage_close(s);
}
