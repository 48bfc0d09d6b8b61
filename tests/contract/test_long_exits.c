/* The last bytes before an exit are never lost, and neither memory nor descriptors grow.
 * suite-timeout: 900 */
#include "tests/lib/slow.h"
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TestSuite(long_exits, .timeout = 900, .fini = stage_fini);

#define AT_ONCE_MAX 8u

/* Runs command count times, at_once under way at any time, every other one streaming, and checks each. */
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
		if (i < count)
			*at = i % 2 ? stage_exec(s, "%s", command) : stage_exec_whole(s, "%s", command);
		else
			*at = NULL;
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
	struct held h = {process_resident(s->worker.pid), process_descriptors(s->worker.pid, NULL), 0};

	h.processes = process_descendants(s->worker.pid, pids, 64);
	for (size_t i = 0; i < h.processes; i++) {
		h.memory += process_resident(pids[i]);
		h.descriptors += process_descriptors(pids[i], NULL);
	}
	return h;
}

static struct stage *open_counted(void)
{
	static char file[FOLDER_PATH_MAX + 32];
	struct stage *s = stage_prepare();

	snprintf(file, sizeof file, "STATUS_FILE=%s/status", s->folder);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(file));
	stage_reattach(s);
	return s;
}

/* The status file is written once a second. */
static void expect_cached(struct stage *s)
{
	char path[FOLDER_PATH_MAX], text[4096];
	uint64_t deadline = clock_now_ms() + slow_ms(STAGE_WAIT_MS);

	folder_join(path, s->folder, "status");
	while (folder_read(path, text, sizeof text) < 0 || !strstr(text, "\ncached=256\n")) {
		cr_assert(clock_now_ms() < deadline, "%s", text);
		relay_run(s->relay, 100);
	}
}

static void do_not_grow(unsigned count, unsigned at_once)
{
	struct held before, after;
	struct stage *s;

	s = open_counted();
	repeat(s, "true", 2000, at_once, 0, "");
	before = look(s);
	repeat(s, "true", count - 2000, at_once, 0, "");
	relay_run(s->relay, 500);
	after = look(s);
	cr_assert_leq(after.memory, before.memory + (1u << 20), "%zu bytes, before %zu", after.memory,
		      before.memory);
	cr_assert_eq(after.descriptors, before.descriptors, "%zu, before %zu", after.descriptors,
		     before.descriptors);
	cr_assert_eq(after.processes, before.processes);
	if (geteuid() == 0)
		cr_assert_gt(before.descriptors, 0);
	expect_cached(s);
	stage_close(s);
}

Test(long_exits, twenty_thousand_in_a_row_do_not_grow)
{
	do_not_grow(20000, 1);
}

/* row 31 of "right in the field" (test_field.c); the unprivileged run beside it does a fifth. */
Test(long_exits, a_hundred_thousand_side_by_side_do_not_grow)
{
	do_not_grow(geteuid() == 0 ? 100000 : 20000, 4);
}
