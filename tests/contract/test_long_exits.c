/* The last bytes before an exit are never lost, and neither memory nor descriptors grow. */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(long_exits, .timeout = 900, .fini = stage_fini);

#define AT_ONCE 8u

/* Runs command count times, AT_ONCE under way at any time, and checks each. */
static void repeat(struct stage *s, const char *command, unsigned count, int32_t code, const char *out)
{
	struct relay_exec *ring[AT_ONCE] = {NULL};

	for (unsigned i = 0; i < count + AT_ONCE; i++) {
		struct relay_exec **at = &ring[i % AT_ONCE];

		if (*at) {
			stage_expect_end(*at, code);
			stage_expect_out(*at, out);
			cr_assert_eq((*at)->terminal_count, 1);
			relay_forget(*at);
		}
		*at = i < count ? stage_exec(s, "%s", command) : NULL;
	}
}

Test(long_exits, two_thousand_lose_no_byte)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	repeat(s, "printf exiting; exit 3", 2000, 3, "exiting");
	stage_close(s);
}

static size_t memory(const struct stage *s)
{
	pid_t netd = worker_netd(&s->worker);

	return process_resident(s->worker.pid) + process_resident(netd);
}

static size_t family(const struct stage *s)
{
	pid_t pids[64];

	return process_descendants(s->worker.pid, pids, 64);
}

Test(long_exits, twenty_thousand_do_not_grow)
{
	size_t memory_before, family_before;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	repeat(s, "true", 2000, 0, "");
	memory_before = memory(s);
	family_before = family(s);
	repeat(s, "true", 18000, 0, "");
	relay_run(s->relay, 500);
	cr_assert_leq(memory(s), memory_before + (1u << 20));
	cr_assert_eq(family(s), family_before);
	stage_close(s);
}
