/* Dialling by the whole worker in a world of its own: names that change between two dials, addresses that are
 * dead, name servers that say half. What the dialer does alone is in test_dial.c, test_race.c and
 * test_resolve_dns.c. */
#include "common/clock.h"
#include "tests/lib/dns.h"
#include "tests/lib/peer.h"
#include "tests/lib/stage.h"
#include "tests/lib/world.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(dial_worker, .timeout = 60, .fini = stage_fini);

#define NOBODY     "127.0.0.9" /* refuses: nobody listens there */
#define ONE_SERVER "nameserver 127.0.0.1\n"

static void start(struct stage *s, const char *host)
{
	char setting[128];

	snprintf(setting, sizeof setting, "RELAY_ADDR=%s:%u", host, relay_port(s->relay));
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
}

static struct stage *begin(const char *address, const char *host)
{
	struct stage *s = stage_prepare();

	stage_relay(s, &(struct relay_options){.token = "token", .address = address});
	start(s, host);
	return s;
}

static void enter(const char *hosts, const char *resolv_conf)
{
	world_need();
	cr_assert_eq(world_enter(hosts, resolv_conf), 0);
}

static void need_v6(void)
{
	if (access("/proc/sys/net/ipv6", F_OK) < 0)
		cr_skip_test("no IPv6");
}

static void expect_work(struct stage *s)
{
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 3"), 3);
}

Test(dial_worker, reads_the_hosts_file_at_each_dial)
{
	static const char after[] = "127.0.0.1 relay.test\n";
	struct stage *s;

	enter(NOBODY " relay.test\n", "");
	s = begin("127.0.0.1", "relay.test");
	cr_assert(worker_wait_said(&s->worker, NOBODY ":", STAGE_WAIT_MS));
	folder_write("/etc/hosts", after, strlen(after));
	expect_work(s);
	stage_close(s);
}

/* No such name yet, then one with an address where nobody listens any more, then the right one. */
Test(dial_worker, asks_for_the_name_at_each_dial)
{
	static const struct dns_entry no_such_name[] = {
	    {"relay.test", DNS_A, {NULL}, DNS_NXDOMAIN, false, false},
	    {"relay.test", DNS_AAAA, {NULL}, DNS_NXDOMAIN, false, false},
	    {0}};
	struct dns_entry *known;
	struct stage *s;

	enter("127.0.0.1 localhost\n", ONE_SERVER);
	known = dns_share(no_such_name);
	dns_start(known, 53);
	s = begin("127.0.0.1", "relay.test");
	cr_assert(worker_wait_said(&s->worker, "reason=\"cannot resolve relay.test: no such name\"",
				   STAGE_WAIT_MS));
	known[0].addresses[0] = NOBODY;
	known[0].rcode = known[1].rcode = 0;
	cr_assert(worker_wait_said(&s->worker, "reason=\"" NOBODY ":", STAGE_WAIT_MS));
	known[0].addresses[0] = "127.0.0.1";
	expect_work(s);
	dns_stop();
	stage_close(s);
}

/* The first neither answers nor refuses: without the race its SYNs would use up the 20 s of the handshake. */
Test(dial_worker, passes_over_a_first_address_that_is_dead)
{
	static const struct dns_entry entries[] = {
	    {"relay.test", DNS_A, {NOBODY, "127.0.0.1"}, 0, false, false},
	    {"relay.test", DNS_AAAA, {NULL}, 0, false, false},
	    {0},
	};
	uint16_t port;
	struct stage *s;

	enter("127.0.0.1 localhost\n", ONE_SERVER);
	dns_start(entries, 53);
	s = stage_prepare();
	port = relay_port(s->relay);
	peer_deaf(NOBODY, &port);
	start(s, "relay.test");
	expect_work(s);
	cr_assert(!worker_said(&s->worker, "dial failed"));
	dns_stop();
	stage_close(s);
}

/* IPv6 that leads nowhere is the commonest of dead addresses. */
Test(dial_worker, passes_over_ipv6_that_is_dead)
{
	uint16_t port;
	struct stage *s;

	need_v6();
	enter("::1 relay.test\n127.0.0.1 relay.test\n", "");
	s = stage_prepare();
	port = relay_port(s->relay);
	peer_deaf("::1", &port);
	start(s, "relay.test");
	expect_work(s);
	cr_assert(!worker_said(&s->worker, "dial failed"));
	stage_close(s);
}

Test(dial_worker, takes_an_ipv6_address)
{
	struct stage *s;

	need_v6();
	s = begin("::1", "[::1]");
	expect_work(s);
	stage_close(s);
}

Test(dial_worker, takes_a_name_that_has_ipv6_alone)
{
	static const struct dns_entry entries[] = {{"relay.test", DNS_A, {NULL}, 0, false, false},
						   {"relay.test", DNS_AAAA, {"::1"}, 0, false, false},
						   {0}};
	struct stage *s;

	need_v6();
	enter("127.0.0.1 localhost\n", ONE_SERVER);
	dns_start(entries, 53);
	s = begin("::1", "relay.test");
	expect_work(s);
	dns_stop();
	stage_close(s);
}

/* A name server that never answers for AAAA, as some do: the A that came goes after 50 ms, and does not wait
 * for the 14 s in which that question dies. */
Test(dial_worker, does_not_wait_for_an_aaaa_that_never_comes)
{
	static const struct dns_entry entries[] = {{"relay.test", DNS_A, {"127.0.0.1"}, 0, false, false},
						   {"relay.test", DNS_AAAA, {NULL}, 0, true, false},
						   {0}};
	struct stage *s;

	enter("127.0.0.1 localhost\n", ONE_SERVER);
	dns_start(entries, 53);
	s = begin("127.0.0.1", "relay.test");
	expect_work(s);
	cr_assert(!worker_said(&s->worker, "dial failed"));
	dns_stop();
	stage_close(s);
}

/* It has a socket that nobody reads; its turn is over after 2 s. */
Test(dial_worker, passes_over_a_name_server_that_is_silent)
{
	static const struct dns_entry entries[] = {{"relay.test", DNS_A, {"127.0.0.1"}, 0, false, false},
						   {"relay.test", DNS_AAAA, {NULL}, 0, false, false},
						   {0}};
	struct sockaddr_in silent = {.sin_family = AF_INET, .sin_port = htons(53)};
	struct stage *s;
	int fd;

	enter("127.0.0.1 localhost\n", "nameserver 127.0.0.2\nnameserver 127.0.0.1\n");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	inet_pton(AF_INET, "127.0.0.2", &silent.sin_addr);
	cr_assert_eq(bind(fd, (struct sockaddr *)&silent, sizeof silent), 0);
	dns_start(entries, 53);
	s = begin("127.0.0.1", "relay.test");
	expect_work(s);
	cr_assert(!worker_said(&s->worker, "dial failed"));
	dns_stop();
	close(fd);
	stage_close(s);
}

/* Another relay at the first address, which refuses the worker's token: each attempt connects there, and
 * would for ever. */
Test(dial_worker, begins_after_the_address_that_refused)
{
	struct relay *other;
	struct stage *s;

	need_v6();
	s = stage_prepare();
	other = relay_start(
	    &(struct relay_options){.address = "::1", .port = relay_port(s->relay), .token = "another"});
	cr_assert_not_null(other);
	start(s, "localhost");
	for (uint64_t until = clock_now_ms() + STAGE_WAIT_MS;
	     !relay_attached(s->relay) && clock_now_ms() < until;) {
		relay_run(other, 10);
		relay_run(s->relay, 10);
	}
	cr_assert(worker_said(&s->worker, "is the token right for this id"));
	expect_work(s);
	/* It was of use, so it comes first now. */
	relay_cut(s->attached, RELAY_CUT_CLOSE);
	expect_work(s);
	cr_assert_eq(worker_said_times(&s->worker, "is the token right for this id"), 1);
	relay_stop(other);
	stage_close(s);
}
