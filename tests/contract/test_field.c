/* What people who run such agents report: rows of the table "right in the field", by their numbers. Where
 * each is (a name without a folder is of this one):
 *
 *  1, 2, 5, 7, 9, 10, 12, 13, 15, 16, 25: this file
 *  3: test_field_world.c, test_long_field.c
 *  4: test_background.c
 *  6: test_field_stall.c, test_long_field.c
 *  8, 14: test_field_stall.c
 *  11: this file, test_field_stall.c
 *  17, 18: test_field_start.c
 *  19: runner/test_slots_faults.c, policy/test_oom.c
 *  20, 21, 22: test_field_world.c
 *  23: policy/test_workloads.c
 *  24: this file, test_dedup.c
 *  26: test_goaway.c, test_long_silence.c, unit/netd/test_attach_ends.c
 *  27: test_idle.c, test_long_idle.c, interop/test_middleboxes.py
 *  28: test_goaway.c
 *  29: test_shutdown.c
 *  30: test_field_clock.c, test_long_clock.c, static/check_clock
 *  31: test_long_exits.c, unit/netd/test_long_heartbeats.c, unit/execd/test_netd_proc.c, test_execs_volume.c
 *  why an exec died: test_field_log.c
 */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(field, .timeout = 60, .fini = stage_fini);

static struct relay_exec *send_timed(struct stage *s, uint32_t timeout_s, const char *command)
{
	return stage_send(
	    s, &(struct relay_request){.command = command, .timeout_s = timeout_s, .streaming = true});
}

/* row 1 */
Test(field, row_1_a_timeout_reaches_the_background)
{
	char command[512];
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	snprintf(command, sizeof command, "cd '%s'; sleep 300 & echo $! > p; wait", s->folder);
	exec = send_timed(s, 1, command);
	stage_expect_error(exec, "timeout:1");
	cr_assert_lt(exec->terminal[0].at_ms - exec->sent_ms, 3000u);
	stage_expect_end(stage_exec(s, "cd '%s'; kill -0 $(cat p)", s->folder), 1);
	stage_close(s);
}

/* row 2 */
Test(field, row_2_nothing_writes_after_the_end_of_an_abort)
{
	char file[FOLDER_PATH_MAX];
	struct relay_exec *exec;
	struct stage *s;
	off_t size;

	s = stage_open(WORKER_SETTINGS());
	folder_join(file, s->folder, "f");
	exec = stage_exec(s,
			  "trap '' TERM INT HUP; for i in 1 2 3 4; do (while :; do echo x >> '%s'; done) & "
			  "done; echo up; wait",
			  file);
	stage_wait_out(exec, "up\n");
	stage_wait_file(s, file, 1000);
	relay_abort(s->attached, exec->req_id);
	stage_expect_end(exec, -1);
	size = folder_size(file);
	relay_run(s->relay, 1000);
	cr_assert_eq(folder_size(file), size);
	stage_close(s);
}

/* rows 5, 10, 12, 13, 16: bytes in and out. */
Test(field, rows_5_10_12_13_16_lose_and_change_no_byte)
{
	enum { SIZE = 4 << 20 };
	uint8_t *input = malloc(SIZE);
	struct relay_exec *exec;
	struct stage *s;

	cr_assert(input);
	for (uint32_t i = 0; i < SIZE; i++)
		input[i] = (uint8_t)(i * 2654435761u >> 13);
	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "head -c 1048576 /dev/zero; exit 3");
	stage_expect_end(exec, 3);
	cr_assert_eq(exec->out_bytes, 1048576u);
	exec = stage_exec(s, "printf 'one\\nlast'; exit 3");
	stage_expect_end(exec, 3);
	stage_expect_out(exec, "one\nlast");

	exec = stage_exec(s, "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero");
	stage_expect_end(exec, 0);
	cr_assert_eq(exec->err_bytes, 1000000u);
	cr_assert_eq(exec->out_bytes, 1000000u);

	exec = stage_exec(s, "cat; read x; echo $?");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "1\n");
	/* rg searches stdin where that is a pipe, else the folder. */
	exec = stage_exec(s,
			  "mkdir '%s/d' && cd '%s/d' && echo needle > hay && if command -v rg >/dev/null; "
			  "then timeout 5 rg needle; else grep -r needle; fi",
			  s->folder, s->folder);
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "hay:needle\n");

	exec = stage_send(s, &(struct relay_request){
				 .command = "cat", .input = input, .input_size = SIZE, .streaming = true});
	stage_expect_end(exec, 0);
	cr_assert(exec->out.size == SIZE && memcmp(exec->out.at, input, SIZE) == 0);

	exec = stage_exec(s, "printf '\xe2'; sleep 0.3; printf '\x89\xa4'; : '\xff\xfe'");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "\xe2\x89\xa4");
	free(input);
	stage_close(s);
}

/* row 7: random bytes and their hash, by two commands. */
Test(field, row_7_random_bytes_come_as_they_are)
{
	struct relay_exec *exec, *hash;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "cd '%s'; head -c 200000 /dev/urandom | tee noise", s->folder);
	stage_expect_end(exec, 0);
	cr_assert_eq(exec->out.size, 200000u);
	hash = stage_send(s, &(struct relay_request){.command = "sha256sum",
						     .input = exec->out.at,
						     .input_size = exec->out.size,
						     .streaming = true});
	stage_expect_end(hash, 0);
	exec = stage_exec(s, "cd '%s'; sha256sum < noise", s->folder);
	stage_expect_end(exec, 0);
	cr_assert(exec->out.size == hash->out.size && exec->out.size > 64 &&
		  memcmp(exec->out.at, hash->out.at, exec->out.size) == 0);
	stage_close(s);
}

/* row 9 */
Test(field, row_9_a_cut_keeps_the_exit_code)
{
	static const struct {
		const char *command;
		bool truncated;
	} rows[] = {{"head -c 8388608 /dev/zero; exit 5", false},
		    {"head -c 8388609 /dev/zero; exit 5", true},
		    {"head -c 8388609 /dev/zero >&2; exit 5", false}};
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	for (size_t i = 0; i < 3; i++) {
		struct relay_exec *exec = stage_exec_whole(s, "%s", rows[i].command);

		stage_expect_end(exec, 5);
		cr_assert_eq(exec->terminal[0].truncated, rows[i].truncated, "%zu", i);
	}
	stage_close(s);
}

/* row 11, first half: an exit before the timeout is an exit, however late the relay reads of it. */
Test(field, row_11_a_stalled_relay_makes_no_timeout)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = send_timed(s, 1, "echo hi");
	cr_assert(relay_wait_sent(s->attached, STAGE_WAIT_MS));
	relay_stall(s->attached, true);
	relay_run(s->relay, 2500);
	relay_stall(s->attached, false);
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "hi\n");
	stage_close(s);
}

/* row 15 */
Test(field, row_15_a_nul_runs_nothing)
{
	char command[1024], a[FOLDER_PATH_MAX], b[FOLDER_PATH_MAX];
	struct relay_exec *exec;
	struct stage *s;
	int n;

	s = stage_open(WORKER_SETTINGS());
	folder_join(a, s->folder, "a");
	folder_join(b, s->folder, "b");
	n = snprintf(command, sizeof command, "touch '%s'%c; touch '%s'", a, '\0', b);
	exec = stage_send(s, &(struct relay_request){.command = command, .command_size = (size_t)n});
	cr_assert_eq(relay_wait_end(exec, STAGE_WAIT_MS)->kind, RELAY_ERROR);
	stage_expect_end(stage_exec(s, "true"), 0);
	cr_assert_eq(folder_size(a), -1);
	cr_assert_eq(folder_size(b), -1);
	stage_close(s);
}

/* row 24: ids as JavaScript's largest and as the wire's. The rest of it is in test_dedup.c. */
Test(field, row_24_large_ids_come_back_unchanged)
{
	static const uint64_t ids[] = {(1ull << 53) - 1, UINT64_MAX};
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	for (size_t i = 0; i < 2; i++) {
		struct relay_request r = {.req_id = ids[i], .command = "exit 6"};

		stage_expect_end(relay_exec(s->attached, &r), 6);
		stage_expect_end(relay_exec(s->attached, &r), 6);
	}
	cr_assert_eq(worker_said_times(&s->worker, "msg=replayed"), 2);
	stage_close(s);
}

/* row 25: as many at a time as may run and wait. */
Test(field, row_25_five_hundred_aborts_at_once)
{
	enum { COUNT = 500, WINDOW = 50 };
	struct relay_exec *exec[COUNT];
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	for (unsigned i = 0; i < COUNT; i++) {
		if (i >= WINDOW)
			stage_expect_end(exec[i - WINDOW], -1);
		exec[i] = stage_exec(s, "sleep %s", s->mark);
		relay_abort(s->attached, exec[i]->req_id);
	}
	for (unsigned i = COUNT - WINDOW; i < COUNT; i++)
		stage_expect_end(exec[i], -1);
	relay_run(s->relay, 300);
	for (unsigned i = 0; i < COUNT; i++)
		cr_assert_eq(exec[i]->terminal_count, 1);
	cr_assert_eq(process_count(s->mark), 0);
	stage_close(s);
}
