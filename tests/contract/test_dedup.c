/* contract.md 9: one id, one run. */
#include "tests/lib/stage.h"

#include "common/limits.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(dedup, .timeout = 60, .fini = stage_fini);

/* A command that leaves one byte in `ran` each time it runs. */
static void counting(struct stage *s, char command[1024], char ran[FOLDER_PATH_MAX], const char *rest)
{
	folder_join(ran, s->folder, "ran");
	snprintf(command, 1024, "echo >> '%s'; %s", ran, rest);
}

Test(dedup, answers_a_finished_id_from_the_cache_after_a_reconnect)
{
	struct relay_request request = {.req_id = 100, .streaming = true};
	char command[1024], ran[FOLDER_PATH_MAX];
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	counting(s, command, ran, "echo out; exit 7");
	request.command = command;
	exec = relay_exec(s->attached, &request);
	stage_expect_end(exec, 7);
	stage_expect_out(exec, "out\n");

	exec = relay_exec(s->attached, &request);
	stage_expect_end(exec, 7);
	cr_assert_eq(exec->chunk_count, 0, "a replay carries no Chunks");
	cr_assert(!exec->terminal[0].truncated);

	relay_cut(s->attached, RELAY_CUT_CLOSE);
	stage_reattach(s);
	exec = relay_exec(s->attached, &request);
	stage_expect_end(exec, 7);
	cr_assert_eq(exec->chunk_count, 0);
	cr_assert(!exec->terminal[0].truncated, "all was handed over");
	cr_assert_eq(folder_size(ran), 1, "it ran twice");
	stage_close(s);
}

Test(dedup, runs_other_work_under_a_finished_id)
{
	struct relay_request request = {.req_id = 7, .command = "exit 1"};
	struct relay_request other[3] = {request, request, request};
	char command[1024], ran[FOLDER_PATH_MAX];
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	counting(s, command, ran, "exit 2");
	request.command = command;
	for (unsigned i = 0; i < 3; i++)
		other[i].command = command;
	other[0].streaming = true;
	other[1].timeout_s = 100;
	other[2].input = "x", other[2].input_size = 1;
	stage_expect_end(relay_exec(s->attached, &request), 2);
	for (unsigned i = 0; i < 3; i++) {
		stage_expect_end(relay_exec(s->attached, &other[i]), 2);
		cr_assert_eq(folder_size(ran), i + 2);
	}
	/* The newest has replaced the entry: it is replayed, and the first runs again. */
	stage_expect_end(relay_exec(s->attached, &other[2]), 2);
	cr_assert_eq(folder_size(ran), 4);
	stage_expect_end(relay_exec(s->attached, &request), 2);
	cr_assert_eq(folder_size(ran), 5);
	stage_close(s);
}

Test(dedup, answers_a_duplicate_in_flight_once)
{
	struct relay_request request = {.req_id = 8, .streaming = true};
	struct relay_request queued = {.req_id = 9, .command = "exit 6"};
	char command[1024], ran[FOLDER_PATH_MAX], rest[512];
	struct relay_exec *exec, *later;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	snprintf(rest, sizeof rest, "echo up; while [ ! -e '%s/go' ]; do sleep 0.02; done; exit 5",
		 s->folder);
	counting(s, command, ran, rest);
	request.command = command;
	exec = relay_exec(s->attached, &request);
	stage_wait_out(exec, "up\n");
	later = relay_exec(s->attached, &queued);
	for (unsigned i = 0; i < 5; i++) {
		relay_exec_again(exec, s->attached, &request);
		relay_exec_again(later, s->attached, &queued);
	}
	folder_touch(s->folder, "go");
	stage_expect_end(exec, 5);
	stage_expect_end(later, 6);
	relay_run(s->relay, 300);
	cr_assert_eq(exec->terminal_count, 1);
	cr_assert_eq(later->terminal_count, 1);
	cr_assert_eq(folder_size(ran), 1);
	stage_close(s);
}

/* The least recently used of 256 goes first. */
Test(dedup, keeps_256_outcomes)
{
	struct relay_request request = {.req_id = 1};
	char command[1024], ran[FOLDER_PATH_MAX];
	struct relay_exec *exec[LIMIT_CACHED];
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	counting(s, command, ran, "exit 2");
	request.command = command;
	stage_expect_end(relay_exec(s->attached, &request), 2);
	request.req_id = 2;
	stage_expect_end(relay_exec(s->attached, &request), 2);
	/* 1 is used again, so 2 is the oldest now; then 255 others push out just 2. */
	request.req_id = 1;
	stage_expect_end(relay_exec(s->attached, &request), 2);
	s->last_id = 1000;
	for (unsigned i = 0; i < LIMIT_CACHED - 1; i++) {
		exec[i] = stage_exec(s, "true");
		if (i % 32 == 31 || i == LIMIT_CACHED - 2)
			stage_expect_end(exec[i], 0);
		cr_assert(i < 40 || relay_wait_terminals(exec[i - 40], 1, STAGE_WAIT_MS));
	}
	for (unsigned i = 0; i < LIMIT_CACHED - 1; i++)
		stage_expect_end(exec[i], 0);
	cr_assert_eq(folder_size(ran), 2);
	stage_expect_end(relay_exec(s->attached, &request), 2);
	cr_assert_eq(folder_size(ran), 2, "1 was pushed out too early");
	request.req_id = 2;
	stage_expect_end(relay_exec(s->attached, &request), 2);
	cr_assert_eq(folder_size(ran), 3, "2 was still there");
	stage_close(s);
}
