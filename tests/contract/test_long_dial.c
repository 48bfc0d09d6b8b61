/* A name server that does not answer at all: its questions die after 14 s, within the 20 s of the handshake.
 */
#include "tests/lib/dns.h"
#include "tests/lib/stage.h"
#include "tests/lib/world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

TestSuite(long_dial, .timeout = 120, .fini = stage_fini);

Test(long_dial, to_a_silent_name_server_is_one_clear_line_and_another_dial)
{
	static const struct dns_entry silent[] = {{"relay.test", DNS_A, {"127.0.0.1"}, 0, true, false},
						  {"relay.test", DNS_AAAA, {NULL}, 0, true, false},
						  {0}};
	struct dns_entry *known;
	char setting[64];
	struct stage *s;

	world_need();
	cr_assert_eq(world_enter("127.0.0.1 localhost\n", "nameserver 127.0.0.1\n"), 0);
	known = dns_share(silent);
	dns_start(known, 53);
	s = stage_prepare();
	snprintf(setting, sizeof setting, "RELAY_ADDR=relay.test:%u", relay_port(s->relay));
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
	cr_assert(worker_wait_said(&s->worker, "backoff_ms=", 30000));
	cr_assert(worker_said(&s->worker, "class=resolve"));
	cr_assert(
	    worker_said(&s->worker, "reason=\"cannot resolve relay.test: the name servers do not answer\""));
	cr_assert(worker_said(&s->worker, "backoff_max_ms=1000"));
	known[0].silent = known[1].silent = false;
	s->attached = relay_wait_attached(s->relay, 0, 40000);
	cr_assert(s->attached);
	stage_expect_end(stage_exec(s, "exit 3"), 3);
	dns_stop();
	stage_close(s);
}
