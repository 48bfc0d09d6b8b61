/* contract.md 7, grpc-client.md 17-19: a relay that reads slowly, or not at all. */
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(stalls, .timeout = 60, .fini = stage_fini);

static bool any_has_chunks(const void *arg)
{
	struct relay_exec *const *four = arg;

	return four[0]->chunk_count + four[1]->chunk_count + four[2]->chunk_count + four[3]->chunk_count > 0;
}

/* The window is shut: the command blocks, netd's memory stays flat, and Aborts come through, answered within
 * the reserve that output may not use. */
Test(stalls, of_the_window_stop_no_abort)
{
	struct relay_exec *flood[4], *whole;
	size_t before, after;
	struct stage *s;
	pid_t netd;

	s = stage_open(WORKER_SETTINGS());
	netd = worker_netd(&s->worker);
	before = process_resident(netd);
	relay_hold_window(s->attached, true);
	for (unsigned i = 0; i < 4; i++)
		flood[i] = stage_exec(s, "yes %s", s->mark);
	cr_assert(relay_wait(s->relay, any_has_chunks, flood, STAGE_WAIT_MS));
	whole = stage_exec(s, "true");
	relay_run(s->relay, 1000);
	after = process_resident(netd);
	cr_assert_lt(after, before + (8u << 20), "from %zu to %zu bytes", before, after);
	for (unsigned i = 0; i < 4; i++)
		relay_abort(s->attached, flood[i]->req_id);
	cr_assert(process_wait_count(s->relay, s->mark, 0, STAGE_WAIT_MS));
	relay_hold_window(s->attached, false);
	for (unsigned i = 0; i < 4; i++)
		stage_expect_end(flood[i], -1);
	stage_expect_end(whole, 0);
	stage_close(s);
}

/* Output has used up what it may: an End still leaves. */
Test(stalls, of_the_window_leave_room_for_an_end)
{
	struct relay_exec *flood, *small;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	relay_hold_window(s->attached, true);
	flood = stage_exec(s, "yes %s", s->mark);
	cr_assert(relay_wait_chunks(flood, 1, STAGE_WAIT_MS));
	relay_run(s->relay, 300);
	small = stage_exec(s, "exit 9");
	stage_expect_end(small, 9);
	/* What the flood's pipe holds comes before its End, and waits for the window; the kill does not. */
	relay_abort(s->attached, flood->req_id);
	cr_assert(process_wait_count(s->relay, s->mark, 0, STAGE_WAIT_MS));
	relay_hold_window(s->attached, false);
	stage_expect_end(flood, -1);
	stage_close(s);
}

Test(stalls, of_the_socket_stop_no_abort)
{
	struct relay_exec *flood;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	flood = stage_exec(s, "yes %s", s->mark);
	flood->count_only = true;
	cr_assert(relay_wait_chunks(flood, 1, STAGE_WAIT_MS));
	relay_stall(s->attached, true);
	relay_run(s->relay, 500);
	relay_abort(s->attached, flood->req_id);
	cr_assert(process_wait_count(s->relay, s->mark, 0, STAGE_WAIT_MS));
	relay_stall(s->attached, false);
	stage_expect_end(flood, -1);
	stage_close(s);
}

static void expect_lines(struct stage *s, unsigned lines)
{
	struct relay_exec *exec =
	    stage_exec(s, "for ((i = 0; i < %u; i++)); do printf '%%07d\\n' $i; done", lines);
	char expected[16];

	cr_assert(relay_wait_terminals(exec, 1, 30000));
	stage_expect_end(exec, 0);
	cr_assert_eq(exec->out.size, lines * 8u);
	for (unsigned i = 0; i < lines; i++) {
		snprintf(expected, sizeof expected, "%07u\n", i);
		cr_assert(memcmp(exec->out.at + 8u * i, expected, 8) == 0, "line %u", i);
	}
	relay_forget(exec);
}

Test(stalls, and_slow_reading_lose_and_reorder_nothing)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	expect_lines(s, 60000);
	relay_read_rate(s->attached, 400000);
	expect_lines(s, 50000);
	relay_read_rate(s->attached, 0);
	stage_close(s);
}

Test(stalls, of_a_window_that_shrinks_below_zero_end)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	relay_hold_window(s->attached, true);
	exec = stage_exec(s, "head -c 500000 /dev/zero; exit 3");
	cr_assert(relay_wait_chunks(exec, 1, STAGE_WAIT_MS));
	relay_shrink_window(s->attached, 100);
	relay_run(s->relay, 200);
	cr_assert_eq(exec->terminal_count, 0);
	relay_shrink_window(s->attached, 0);
	relay_run(s->relay, 200);
	relay_shrink_window(s->attached, 65535);
	relay_hold_window(s->attached, false);
	stage_expect_end(exec, 3);
	cr_assert_eq(exec->out_bytes, 500000);
	stage_close(s);
}

/* Windows of a few bytes from the start: everything still arrives, in Chunks as small as need be. */
Test(stalls, of_a_tiny_window_are_only_slow)
{
	static const uint32_t windows[] = {1, 5, 16, 1000};

	for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
		struct relay_exec *exec;
		struct stage *s;

		s = stage_prepare();
		relay_manners(s->relay)->set_initial_window = true;
		relay_manners(s->relay)->initial_window = windows[i];
		worker_start(&s->worker, s->relay, WORKER_SETTINGS());
		stage_reattach(s);
		exec = stage_exec(s, "printf '%%01000d' 7; printf '%%0100d' 8 >&2; exit 4");
		stage_expect_end(exec, 4);
		cr_assert_eq(exec->out_bytes, 1000, "window %u", windows[i]);
		cr_assert_eq(exec->err_bytes, 100);
		stage_close(s);
	}
}

Test(stalls, do_not_come_from_plenty)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "head -c 64M /dev/zero; exit 3");
	exec->count_only = true;
	cr_assert(relay_wait_terminals(exec, 1, 30000));
	stage_expect_end(exec, 3);
	cr_assert_eq(exec->out_bytes, 64u << 20);
	stage_close(s);
}
