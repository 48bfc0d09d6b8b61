/* Rows of "right in the field" that take their time: test_field.c has the list. */
#include "tests/lib/stage.h"

#include <criterion/criterion.h>

TestSuite(long_field, .timeout = 200, .fini = stage_fini);

/* row 3. Nothing else happens: no new slot, no other exec, no byte of output. */
Test(long_field, row_3_a_quiet_command_lives_on)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	exec = stage_exec(s, "sleep 45; echo ok");
	cr_assert(relay_wait_terminals(exec, 1, 60000));
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "ok\n");
	stage_close(s);
}

/* row 6: some 57 s at that rate, and five stops. */
Test(long_field, row_6_a_slow_relay_loses_no_line)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "seq 1 2000000");
	relay_read_rate(s->attached, 256u << 10);
	for (unsigned stop = 1; stop <= 5; stop++) {
		cr_assert(relay_wait_bytes(exec, stop * 2400000u, 60000));
		relay_stall(s->attached, true);
		relay_run(s->relay, 3000);
		relay_stall(s->attached, false);
	}
	cr_assert(relay_wait_terminals(exec, 1, 60000));
	stage_expect_end(exec, 0);
	cr_assert_eq(exec->out.size, 14888896u);
	stage_expect_seq(exec, 2000000);
	stage_close(s);
}

/* The grace of a GOAWAY is over: it is killed and answered on the old connection, and the log says why. */
Test(long_field, a_goaway_ends_what_takes_longer_than_its_grace)
{
	struct relay_worker *old;
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	old = s->attached;
	exec = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(exec, "up\n");
	relay_goaway(old);
	cr_assert(relay_wait_terminals(exec, 1, 45000));
	stage_expect_end(exec, -1);
	cr_assert_eq(exec->terminal[0].worker, old->number);
	cr_assert_geq(exec->terminal[0].at_ms - exec->sent_ms, 30000u);
	cr_assert(worker_wait_said(&s->worker, "msg=ended req_id=1 reason=goaway ", STAGE_WAIT_MS));
	stage_reattach(s);
	stage_close(s);
}
