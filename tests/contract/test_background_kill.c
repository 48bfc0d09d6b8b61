/* design.md "The end of an exec", SANDBOX_BACKGROUND=kill: what a command leaves behind hands over its output
 * before it is killed. */
#include "tests/lib/stage.h"

#include "common/limits.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define RUNS 40u

TestSuite(background_kill, .timeout = 60, .fini = stage_fini);

/* A filter behind the shell outlives it by a moment. */
Test(background_kill, loses_nothing_of_a_filter_on_stderr)
{
	unsigned whole = 0;
	struct stage *s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));

	for (unsigned i = 0; i < RUNS; i++) {
		struct relay_exec *exec =
		    stage_exec(s, "f() { echo warning: x >&2; echo 'error: real' >&2; return 2; }; "
				  "f 2> >(grep -v warning >&2)");

		stage_expect_end(exec, 2);
		whole += exec->err_bytes == strlen("error: real\n") && !exec->terminal[0].truncated;
	}
	cr_assert_eq(whole, RUNS, "%u of %u", whole, RUNS);
	stage_close(s);
}

Test(background_kill, loses_nothing_of_a_log_behind_the_shell)
{
	unsigned whole = 0;
	struct stage *s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));

	for (unsigned i = 0; i < RUNS; i++) {
		struct relay_exec *exec =
		    stage_exec(s, "exec > >(tee '%s/log') 2>&1; echo hello; seq 1 2000; exit 3", s->folder);

		stage_expect_end(exec, 3);
		whole += exec->out_bytes == 6 + 8893 && !exec->terminal[0].truncated;
	}
	cr_assert_eq(whole, RUNS, "%u of %u", whole, RUNS);
	stage_close(s);
}

static uint64_t took_ms(const struct relay_exec *exec)
{
	return exec->terminal[0].at_ms - exec->sent_ms;
}

/* The best of some runs: what is promised is that nothing is waited for. */
Test(background_kill, waits_for_nobody_who_cannot_write)
{
	struct stage *s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));

	for (int leaves = 0; leaves < 2; leaves++) {
		uint64_t best = UINT64_MAX;

		for (int run = 0; run < 5; run++) {
			struct relay_exec *exec = stage_exec(s, "sleep %s >/dev/null 2>&1 %s exit 5",
							     leaves ? s->mark : "0", leaves ? "&" : ";");

			stage_expect_end(exec, 5);
			cr_assert_eq(process_count(s->mark), 0);
			best = took_ms(exec) < best ? took_ms(exec) : best;
		}
		cr_assert_lt(best, LIMIT_QUIET_MS, "%d: %llu ms", leaves, (unsigned long long)best);
	}
	stage_close(s);
}

Test(background_kill, waits_for_a_silent_one_no_longer_than_the_quiet_time)
{
	uint64_t best = UINT64_MAX;
	struct stage *s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));

	for (int run = 0; run < 3; run++) {
		struct relay_exec *exec = stage_exec(s, "echo up; sleep %s & exit 5", s->mark);

		stage_expect_end(exec, 5);
		cr_assert_eq(process_count(s->mark), 0);
		cr_assert(!exec->terminal[0].truncated);
		best = took_ms(exec) < best ? took_ms(exec) : best;
	}
	cr_assert(best >= LIMIT_QUIET_MS && best < 2 * LIMIT_QUIET_MS, "%llu ms", (unsigned long long)best);
	stage_close(s);
}

Test(background_kill, ends_an_endless_writer_in_time)
{
	for (int streams = 0; streams < 2; streams++) {
		struct stage *s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));
		struct relay_exec *exec;

		exec = streams
			   ? stage_exec(s, "yes %s & exit 4", s->mark)
			   : stage_exec_whole(s, "(while :; do echo %s; sleep 0.1; done) & exit 4", s->mark);
		exec->count_only = true;
		stage_expect_end(exec, 4);
		cr_assert_eq(process_count(s->mark), 0);
		cr_assert_lt(took_ms(exec), LIMIT_LINGER_MS + 2000u);
		cr_assert(!exec->terminal[0].truncated, "all that was written until the kill came");
		stage_close(s);
	}
}

/* The outcome stays, and nobody waits any longer. */
Test(background_kill, is_not_waited_for_after_an_abort_or_the_timeout)
{
	char command[128];
	struct relay_request request = {.command = command, .streaming = true, .timeout_s = 1};
	struct stage *s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));
	struct relay_exec *exec;

	snprintf(command, sizeof command, "(while :; do echo %s; sleep 0.1; done) & exit 2", s->mark);
	exec = stage_send(s, &request);
	stage_expect_end(exec, 2);
	cr_assert_eq(process_count(s->mark), 0);
	cr_assert_lt(took_ms(exec), 1000u + LIMIT_AFTER_KILL_MS);
	request.timeout_s = 0;
	request.req_id = 0;
	exec = stage_send(s, &request);
	relay_run(s->relay, 500); /* bash has gone */
	relay_abort(s->attached, exec->req_id);
	stage_expect_end(exec, 2);
	cr_assert_eq(process_count(s->mark), 0);
	cr_assert_lt(took_ms(exec), 500u + LIMIT_AFTER_KILL_MS);
	stage_close(s);
}

/* A stalled relay must not cost the last lines. */
Test(background_kill, counts_no_time_in_which_the_relay_did_not_read)
{
	struct stage *s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));
	struct relay_exec *exec;

	relay_hold_window(s->attached, true);
	exec = stage_exec(s, "(head -c 300000 /dev/zero; echo last) & exit 1");
	relay_run(s->relay, 7000);
	cr_assert_eq(exec->terminal_count, 0);
	relay_hold_window(s->attached, false);
	stage_expect_end(exec, 1);
	cr_assert_eq(exec->out_bytes, 300005u);
	cr_assert(!exec->terminal[0].truncated);
	stage_close(s);
}

/* The rule, as sandbox-worker(7) tells it. */
Test(background_kill, has_the_same_quiet_time_as_keep)
{
	static const char *const settings[] = {"SANDBOX_BACKGROUND=keep", "SANDBOX_BACKGROUND=kill"};

	for (int i = 0; i < 2; i++) {
		struct stage *s = stage_open(WORKER_SETTINGS(settings[i]));
		struct relay_exec *exec = stage_exec(s, "seq 1 1000 > >(sleep .8; tail -1)");

		stage_expect_end(exec, 0);
		stage_expect_out(exec, "");
		cr_assert(!exec->terminal[0].truncated, "nothing was there to lose");
		exec = stage_exec(s, "seq 1 1000 | (sleep .8; tail -1)");
		stage_expect_end(exec, 0);
		stage_expect_out(exec, "1000\n");
		stage_close(s);
	}
}
