/* contract.md 4, 5, 8: an Abort kills all that the command started, and only then answers. */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(aborts, .timeout = 60, .fini = stage_fini);

Test(aborts, kill_the_whole_group_after_the_first_chunk)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "sleep %s & (sleep %s & sleep %s) & while :; do echo tick; sleep 0.01; done",
			  s->mark, s->mark, s->mark);
	cr_assert(relay_wait_chunks(exec, 1, STAGE_WAIT_MS));
	relay_abort(s->attached, exec->req_id);
	relay_abort(s->attached, exec->req_id); /* harnesses send it twice */
	stage_expect_end(exec, -1);
	cr_assert_eq(process_count(s->mark), 0, "alive after the End");
	/* A Chunk after the End, or a second End, would be a complaint. */
	relay_run(s->relay, 300);
	cr_assert_eq(exec->terminal_count, 1);
	stage_expect_end(stage_exec(s, "exit 6"), 6);
	stage_close(s);
}

static void aborts_every_shape(const char *background)
{
	static const char *const shapes[] = {
	    "setsid sleep %s & echo up; wait",
	    "(setsid bash -c 'sleep %s & sleep %s') & echo up; sleep %s",
	    "trap '' TERM INT HUP; echo up; while :; do sleep %s; done",
	    "bash -c 'kill -STOP $$; sleep %s' & echo up; sleep %s",
	    "setsid bash -c 'setsid bash -c \"setsid sleep %s\" &' & echo up; wait; sleep %s",
	};
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS(background));
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		char command[512];
		uint64_t start;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(command, sizeof command, shapes[i], s->mark, s->mark, s->mark);
#pragma GCC diagnostic pop
		exec = stage_exec(s, "%s", command);
		stage_wait_out(exec, "up\n");
		start = clock_now_ms();
		relay_abort(s->attached, exec->req_id);
		stage_expect_end(exec, -1);
		cr_assert_lt(exec->terminal[0].at_ms - start, 5000u);
		cr_assert_eq(process_count(s->mark), 0, "shape %zu outlived its End", i);
	}
	stage_close(s);
}

Test(aborts, reach_what_has_left_the_group)
{
	aborts_every_shape("SANDBOX_BACKGROUND=keep");
}

Test(aborts, reach_what_has_left_the_group_with_background_kill)
{
	aborts_every_shape("SANDBOX_BACKGROUND=kill");
}

Test(aborts, of_nothing_say_nothing)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	relay_abort(s->attached, 4711);
	exec = stage_exec(s, "exit 2");
	stage_expect_end(exec, 2);
	relay_abort(s->attached, exec->req_id);
	stage_expect_end(stage_exec(s, "exit 3"), 3);
	cr_assert_eq(exec->terminal_count, 1);
	stage_close(s);
}

/* An abort is a decided outcome: the id does not run again. */
Test(aborts, are_cached)
{
	struct relay_request request = {.req_id = 31, .streaming = true};
	char command[512], ran[FOLDER_PATH_MAX];
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	folder_join(ran, s->folder, "ran");
	snprintf(command, sizeof command, "echo >> '%s'; echo up; exec sleep %s", ran, s->mark);
	request.command = command;
	exec = relay_exec(s->attached, &request);
	stage_wait_out(exec, "up\n");
	relay_abort(s->attached, request.req_id);
	stage_expect_end(exec, -1);
	exec = relay_exec(s->attached, &request);
	stage_expect_end(exec, -1);
	cr_assert_eq(exec->chunk_count, 0);
	cr_assert_eq(folder_size(ran), 1);
	stage_close(s);
}

/* Right behind its Exec: whether it has started or not, it is answered once, by -1, and nothing lives. */
Test(aborts, at_once_are_answered_once)
{
	struct relay_exec *exec[20];
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	for (unsigned i = 0; i < 20; i++) {
		exec[i] = stage_exec(s, "sleep %s", s->mark);
		relay_abort(s->attached, exec[i]->req_id);
	}
	for (unsigned i = 0; i < 20; i++)
		stage_expect_end(exec[i], -1);
	cr_assert_eq(process_count(s->mark), 0);
	stage_close(s);
}

/* What the pipes held at the kill still comes, before the End. */
Test(aborts, deliver_what_was_written_before)
{
	char written[FOLDER_PATH_MAX];
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	folder_join(written, s->folder, "written");
	exec = stage_exec_whole(s, "echo early; echo >&2 late; : > '%s'; exec sleep %s", written, s->mark);
	stage_wait_file(s, written, 0);
	relay_abort(s->attached, exec->req_id);
	stage_expect_end(exec, -1);
	stage_expect_out(exec, "early\n");
	stage_expect_err(exec, "late\n");
	stage_close(s);
}
