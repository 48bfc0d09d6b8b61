/* contract.md 7, 8: what waits. */
#include "tests/lib/stage.h"

#include "common/limits.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(queue, .timeout = 60, .fini = stage_fini);

Test(queue, refuses_the_sixty_ninth_and_still_reads_aborts)
{
	struct relay_exec *running[4], *waiting[LIMIT_WAITING], *over;
	char ran[FOLDER_PATH_MAX];
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	folder_join(ran, s->folder, "ran");
	for (unsigned i = 0; i < 4; i++)
		running[i] = stage_exec(s, "echo up; exec sleep %s", s->mark);
	for (unsigned i = 0; i < 4; i++)
		stage_wait_out(running[i], "up\n");
	for (unsigned i = 0; i < LIMIT_WAITING; i++)
		waiting[i] = stage_exec(s, "echo >> '%s'", ran);
	over = stage_exec(s, "echo >> '%s'", ran);
	stage_expect_error(over, "busy: queue full");
	for (unsigned i = 0; i < LIMIT_WAITING; i++)
		cr_assert_eq(waiting[i]->terminal_count, 0);

	/* One that waits: it never starts, and its place is free again. */
	relay_abort(s->attached, waiting[10]->req_id);
	stage_expect_end(waiting[10], -1);
	over = stage_exec(s, "echo >> '%s'", ran);
	stage_expect_error(stage_exec(s, "true"), "busy: queue full");
	relay_abort(s->attached, waiting[20]->req_id);
	stage_expect_end(waiting[20], -1);

	/* One that runs. */
	relay_abort(s->attached, running[0]->req_id);
	stage_expect_end(running[0], -1);
	for (unsigned i = 0; i < LIMIT_WAITING; i++)
		stage_expect_end(waiting[i], i == 10 || i == 20 ? -1 : 0);
	stage_expect_end(over, 0);
	cr_assert_eq(folder_size(ran), LIMIT_WAITING - 2 + 1);
	stage_close(s);
}

Test(queue, is_first_come_first_run)
{
	struct relay_exec *exec[10];
	char order[FOLDER_PATH_MAX], text[64];
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	folder_join(order, s->folder, "order");
	for (unsigned i = 0; i < 10; i++)
		exec[i] = stage_exec(s, "sleep 0.0%u; echo -n %u >> '%s'", 9 - i, i, order);
	for (unsigned i = 0; i < 10; i++) {
		stage_expect_end(exec[i], 0);
		cr_assert(i == 9 || exec[i + 1]->terminal_count == 0);
	}
	folder_read(order, text, sizeof text);
	cr_assert_str_eq(text, "0123456789");
	stage_close(s);
}

Test(queue, runs_as_many_at_once_as_it_said)
{
	struct relay_exec *exec[3];
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=2"));
	for (unsigned i = 0; i < 3; i++)
		exec[i] = stage_exec(s, "echo up; while [ ! -e '%s/go' ]; do sleep 0.02; done", s->folder);
	stage_wait_out(exec[0], "up\n");
	stage_wait_out(exec[1], "up\n");
	relay_run(s->relay, 200);
	cr_assert_eq(exec[2]->out_bytes, 0);
	folder_touch(s->folder, "go");
	for (unsigned i = 0; i < 3; i++)
		stage_expect_end(exec[i], 0);
	stage_close(s);
}
