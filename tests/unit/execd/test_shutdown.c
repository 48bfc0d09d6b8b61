/* The way out, against fakes of all that has to end and a fake clock. */
#include "execd/shutdown.h"

#include "common/clock.h"
#include "common/limits.h"
#include "execd/execs.h"
#include "execd/netd_proc.h"
#include "execd/slots.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static uint64_t now_ms = 5000;
static struct loop loop;
static void (*idle)(void *owner);
static uint32_t drain_ms = UINT32_MAX;
static unsigned shutdowns, leaves, kills, kill_alls, stops;
static bool netd_gone, slots_gone;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

void execs_shutdown(uint32_t drain, void (*on_idle)(void *owner), void *owner)
{
	(void)owner;
	drain_ms = drain;
	idle = on_idle;
	shutdowns++;
}

const struct execs_counters *execs_counters(void)
{
	static const struct execs_counters none;

	return &none;
}

void netd_proc_stop_dialling(void)
{
	stops++;
}

void netd_proc_leave(void)
{
	leaves++;
}

void netd_proc_kill(void)
{
	kills++;
}

bool netd_proc_gone(void)
{
	return netd_gone;
}

void slots_kill_all(void)
{
	kill_alls++;
}

bool slots_all_gone(void)
{
	return slots_gone;
}

static void setup(void)
{
	cr_assert_eq(loop_init(&loop), 0);
}

TestSuite(shutdown, .init = setup, .timeout = 20);

static void advance(uint64_t ms)
{
	now_ms += ms;
	cr_assert_eq(loop_pass(&loop, 0), 0);
}

static void expect_done(int exit_code)
{
	int got = -1;

	cr_assert(shutdown_done(&got));
	cr_assert_eq(got, exit_code);
}

static bool done(void)
{
	int ignored;

	return shutdown_done(&ignored);
}

Test(shutdown, has_not_begun_by_itself)
{
	cr_assert_not(shutdown_begun());
	cr_assert_not(done());
	advance(100000);
	cr_assert_not(done());
}

Test(shutdown, ends_when_all_is_answered_and_gone)
{
	shutdown_begin(&loop, 7000, 0);
	cr_assert(shutdown_begun());
	cr_assert_eq(drain_ms, 7000);
	cr_assert_eq(stops, 1);
	cr_assert_eq(leaves, 0);
	netd_gone = slots_gone = true;
	cr_assert_not(done(), "answers are still owed");
	netd_gone = slots_gone = false;
	idle(NULL);
	cr_assert_eq(leaves, 1);
	cr_assert_eq(kill_alls, 1);
	cr_assert_not(done());
	netd_gone = true;
	cr_assert_not(done());
	slots_gone = true;
	expect_done(0);
}

Test(shutdown, does_not_wait_for_a_netd_that_stays)
{
	shutdown_begin(&loop, 0, 0);
	idle(NULL);
	slots_gone = true;
	advance(999);
	cr_assert_eq(kills, 0);
	advance(1);
	cr_assert_eq(kills, 1);
}

Test(shutdown, is_over_within_its_time_whatever_stays)
{
	shutdown_begin(&loop, 0, 0);
	advance(LIMIT_SHUTDOWN_MS - 301);
	cr_assert_not(done());
	advance(1);
	expect_done(0);
	cr_assert_eq(kills, 1);
}

Test(shutdown, waits_as_long_as_the_drain_more)
{
	shutdown_begin(&loop, 60000, 0);
	advance(60000 + LIMIT_SHUTDOWN_MS - 301);
	cr_assert_not(done());
	advance(1);
	cr_assert(done());
}

/* What no kill reaches is no reason to drain on. */
Test(shutdown, has_no_drain_left_once_all_is_answered)
{
	shutdown_begin(&loop, 3600000, 0);
	advance(10000);
	idle(NULL);
	netd_gone = true;
	advance(LIMIT_SHUTDOWN_MS - 301);
	cr_assert_not(done());
	advance(1);
	expect_done(0);
}

Test(shutdown, gets_no_more_time_by_being_asked_again_and_again)
{
	shutdown_begin(&loop, 0, 0);
	for (unsigned ms = 0; ms < LIMIT_SHUTDOWN_MS - 300; ms += 100) {
		cr_assert_not(done());
		advance(100);
		shutdown_begin(&loop, 0, 0);
	}
	expect_done(0);
}

Test(shutdown, ends_the_drain_when_it_is_asked_twice)
{
	shutdown_begin(&loop, 60000, 0);
	advance(1000);
	shutdown_begin(&loop, 0, 0);
	cr_assert_eq(shutdowns, 2);
	cr_assert_eq(drain_ms, 0);
	advance(LIMIT_SHUTDOWN_MS - 301);
	cr_assert_not(done());
	advance(1);
	cr_assert(done());
}

Test(shutdown, answered_already_gets_no_more_time_by_a_second_one)
{
	shutdown_begin(&loop, 0, 0);
	idle(NULL);
	advance(LIMIT_SHUTDOWN_MS - 301);
	shutdown_begin(&loop, 0, 0);
	cr_assert_eq(leaves, 1);
	advance(1);
	cr_assert(done());
}

Test(shutdown, hands_on_the_exit_code)
{
	shutdown_begin(&loop, 0, 1);
	idle(NULL);
	netd_gone = slots_gone = true;
	expect_done(1);
}
