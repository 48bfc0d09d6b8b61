/* contract.md 4, 5, 9: timeout_s. */
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(timeouts, .timeout = 60, .fini = stage_fini);

Test(timeouts, kill_everything_and_are_cached)
{
	struct relay_request request = {.req_id = 50, .timeout_s = 1, .streaming = true};
	char command[512], ran[FOLDER_PATH_MAX];
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	folder_join(ran, s->folder, "ran");
	snprintf(command, sizeof command, "echo >> '%s'; echo up; setsid sleep %s & sleep %s", ran, s->mark,
		 s->mark);
	request.command = command;
	exec = relay_exec(s->attached, &request);
	stage_expect_error(exec, "timeout:1");
	stage_expect_out(exec, "up\n");
	cr_assert_eq(process_count(s->mark), 0);
	cr_assert_geq(exec->terminal[0].at_ms - exec->sent_ms, 1000u);

	exec = relay_exec(s->attached, &request);
	stage_expect_error(exec, "timeout:1");
	cr_assert_eq(exec->chunk_count, 0);
	cr_assert_eq(folder_size(ran), 1);

	/* The same command with more time is other work: it must not be answered by the old timeout. */
	request.timeout_s = 2;
	exec = relay_exec(s->attached, &request);
	stage_expect_error(exec, "timeout:2");
	cr_assert_eq(folder_size(ran), 2);
	stage_close(s);
}

Test(timeouts, count_from_the_start_not_from_the_arrival)
{
	struct relay_exec *first, *second;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	first = stage_exec(s, "sleep 1.5");
	second = stage_send(s, &(struct relay_request){.command = "sleep 0.5; exit 8", .timeout_s = 1});
	stage_expect_end(first, 0);
	stage_expect_end(second, 8);
	stage_close(s);
}

Test(timeouts, leave_an_exit_just_before_its_real_code)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_send(s, &(struct relay_request){.command = "sleep 0.8; exit 9", .timeout_s = 1});
	stage_expect_end(exec, 9);
	/* What it left in the background does not turn the exit into a timeout. */
	exec = stage_send(s, &(struct relay_request){.command = "sleep 2 & exit 9", .timeout_s = 1});
	stage_expect_end(exec, 9);
	stage_expect_end(stage_send(s, &(struct relay_request){.command = "exit 4", .timeout_s = UINT32_MAX}),
			 4);
	stage_close(s);
}
