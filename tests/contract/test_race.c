/* The race among real addresses of loopback: 127.0.0.1, .2, .3 … may each listen, refuse or be deaf on one
 * port. */
#include "netd/race.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/loop.h"
#include "tests/lib/peer.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct field {
	struct loop loop;
	struct race race;
	uint16_t port;
	bool over;
	int fd;
	char winner[ADDRESS_TEXT];
	uint64_t started_ms;
	uint64_t ended_ms;
};

static void over(void *owner, int fd, const struct address *to)
{
	struct field *f = owner;

	cr_assert_not(f->over);
	race_stop(&f->race);
	f->over = true;
	f->fd = fd;
	f->ended_ms = clock_now_ms();
	if (to)
		address_format(to, f->winner);
}

static struct address literal(const char *text)
{
	struct address a;

	cr_assert_eq(address_parse(text, &a), 0);
	return a;
}

/* Listens at text:f->port, which all share. */
static int listen_at(struct field *f, const char *text)
{
	struct address a = literal(text);
	socklen_t size = address_size(&a);
	int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address_set_port(&a, f->port);
	cr_assert_eq(bind(fd, &a.any, size), 0);
	cr_assert_eq(listen(fd, 8), 0);
	return fd;
}

static void start(struct field *f)
{
	cr_assert_eq(loop_init(&f->loop), 0);
	race_init(&f->race, &f->loop, f->port, NULL, over, f);
	f->started_ms = clock_now_ms();
}

static void add(struct field *f, const char *text, bool complete)
{
	struct address a = literal(text);

	race_add(&f->race, &a, 1, complete);
}

static void run(struct field *f)
{
	while (!f->over)
		cr_assert_eq(loop_pass(&f->loop, 5000), 0);
	cr_assert_null(f->loop.timers);
	cr_assert_eq(f->race.pending, 0);
	loop_close(&f->loop);
	fd_close(&f->fd);
}

static void expect_winner(const struct field *f, const char *ip)
{
	char text[ADDRESS_TEXT];

	snprintf(text, sizeof text, "%s:%u", ip, f->port);
	cr_assert_str_eq(f->winner, text);
}

Test(race, a_deaf_first_address_costs_the_stagger, .timeout = 20)
{
	struct field f = {.port = peer_port()};

	peer_deaf("127.0.0.1", &f.port);
	listen_at(&f, "127.0.0.2");
	start(&f);
	add(&f, "127.0.0.1", false);
	add(&f, "127.0.0.2", true);
	run(&f);
	expect_winner(&f, "127.0.0.2");
	cr_assert_geq(f.ended_ms - f.started_ms, RACE_STAGGER_MS - 1);
}

Test(race, a_refusal_starts_the_next_at_once, .timeout = 20)
{
	struct field f = {.port = peer_port()};

	listen_at(&f, "127.0.0.3");
	start(&f);
	add(&f, "127.0.0.1", false);
	add(&f, "127.0.0.2", false);
	add(&f, "127.0.0.3", true);
	while (!f.over && !f.race.stagger.armed)
		loop_pass(&f.loop, 5000);
	run(&f);
	expect_winner(&f, "127.0.0.3");
	cr_assert_not_null(strstr(f.race.text, "127.0.0.2"), "%s", f.race.text);
}

Test(race, a_late_answer_of_the_first_may_still_win, .timeout = 20)
{
	struct field f = {.port = peer_port()};

	peer_deaf("127.0.0.2", &f.port);
	listen_at(&f, "127.0.0.1");
	start(&f);
	add(&f, "127.0.0.1", false);
	add(&f, "127.0.0.2", true);
	run(&f);
	expect_winner(&f, "127.0.0.1");
}

Test(race, all_refused_names_each, .timeout = 20)
{
	struct field f = {.port = peer_port()};
	int listener = listen_at(&f, "127.0.0.1");

	close(listener);
	start(&f);
	add(&f, "127.0.0.1", false);
	add(&f, "::1", false);
	add(&f, "127.0.0.2", true);
	run(&f);
	cr_assert_eq(f.fd, -1);
	cr_assert_not_null(strstr(f.race.text, "[::1]"));
	cr_assert_not_null(strstr(f.race.text, "127.0.0.1"));
	cr_assert_not_null(strstr(f.race.text, "127.0.0.2"));
}

Test(race, a_failure_before_the_last_addresses_are_known_is_not_the_end, .timeout = 20)
{
	struct field f = {.port = peer_port()};

	listen_at(&f, "127.0.0.2");
	start(&f);
	add(&f, "::1", false); /* v6 starts at once; nobody listens there */
	while (f.race.pending > 0)
		cr_assert_eq(loop_pass(&f.loop, 5000), 0);
	cr_assert_not(f.over);
	add(&f, "127.0.0.2", true);
	run(&f);
	expect_winner(&f, "127.0.0.2");
}

Test(race, v4_alone_waits_a_moment_for_v6, .timeout = 20)
{
	struct field f = {.port = peer_port()};

	listen_at(&f, "127.0.0.2");
	start(&f);
	add(&f, "127.0.0.2", false);
	cr_assert_eq(f.race.pending, 0);
	cr_assert(f.race.resolution.armed);
	run(&f);
	expect_winner(&f, "127.0.0.2");
	cr_assert_geq(f.ended_ms - f.started_ms, RACE_AAAA_DELAY_MS - 1);
}

Test(race, v6_in_time_goes_first, .timeout = 20)
{
	struct field f = {.port = peer_port()};

	listen_at(&f, "::1");
	listen_at(&f, "127.0.0.2");
	start(&f);
	add(&f, "127.0.0.2", false);
	add(&f, "::1", true);
	cr_assert_not(f.race.resolution.armed);
	run(&f);
	expect_winner(&f, "[::1]");
}

Test(race, stop_closes_all_and_notes_who_did_not_answer, .timeout = 20)
{
	struct field f = {.port = peer_port()};

	peer_deaf("127.0.0.1", &f.port);
	start(&f);
	add(&f, "127.0.0.1", true);
	cr_assert_eq(f.race.pending, 1);
	race_stop(&f.race);
	cr_assert_eq(f.race.pending, 0);
	cr_assert_not(f.over);
	cr_assert_null(f.loop.timers);
	cr_assert_not_null(strstr(f.race.text, "no answer"));
	add(&f, "127.0.0.1", true);
	cr_assert_eq(f.race.pending, 0);
	loop_close(&f.loop);
}

Test(race, nothing_at_all_is_a_failure, .timeout = 20)
{
	struct field f = {.port = peer_port()};

	start(&f);
	race_add(&f.race, NULL, 0, true);
	run(&f);
	cr_assert_eq(f.fd, -1);
}
