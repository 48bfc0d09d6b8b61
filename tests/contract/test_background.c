/* contract.md 13, design.md "The end of an exec": what a command leaves behind. */
#include "tests/lib/stage.h"

#include "common/clock.h"
#include "common/landlock.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

TestSuite(background, .timeout = 60, .fini = stage_fini);

/* row 4 of "right in the field" (test_field.c), with those below */
Test(background, keeps_a_quiet_process_and_ends_soon)
{
	struct relay_exec *exec;
	uint64_t start;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=keep"));
	start = clock_now_ms();
	exec = stage_exec(s, "echo up; sleep %s & echo $! >'%s/pid'", s->mark, s->folder);
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "up\n");
	cr_assert_lt(exec->terminal[0].at_ms - start, 3000u);
	cr_assert(process_wait_count(s->relay, s->mark, 1, STAGE_WAIT_MS), "it must live on");
	/* It can be found and stopped by a later command, as an agent does with its own server. */
	stage_expect_end(stage_exec(s, "kill $(cat '%s/pid')", s->folder), 0);
	cr_assert(process_wait_count(s->relay, s->mark, 0, STAGE_WAIT_MS));
	stage_close(s);
}

/* One that writes every 400 ms, below the 500 ms of quiet, is waited for. */
Test(background, delivers_what_a_writer_says_for_four_seconds)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=keep"));
	/* read -t waits without a new process, so that a busy machine does not turn 400 ms into 500. */
	exec = stage_exec(s,
			  "mkfifo '%s/never'; exec 9<>'%s/never'; "
			  "(for i in 1 2 3 4 5 6 7 8 9 10; do read -t 0.4 <&9; echo $i; done) & exit 3",
			  s->folder, s->folder);
	stage_expect_end(exec, 3);
	stage_expect_out(exec, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n");
	stage_close(s);
}

Test(background, ends_an_endlessly_chatty_one_in_time)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=keep"));
	exec = stage_exec(s, "(while :; do echo %s; sleep 0.1; done) & exit 2", s->mark);
	stage_expect_end(exec, 2);
	cr_assert_lt(exec->terminal[0].at_ms - exec->sent_ms, 6000u + 1000u);
	cr_assert_geq(exec->out_bytes, 30 * (strlen(s->mark) + 1));
	/* It has a reader still: it does not die of SIGPIPE. */
	relay_run(s->relay, 1000);
	cr_assert(process_wait_count(s->relay, s->mark, 1, STAGE_WAIT_MS));

	exec = stage_exec(s, "yes %s & exit 4", s->mark);
	exec->count_only = true;
	stage_expect_end(exec, 4);
	cr_assert_lt(exec->terminal[0].at_ms - exec->sent_ms, 6000u + 1000u);
	stage_close(s);
}

/* Before the answer it counts as output, whoever wrote it. */
Test(background, is_cut_where_it_overflows_the_buffer)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=keep"));
	exec = stage_exec_whole(s, "head -c 9000000 /dev/zero & exit 4");
	exec->count_only = true;
	stage_expect_end(exec, 4);
	cr_assert(exec->terminal[0].truncated);
	exec = stage_exec_whole(s, "head -c 9000000 /dev/zero >&2 & exit 4");
	exec->count_only = true;
	stage_expect_end(exec, 4);
	cr_assert(!exec->terminal[0].truncated);
	cr_assert(worker_wait_said(&s->worker, "stderr_dropped=6", STAGE_WAIT_MS), "9000000 less 8 MiB");
	stage_close(s);
}

Test(background, kill_leaves_nothing_at_the_terminal_frame)
{
	static const char *const leave[] = {"sleep %s &", "setsid sleep %s &",
					    "(setsid bash -c 'trap \"\" TERM; sleep %s; :' &)"};
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));
	for (size_t i = 0; i < sizeof leave / sizeof *leave; i++) {
		char command[256];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(command, sizeof command, leave[i], s->mark);
#pragma GCC diagnostic pop
		exec = stage_exec(s, "%s\necho last; exit 5", command);
		stage_expect_end(exec, 5);
		cr_assert_eq(process_count(s->mark), 0, "%zu", i);
		stage_expect_out(exec, "last\n");
		cr_assert_lt(exec->terminal[0].at_ms - exec->sent_ms, 5000u);
	}
	stage_close(s);
}

/* What a kept process inherited lives on over the loss of the stream; what an exec in flight started does
 * not. */
Test(background, survives_the_loss_of_the_stream)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=keep"));
	stage_expect_end(stage_exec(s, "sleep %s >/dev/null 2>&1 &", s->mark), 0);
	relay_cut(s->attached, RELAY_CUT_CLOSE);
	stage_reattach(s);
	cr_assert(process_wait_count(s->relay, s->mark, 1, STAGE_WAIT_MS));
	stage_close(s);
}

/* At most 16 are minded: the oldest goes. */
Test(background, minds_sixteen)
{
	char first[64];
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=keep"));
	snprintf(first, sizeof first, "6%s", s->mark);
	stage_expect_end(stage_exec(s, "sleep %s >/dev/null 2>&1 &", first), 0);
	for (unsigned i = 0; i < 15; i++)
		stage_expect_end(stage_exec(s, "sleep 7%s >/dev/null 2>&1 &", s->mark), 0);
	cr_assert(process_wait_count(s->relay, s->mark, 16, STAGE_WAIT_MS));
	cr_assert(process_wait_count(s->relay, first, 1, STAGE_WAIT_MS));
	stage_expect_end(stage_exec(s, "sleep 7%s >/dev/null 2>&1 &", s->mark), 0);
	cr_assert(process_wait_count(s->relay, first, 0, STAGE_WAIT_MS), "the oldest lives");
	cr_assert(process_wait_count(s->relay, s->mark, 16, STAGE_WAIT_MS));
	stage_close(s);
}

/* A stalled relay must not cost the last lines: time with the window shut does not count. */
Test(background, counts_no_time_in_which_the_relay_did_not_read)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=keep"));
	relay_hold_window(s->attached, true);
	exec = stage_exec(s, "(head -c 300000 /dev/zero; echo last) & exit 1");
	relay_run(s->relay, 7000);
	cr_assert_eq(exec->terminal_count, 0);
	relay_hold_window(s->attached, false);
	stage_expect_end(exec, 1);
	cr_assert_eq(exec->out_bytes, 300005u);
	stage_close(s);
}

/* A limit that the manual names: a Landlock domain cannot be entered again, so what an old warden's slots
 * left is out of the reach of commands of the new one's. Only the worker ends it. */
Test(background, is_out_of_reach_after_the_warden_was_replaced)
{
	pid_t warden;
	struct stage *s;

	if (landlock_abi() < 6)
		cr_skip_test("no scopes of Landlock");
	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=keep", "WORKER_MAX_CONCURRENT=1"));
	stage_expect_end(stage_exec(s, "sleep %s >/dev/null 2>&1 & echo $! >'%s/pid'", s->mark, s->folder),
			 0);
	stage_expect_end(stage_exec(s, "kill -0 $(cat '%s/pid')", s->folder), 0);
	warden = process_child(s->worker.pid, "warden");
	process_kill(warden, SIGKILL);
	cr_assert(process_wait_dead(s->relay, warden, STAGE_WAIT_MS));
	stage_expect_end(stage_exec(s, "kill -KILL $PPID; sleep 1"), -1);
	stage_expect_end(stage_exec(s, "kill -0 $(cat '%s/pid')", s->folder), 1);
	cr_assert_eq(process_count(s->mark), 1);
	stage_close(s);
}
