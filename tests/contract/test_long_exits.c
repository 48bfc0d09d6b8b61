/* The last bytes before an exit are never lost, and neither memory nor descriptors grow. */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TestSuite(long_exits, .timeout = 900, .fini = stage_fini);

#define AT_ONCE_MAX 8u

/* Runs command count times, at_once under way at any time, and checks each. */
static void repeat(struct stage *s, const char *command, unsigned count, unsigned at_once, int32_t code,
		   const char *out)
{
	struct relay_exec *ring[AT_ONCE_MAX] = {NULL};

	for (unsigned i = 0; i < count + at_once; i++) {
		struct relay_exec **at = &ring[i % at_once];

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
	repeat(s, "printf exiting; exit 3", 2000, AT_ONCE_MAX, 3, "exiting");
	stage_close(s);
}

/* execd, netd, warden, slots: what they hold, in all. */
struct held {
	size_t memory;
	size_t descriptors;
	size_t processes;
};

static struct held look(const struct stage *s)
{
	pid_t pids[64];
	struct held h = {process_resident(s->worker.pid), process_descriptors(s->worker.pid), 0};

	h.processes = process_descendants(s->worker.pid, pids, 64);
	for (size_t i = 0; i < h.processes; i++) {
		h.memory += process_resident(pids[i]);
		h.descriptors += process_descriptors(pids[i]);
	}
	return h;
}

static void twenty_thousand(unsigned at_once)
{
	struct held before, after;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	repeat(s, "true", 2000, at_once, 0, "");
	before = look(s);
	repeat(s, "true", 18000, at_once, 0, "");
	relay_run(s->relay, 500);
	after = look(s);
	cr_assert_leq(after.memory, before.memory + (1u << 20));
	cr_assert_eq(after.descriptors, before.descriptors, "%zu, before %zu", after.descriptors,
		     before.descriptors);
	cr_assert_eq(after.processes, before.processes);
	if (geteuid() == 0)
		cr_assert_gt(before.descriptors, 0);
	stage_close(s);
}

Test(long_exits, twenty_thousand_in_a_row_do_not_grow)
{
	twenty_thousand(1);
}

Test(long_exits, twenty_thousand_side_by_side_do_not_grow)
{
	twenty_thousand(4);
}
