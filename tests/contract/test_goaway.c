/* grpc-client.md 13, design.md "GOAWAY". */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>

TestSuite(goaway, .timeout = 60, .fini = stage_fini);

/* Running work may finish on the old stream, what is new or waits is refused; the old session ends before the
 * next begins, so the relay never sees two. */
/* row 28 of "right in the field" (test_field.c) */
Test(goaway, lets_running_work_finish_and_dials_anew)
{
	struct relay_request request = {.req_id = 40, .command = "exit 6"};
	struct relay_exec *running, *waiting, *late;
	struct relay_worker *old;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	old = s->attached;
	running = stage_exec(s, "echo up; while [ ! -e '%s/go' ]; do sleep 0.02; done; exit 3", s->folder);
	stage_wait_out(running, "up\n");
	waiting = stage_exec(s, "echo never");
	relay_run(s->relay, 50);
	relay_goaway(old);
	stage_expect_error(waiting, "relay is going away");
	late = relay_exec(old, &request);
	stage_expect_error(late, "relay is going away");
	folder_touch(s->folder, "go");
	stage_expect_end(running, 3);
	cr_assert(relay_wait_gone(old, STAGE_WAIT_MS));
	stage_reattach(s);
	cr_assert_eq(relay_refusals(s->relay), 0);
	/* Not cached: it may run now. */
	stage_expect_end(relay_exec(s->attached, &request), 6);
	stage_close(s);
}

Test(goaway, of_an_idle_stream_is_a_new_dial)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	relay_goaway(s->attached);
	cr_assert(relay_wait_gone(s->attached, STAGE_WAIT_MS));
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 2"), 2);
	stage_close(s);
}

Test(goaway, for_too_many_pings_is_survived)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	relay_calm(s->attached);
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 2"), 2);
	stage_close(s);
}
