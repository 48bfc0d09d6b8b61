/* row 30, what takes long: the wall clock jumps an hour back and forward all the time (wall_clock.c). */
#include "tests/lib/dns.h"
#include "tests/lib/stage.h"
#include "tests/lib/world.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <unistd.h>

TestSuite(long_clock, .timeout = 180, .fini = stage_fini);

/* A PING after 30 s of silence, lost 10 s later: neither at once nor never. */
Test(long_clock, row_30_jumps_move_no_keepalive)
{
	uint64_t from;
	struct stage *s;

	s = stage_prepare();
	relay_manners(s->relay)->no_ping_ack = true;
	worker_start_program(&s->worker, s->relay, "tests/clock/execd", WORKER_SETTINGS());
	stage_reattach(s);
	from = clock_now_ms();
	cr_assert(relay_wait_gone(s->attached, 90000));
	cr_assert_geq(clock_now_ms() - from, 35000u);
	cr_assert_geq(s->attached->pings, 1);
	cr_assert_not(worker_said(&s->worker, "wall clock"), "somebody asked for it");
	stage_close(s);
}

/* c-ares asks three times, after 2, 4 and 8 s: a jump in a query makes it neither give up nor wait for ever.
 */
Test(long_clock, row_30_jumps_move_no_query)
{
	static const struct dns_entry silent[] = {{"relay.test", DNS_A, {NULL}, 0, true, false},
						  {"relay.test", DNS_AAAA, {NULL}, 0, true, false},
						  {0}};
	uint64_t from;
	struct stage *s;

	if (geteuid() != 0 || world_enter("127.0.0.1 localhost\n", "nameserver 127.0.0.1\n") < 0)
		cr_skip_test("a world of its own needs root");
	s = stage_prepare();
	dns_start(silent, 53);
	from = clock_now_ms();
	worker_start_program(&s->worker, s->relay, "tests/clock/execd",
			     WORKER_SETTINGS("RELAY_ADDR=relay.test:8443"));
	cr_assert(worker_wait_said(&s->worker, "dial failed", 60000));
	cr_assert_geq(clock_now_ms() - from, 10000u);
	cr_assert_not(worker_said(&s->worker, "wall clock"), "somebody asked for it");
	dns_stop();
	stage_close(s);
}
