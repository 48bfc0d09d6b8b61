/* grpc-client.md 13, design.md "GOAWAY".
 * valgrind: pipes are open at the end */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(goaway, .timeout = 60, .fini = stage_fini);

/* Running work may finish on the old stream, what is new or waits is refused; the old session ends before the
 * next begins, so the relay never sees two. */
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

/* row 28 of "right in the field" (test_field.c), with its own value */
Test(goaway, row_28_ends_nothing_and_runs_nothing_twice)
{
	struct relay_request request = {.req_id = 40, .streaming = true};
	char ran[FOLDER_PATH_MAX], command[FOLDER_PATH_MAX + 64];
	struct relay_exec *exec, *again;
	struct relay_worker *old;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	old = s->attached;
	folder_join(ran, s->folder, "ran");
	snprintf(command, sizeof command, "echo >> '%s'; sleep 3; echo ok", ran);
	request.command = command;
	exec = relay_exec(old, &request);
	stage_wait_file(s, ran, 1);
	relay_goaway(old);
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "ok\n");
	cr_assert_eq(exec->terminal[0].worker, old->number, "by the old connection");
	cr_assert_geq(exec->terminal[0].at_ms - exec->sent_ms, 3000u);
	cr_assert(relay_wait_gone(old, STAGE_WAIT_MS));
	stage_reattach(s);
	again = relay_exec(s->attached, &request);
	stage_expect_end(again, 0);
	cr_assert_eq(again->chunk_count, 0);
	cr_assert_eq(folder_size(ran), 1);
	cr_assert_eq(exec->terminal_count, 1);
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

/* Row 26: at least twice the interval from then on, also for the next netd, and no more when it comes again.
 * test_long_silence.c waits for the pings themselves. */
Test(goaway, row_26_too_many_pings_makes_them_rarer_once)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("LOG_LEVEL=debug"));
	for (unsigned times = 1; times <= 3; times++) {
		relay_calm(s->attached);
		stage_reattach(s);
		stage_expect_end(stage_exec(s, "exit 2"), 2);
		cr_assert_eq(worker_said_times(&s->worker, "msg=\"the relay wants fewer pings\""), 1);
	}
	cr_assert(worker_said(&s->worker, "msg=\"the relay wants fewer pings\" ping_ms=300000\n"));
	cr_assert_eq(worker_said_times(&s->worker, "msg=\"netd started\""), 4);
	cr_assert_eq(worker_said_times(&s->worker, " ping_ms=30000\n"), 1);
	cr_assert_eq(worker_said_times(&s->worker, " ping_ms=300000\n"), 1 + 3);
	stage_close(s);
}

/* The same while a command runs: it may finish where the connection stays. */
Test(goaway, lets_the_first_of_two_name_any_stream)
{
	struct relay_exec *running;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	running = stage_exec(s, "echo up; while [ ! -e '%s/go' ]; do sleep 0.02; done; exit 5", s->folder);
	stage_wait_out(running, "up\n");
	relay_goaway_soon(s->attached);
	relay_run(s->relay, 100);
	relay_goaway(s->attached);
	folder_touch(s->folder, "go");
	stage_expect_end(running, 5);
	cr_assert(relay_wait_gone(s->attached, STAGE_WAIT_MS));
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 2"), 2);
	stage_close(s);
}

/* The relay has not seen the stream, so it says: what ran is lost and may come again. */
Test(goaway, that_excludes_the_stream_is_its_loss)
{
	struct relay_request request = {.req_id = 40, .streaming = true};
	char command[128];
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	snprintf(command, sizeof command, "echo up; exec sleep %s", s->mark);
	request.command = command;
	stage_wait_out(relay_exec(s->attached, &request), "up\n");
	relay_goaway_without(s->attached);
	cr_assert(process_wait_count(s->relay, s->mark, 0, 5000), "the loss of the stream kills");
	stage_reattach(s);
	exec = relay_exec(s->attached, &request);
	stage_wait_out(exec, "up\n");
	relay_abort(s->attached, request.req_id);
	stage_expect_end(exec, -1);
	stage_close(s);
}
