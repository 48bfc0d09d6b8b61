/* design.md, "GOAWAY": what runs may finish for 30 s, and who stood for 30 s dials again without a wait. */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>

TestSuite(long_goaway, .timeout = 120, .fini = stage_fini);

Test(long_goaway, ends_what_runs_after_its_grace_and_is_followed_by_a_dial_at_once)
{
	struct relay_exec *running;
	struct stage *s;
	uint64_t start;

	s = stage_open(WORKER_SETTINGS());
	running = stage_exec(s, "echo up; setsid sleep %s & exec sleep %s", s->mark, s->mark);
	stage_wait_out(running, "up\n");
	start = clock_now_ms();
	relay_goaway(s->attached);
	cr_assert_eq(relay_wait_end(running, 45000)->kind, RELAY_END);
	cr_assert_geq(clock_now_ms() - start, 29000u);
	cr_assert_eq(running->terminal[0].exit_code, -1);
	cr_assert_eq(process_count(s->mark), 0);
	cr_assert(relay_wait_gone(s->attached, STAGE_WAIT_MS));
	stage_reattach(s);
	cr_assert(worker_said(&s->worker, " backoff_ms=0 backoff_max_ms=0\n"));
	cr_assert_eq(relay_refusals(s->relay), 0);
	stage_expect_end(stage_exec(s, "exit 2"), 2);
	stage_close(s);
}
