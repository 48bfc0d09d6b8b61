/* Rows of "right in the field" about a relay that reads slowly or not at all, and about much at a time:
 * test_field.c has the list. valgrind: not run: netd's memory is bounded here */
#include "tests/lib/stage.h"

#include "common/clock.h"
#include "common/limits.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(field_stall, .timeout = 60, .fini = stage_fini);

/* row 6, a seventh of it at four times the rate; test_long_field.c has the row as it is. */
Test(field_stall, row_6_a_slow_relay_loses_no_line)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "seq 1 300000");
	relay_read_rate(s->attached, 1u << 20);
	cr_assert(relay_wait_bytes(exec, 500000, STAGE_WAIT_MS));
	relay_stall(s->attached, true);
	relay_run(s->relay, 3000);
	relay_stall(s->attached, false);
	cr_assert(relay_wait_terminals(exec, 1, 30000));
	stage_expect_end(exec, 0);
	stage_expect_seq(exec, 300000);
	stage_close(s);
}

static void start_floods(struct stage *s, struct relay_exec *exec[4])
{
	char command[64];

	snprintf(command, sizeof command, "yes %s", s->mark);
	for (unsigned i = 0; i < 4; i++) {
		exec[i] = stage_send(
		    s, &(struct relay_request){.command = command, .timeout_s = 3, .streaming = i % 2 == 0});
		exec[i]->count_only = true;
	}
	cr_assert(relay_wait_sent(s->attached, STAGE_WAIT_MS));
	cr_assert(process_wait_count(s->relay, s->mark, 4, 2500));
}

/* What netd may hold: two streams of non-streaming output up to their limit, and what it needs to work.
 * Sanitizers keep what was freed. */
static void expect_bounded(pid_t pid, size_t before, size_t more)
{
	size_t peak = process_peak(pid);

	cr_assert_gt(peak, 0);
	if (!getenv("ASAN_OPTIONS"))
		cr_assert_leq(peak, before + more, "%zu bytes, before %zu", peak, before);
}

/* The relay reads all the time (stop is NULL), or not from before the first has ended until all are dead. */
static void flood(const char *background, void (*stop)(struct relay_worker *worker, bool on))
{
	struct relay_exec *exec[4];
	size_t netd_before, execd_before;
	uint64_t from, dead;
	struct stage *s;
	pid_t netd;

	s = stage_open(WORKER_SETTINGS(background));
	netd = worker_netd(&s->worker);
	netd_before = process_peak(netd);
	execd_before = process_peak(s->worker.pid);
	from = clock_now_ms();
	start_floods(s, exec);
	if (stop)
		stop(s->attached, true);
	cr_assert(process_wait_count(s->relay, s->mark, 0, STAGE_WAIT_MS));
	dead = clock_now_ms();
	cr_assert(dead - from >= 3000 && dead - from < 5000, "dead after %u ms", (unsigned)(dead - from));
	if (stop) {
		relay_run(s->relay, 1000);
		dead = clock_now_ms();
		stop(s->attached, false);
	}
	for (unsigned i = 0; i < 4; i++) {
		stage_expect_error(exec[i], "timeout:3");
		cr_assert_lt(exec[i]->terminal[0].at_ms, dead + 2000, "%u", i);
	}
	relay_run(s->relay, 200);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(exec[i]->terminal_count, 1);
	expect_bounded(netd, netd_before, 2 * LIMIT_BUFFERED + 2 * LIMIT_MIB);
	expect_bounded(s->worker.pid, execd_before, LIMIT_MIB / 4);
	stage_close(s);
}

/* row 8: two are streaming, two are not. */
Test(field_stall, row_8_four_floods_end_by_their_timeout)
{
	flood("SANDBOX_BACKGROUND=kill", NULL);
}

Test(field_stall, row_8_four_floods_die_though_the_socket_is_not_read)
{
	flood("SANDBOX_BACKGROUND=keep", relay_stall);
}

Test(field_stall, row_8_four_floods_die_though_the_window_is_shut)
{
	flood("SANDBOX_BACKGROUND=kill", relay_hold_window);
}

/* row 11, second half. Exit and timeout race: either may win, and then it is the only one. */
Test(field_stall, row_11_three_hundred_exits_at_their_timeout)
{
	enum { COUNT = 300, WINDOW = 150 };
	struct relay_exec *exec[COUNT];
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=100"));
	for (unsigned i = 0; i < COUNT; i++) {
		if (i >= WINDOW)
			cr_assert_neq(relay_wait_end(exec[i - WINDOW], 30000)->kind, RELAY_NONE);
		exec[i] = stage_send(s, &(struct relay_request){
					    .command = "sleep 1", .timeout_s = 1, .streaming = i % 2 == 0});
	}
	for (unsigned i = COUNT - WINDOW; i < COUNT; i++)
		cr_assert_neq(relay_wait_end(exec[i], 30000)->kind, RELAY_NONE);
	relay_run(s->relay, 300);
	for (unsigned i = 0; i < COUNT; i++) {
		cr_assert_eq(exec[i]->terminal_count, 1);
		if (exec[i]->terminal[0].kind == RELAY_ERROR)
			stage_expect_error(exec[i], "timeout:1");
		else
			stage_expect_end(exec[i], 0);
	}
	stage_close(s);
}

/* row 14 */
Test(field_stall, row_14_large_stdin_leaves_its_neighbour_alone)
{
	enum { TAKEN = 11 << 20, REFUSED = 20 << 20 };
	uint8_t *input = malloc(REFUSED);
	struct relay_exec *neighbour, *exec;
	uint64_t told;
	struct stage *s;

	cr_assert(input);
	for (uint32_t i = 0; i < REFUSED; i++)
		input[i] = (uint8_t)(i * 2654435761u >> 13);
	s = stage_open(WORKER_SETTINGS());
	neighbour = stage_exec(s,
			       "while [ ! -e '%s/go' ]; do echo tick; sleep 0.02; done; "
			       "printf last; exit 3",
			       s->folder);
	stage_wait_out(neighbour, "tick\n");
	exec = stage_send(s, &(struct relay_request){
				 .command = "cat", .input = input, .input_size = TAKEN, .streaming = true});
	cr_assert(relay_wait_terminals(exec, 1, 30000));
	stage_expect_end(exec, 0);
	cr_assert(exec->out.size == TAKEN && memcmp(exec->out.at, input, TAKEN) == 0);

	exec = stage_send(s, &(struct relay_request){
				 .command = "cat", .input = input, .input_size = REFUSED, .streaming = true});
	cr_assert(relay_wait_terminals(exec, 1, 30000));
	stage_expect_error(exec, "command refused: the message is longer than 17 MiB");
	cr_assert_eq(exec->chunk_count, 0);
	stage_expect_end(stage_exec(s, "exit 4"), 4);
	/* It has gone on all the time, on the same connection. */
	cr_assert_eq(neighbour->terminal_count, 0);
	told = neighbour->out_bytes;
	cr_assert(relay_wait_bytes(neighbour, told + 5, STAGE_WAIT_MS));
	folder_touch(s->folder, "go");
	stage_expect_end(neighbour, 3);
	cr_assert_eq(neighbour->out.size % 5, 4);
	cr_assert_eq(memcmp(neighbour->out.at + neighbour->out.size - 4, "last", 4), 0);
	cr_assert_eq(relay_connections(s->relay), 1);
	free(input);
	stage_close(s);
}
