/* A watch of the loop, on a clock of the test's. */
#include "common/clock.h"
#include "common/loop.h"

#include <criterion/criterion.h>
#include <unistd.h>

static uint64_t now_ms = 1000;
static struct loop loop;
static struct loop_watch watch;
static unsigned silences;
static int ends[2];

uint64_t clock_now_ms(void)
{
	return now_ms;
}

static void silent(struct loop_watch *w, uint64_t now)
{
	cr_assert_eq(w, &watch);
	cr_assert_eq(now, now_ms);
	silences++;
}

static void setup(void)
{
	cr_assert_eq(loop_init(&loop), 0);
	cr_assert_eq(pipe(ends), 0);
	watch.silent = silent;
	watch.fd = ends[0];
}

TestSuite(watch, .init = setup, .timeout = 20);

static void advance(uint64_t ms)
{
	while (ms-- > 0) {
		now_ms++;
		cr_assert_eq(loop_pass(&loop, 0), 0);
	}
}

static void jump(uint64_t ms)
{
	now_ms += ms;
	cr_assert_eq(loop_pass(&loop, 0), 0);
}

Test(watch, is_over_after_its_time)
{
	static const uint32_t times[] = {1, 9, 10, 11, 1000, 20003};

	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		silences = 0;
		loop_watch_set(&loop, &watch, times[i]);
		advance(times[i] - 1);
		cr_assert_eq(silences, 0, "%u", times[i]);
		advance(1);
		cr_assert_eq(silences, 1, "%u", times[i]);
		advance(100);
		cr_assert_eq(silences, 1, "%u: told twice", times[i]);
	}
}

Test(watch, begins_anew)
{
	loop_watch_set(&loop, &watch, 100);
	advance(99);
	loop_watch_set(&loop, &watch, 100);
	advance(99);
	cr_assert_eq(silences, 0);
	advance(1);
	cr_assert_eq(silences, 1);
}

Test(watch, can_be_stopped)
{
	loop_watch_stop(&watch);
	loop_watch_set(&loop, &watch, 100);
	advance(50);
	loop_watch_stop(&watch);
	advance(100);
	cr_assert_eq(silences, 0);
}

Test(watch, loses_one_tick_at_most_by_a_jump_of_the_clock)
{
	loop_watch_set(&loop, &watch, 1000);
	jump(3600000);
	advance(899);
	cr_assert_eq(silences, 0);
	advance(1);
	cr_assert_eq(silences, 1);
}

/* In which we read it. */
Test(watch, gives_who_is_not_read_yet_a_tick_more)
{
	loop_watch_set(&loop, &watch, 1000);
	cr_assert_eq(write(ends[1], "x", 1), 1);
	jump(3600000);
	advance(900 + 99);
	cr_assert_eq(silences, 0);
	loop_watch_set(&loop, &watch, 1000);
	advance(1000 + 99);
	cr_assert_eq(silences, 0);
	advance(1);
	cr_assert_eq(silences, 1);
}
