/* contract.md 12: SIGTERM and SIGINT. */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <signal.h>

TestSuite(shutdown, .timeout = 60, .fini = stage_fini);

static bool none_open(const void *relay)
{
	return relay_open(relay) == 0;
}

static void leave_by(int signal_number, const char *background)
{
	struct relay_exec *running, *waiting;
	uint64_t start;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1", background));
	stage_expect_end(
	    stage_exec(s, "sleep %s >/dev/null 2>&1 & setsid sleep %s >/dev/null 2>&1 &", s->mark, s->mark),
	    0);
	running = stage_exec(s, "trap '' TERM INT; echo up; setsid sleep %s & sleep %s", s->mark, s->mark);
	stage_wait_out(running, "up\n");
	waiting = stage_exec(s, "echo never");
	relay_run(s->relay, 50);
	start = clock_now_ms();
	process_kill(s->worker.pid, signal_number);
	stage_expect_end(running, -1);
	stage_expect_error(waiting, "shutting down");
	cr_assert(worker_wait_exit(&s->worker, STAGE_WAIT_MS));
	cr_assert_lt(clock_now_ms() - start, 5000u);
	cr_assert_eq(process_count(s->mark), 0);
	cr_assert(relay_wait(s->relay, none_open, s->relay, 1000));
	cr_assert(s->attached->reset || s->attached->ended, "the stream was left open");
	cr_assert(s->attached->said_goaway);
	stage_close(s);
}

Test(shutdown, leaves_nothing_by_sigterm)
{
	leave_by(SIGTERM, "SANDBOX_BACKGROUND=keep");
}

Test(shutdown, leaves_nothing_by_sigint)
{
	leave_by(SIGINT, "SANDBOX_BACKGROUND=kill");
}

/* A relay that does not read holds nobody up. */
Test(shutdown, waits_for_no_relay)
{
	struct relay_exec *exec;
	uint64_t start;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "yes %s", s->mark);
	cr_assert(relay_wait_chunks(exec, 1, STAGE_WAIT_MS));
	relay_stall(s->attached, true);
	relay_run(s->relay, 300);
	start = clock_now_ms();
	process_kill(s->worker.pid, SIGTERM);
	cr_assert(worker_wait_exit(&s->worker, STAGE_WAIT_MS));
	cr_assert_lt(clock_now_ms() - start, 5000u);
	stage_close(s);
}

Test(shutdown, works_while_there_is_no_relay)
{
	struct stage *s;

	s = stage_prepare();
	relay_deaf(s->relay);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS());
	cr_assert(worker_wait_said(&s->worker, "backoff_ms=", STAGE_WAIT_MS));
	stage_close(s);
}

/* row 29 of "right in the field" (test_field.c) by its own value, twice; the tests above and below have more
 * of it. The row's exec after the first SIGTERM is refused while there is a drain, and else too late. */
Test(shutdown, row_29_kills_without_a_drain)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "echo up; sleep 3; echo ok");
	stage_wait_out(exec, "up\n");
	process_kill(s->worker.pid, SIGTERM);
	stage_expect_end(exec, -1);
	stage_expect_out(exec, "up\n");
	stage_close(s);
}

Test(shutdown, row_29_waits_with_a_drain)
{
	struct relay_exec *exec, *late;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_DRAIN_S=20"));
	exec = stage_exec(s, "echo up; sleep 3; echo ok");
	stage_wait_out(exec, "up\n");
	process_kill(s->worker.pid, SIGTERM);
	cr_assert(worker_wait_said(&s->worker, "msg=\"shutting down\"", STAGE_WAIT_MS));
	late = stage_exec(s, "echo never");
	stage_expect_error(late, "shutting down");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "up\nok\n");
	cr_assert(worker_wait_exit(&s->worker, 5000), "with nothing left to drain");
	stage_close(s);
}

Test(shutdown, drains_for_as_long_as_it_may)
{
	struct relay_exec *running, *late;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_DRAIN_S=30"));
	running = stage_exec(s, "echo up; while [ ! -e '%s/go' ]; do sleep 0.02; done; exit 3", s->folder);
	stage_wait_out(running, "up\n");
	process_kill(s->worker.pid, SIGTERM);
	relay_run(s->relay, 200);
	late = stage_exec(s, "echo never");
	stage_expect_error(late, "shutting down");
	cr_assert_eq(running->terminal_count, 0);
	folder_touch(s->folder, "go");
	stage_expect_end(running, 3);
	cr_assert(worker_wait_exit(&s->worker, STAGE_WAIT_MS));
	stage_close(s);
}

Test(shutdown, ends_the_drain_by_a_second_sigterm)
{
	struct relay_exec *running;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_DRAIN_S=30"));
	running = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(running, "up\n");
	process_kill(s->worker.pid, SIGTERM);
	relay_run(s->relay, 200);
	cr_assert_eq(running->terminal_count, 0);
	process_kill(s->worker.pid, SIGTERM);
	stage_expect_end(running, -1);
	stage_close(s);
}
