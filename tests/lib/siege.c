#include "tests/lib/siege.h"

#include "common/clock.h"
#include "common/fd.h"
#include "tests/lib/folder.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/lib/slow.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKERS    12
#define READY      "hostile ready"
#define SETTLES_MS 5000
#define SLOTS      4    /* WORKER_MAX_CONCURRENT is not set */
#define MEMORY_KIB 4096 /* pages of tables that are touched only now */

struct measure {
	size_t processes;
	size_t descriptors; /* 0 where we may not look */
	long data_kib;
	long resident_kib;
};

static struct camp {
	const struct siege_row *row; /* under way */
	uint64_t deadline_ms;
	struct measure before;
	struct program p;
	char folder[FOLDER_PATH_MAX];
	int orders; /* the FIFO; 0: this one is not used */
	bool done;
} camps[WORKERS];

static long kib(pid_t pid, const char *key)
{
	return strtol(program_status(pid, key), NULL, 10);
}

static struct measure measure(const struct camp *c)
{
	pid_t below[64];

	return (struct measure){.processes = process_descendants(c->p.pid, below, 64),
				.descriptors = process_descriptors(c->p.pid, NULL),
				.data_kib = kib(c->p.pid, "VmData"),
				.resident_kib = kib(c->p.pid, "VmRSS")};
}

/* Its first netd may be ready before the last of its slots is, or is known to it. */
static struct measure measure_at_rest(const struct camp *c)
{
	uint64_t end = clock_now_ms() + slow_ms(SETTLES_MS);
	struct measure m;

	while (m = measure(c),
	       m.processes != SLOTS + 2 ||
		   (m.descriptors > 0 && process_descriptors(c->p.pid, "anon_inode:[pidfd]") != SLOTS)) {
		cr_assert_lt(clock_now_ms(), end, "%zu processes: %s", m.processes, c->p.said);
		usleep(10000);
	}
	return m;
}

static const char *name(const struct camp *c)
{
	return c->row ? c->row->name : "start";
}

static void camp_start(struct camp *c)
{
	char execd[FOLDER_PATH_MAX], netd[FOLDER_PATH_MAX], orders[FOLDER_PATH_MAX],
	    image[FOLDER_PATH_MAX + 16];

	*c = (struct camp){0};
	folder_make(c->folder);
	cr_assert_eq(chmod(c->folder, 0777), 0);
	folder_join(execd, c->folder, "execd");
	folder_join(netd, c->folder, "netd");
	folder_join(orders, c->folder, "orders");
	folder_copy(program_built("execd"), execd, 0755);
	folder_copy(program_built("tests/hostile_netd"), netd, 0755);
	cr_assert_eq(mkfifo(orders, 0600), 0);
	cr_assert_eq(chmod(orders, 0666), 0);
	c->orders = open(orders, O_RDWR | O_CLOEXEC);
	cr_assert_geq(c->orders, 0);
	snprintf(image, sizeof image, "SANDBOX_IMAGE=%s", c->folder);
	program_start(&c->p, (const char *const[]){execd, NULL},
		      (const char *const[]){"PATH=/usr/bin:/bin", "SANDBOX_ID=t", image, NULL}, NULL);
}

static void give(struct camp *c, const struct siege_row *row, unsigned row_ms)
{
	char line[256], early[FOLDER_PATH_MAX];
	int n;

	c->p.used = 0;
	c->p.said[0] = '\0';
	c->row = row;
	c->deadline_ms = clock_now_ms() + slow_ms(row_ms);
	if (row->early) {
		folder_join(early, c->folder, "early");
		n = snprintf(line, sizeof line, "%s %s\n", row->early, row->order);
		folder_write(early, line, (size_t)n);
		cr_assert_eq(chmod(early, 0644), 0);
	}
	n = snprintf(line, sizeof line, "%s\n", row->early ? "exit 0" : row->order);
	cr_assert_eq(write(c->orders, line, (size_t)n), n);
}

static unsigned times(const struct camp *c, const char *text)
{
	unsigned count = 0;

	for (const char *at = c->p.said; (at = strstr(at, text)); at++)
		count++;
	return count;
}

static void expect_said(const struct camp *c)
{
	char violation[128];

	cr_assert_eq(times(c, "broke the rules of the channel"), c->row->violation != NULL, "%s: %s", name(c),
		     c->p.said);
	if (c->row->violation) {
		snprintf(violation, sizeof violation,
			 strchr(c->row->violation, ' ') ? "violation=\"%s\"" : "violation=%s",
			 c->row->violation);
		cr_assert(strstr(c->p.said, violation), "%s: not %s in %s", name(c), violation, c->p.said);
		/* pid=0: it was dead by then. */
		cr_assert(strstr(c->p.said, "signal=9") || strstr(c->p.said, "pid=0"), "%s: %s", name(c),
			  c->p.said);
	}
	for (size_t i = 0; i < 3 && c->row->said[i]; i++)
		cr_assert(strstr(c->p.said, c->row->said[i]), "%s: not \"%s\" in %s", name(c),
			  c->row->said[i], c->p.said);
	cr_assert(!strstr(c->p.said, "hostile failed"), "%s: %s", name(c), c->p.said);
}

/* Slots that were used up are replaced, so it may take a moment. */
static void expect_as_before(const struct camp *c)
{
	uint64_t end = clock_now_ms() + slow_ms(SETTLES_MS);
	char running[FOLDER_PATH_MAX];
	struct measure now;

	folder_join(running, c->folder, "running");
	cr_assert(process_wait_count(NULL, running, 0, SETTLES_MS), "%s: its command lives", name(c));
	do {
		now = measure(c);
	} while ((now.descriptors != c->before.descriptors || now.processes != c->before.processes) &&
		 clock_now_ms() < end && usleep(10000) == 0);
	cr_assert_eq(now.processes, c->before.processes, "%s: %zu processes, not %zu", name(c), now.processes,
		     c->before.processes);
	cr_assert_eq(now.descriptors, c->before.descriptors, "%s: %zu descriptors, not %zu", name(c),
		     now.descriptors, c->before.descriptors);
	cr_assert_eq(now.data_kib, c->before.data_kib, "%s: %ld KiB of data, not %ld", name(c), now.data_kib,
		     c->before.data_kib);
	cr_assert_leq(now.resident_kib, c->before.resident_kib + MEMORY_KIB, "%s: %ld KiB, not %ld", name(c),
		      now.resident_kib, c->before.resident_kib);
}

/* Its request 1 ran once, and nothing that was never asked for. */
static void expect_ran_once(const struct camp *c)
{
	char path[FOLDER_PATH_MAX], once[16];

	folder_join(path, c->folder, "once");
	cr_assert_eq(folder_read(path, once, sizeof once), 1, "request 1 ran %s", once);
	folder_join(path, c->folder, "never");
	cr_assert_eq(folder_size(path), -1, "%s: ran what was not asked for", name(c));
}

static void camp_end(struct camp *c)
{
	int status = program_wait_exit(&c->p, SETTLES_MS);

	cr_assert_eq(status, 0, "status %x: %s", (unsigned)status, c->p.said);
	fd_close(&c->orders);
	folder_remove(c->folder);
	c->orders = 0;
}

/* The worker's netd is ready: what the last row led to is looked at, and the next is given. */
static void camp_step(struct camp *c, const struct siege_row *next, unsigned row_ms)
{
	if (c->row) {
		cr_assert(strstr(c->p.said, READY " replayed"), "%s: the cache is gone: %s", name(c),
			  c->p.said);
		expect_said(c);
		expect_as_before(c);
		expect_ran_once(c);
	} else {
		cr_assert(strstr(c->p.said, READY " ran"), "%s", c->p.said);
		c->before = measure_at_rest(c);
	}
	c->done = next == NULL;
	if (next)
		give(c, next, row_ms);
}

void siege(const struct siege_row *rows, size_t count, unsigned row_ms)
{
	size_t next = 0, workers = count < WORKERS ? count : WORKERS, done = 0;

	for (size_t i = 0; i < workers; i++) {
		camp_start(&camps[i]);
		camps[i].deadline_ms = clock_now_ms() + slow_ms(row_ms);
	}
	while (done < workers) {
		for (size_t i = 0; i < workers; i++) {
			struct camp *c = &camps[i];

			if (c->done)
				continue;
			while (next < count && rows[next].root_only && geteuid() != 0)
				next++;
			if (program_wait_said(&c->p, READY, 1))
				camp_step(c, next < count ? &rows[next++] : NULL, row_ms);
			else
				cr_assert_lt(clock_now_ms(), c->deadline_ms, "%s: no netd comes after it: %s",
					     name(c), c->p.said);
			done += c->done;
		}
	}
	/* Their netds do not leave when asked: all wait for the same second. */
	for (size_t i = 0; i < workers; i++)
		process_kill(camps[i].p.pid, SIGTERM);
	for (size_t i = 0; i < workers; i++)
		camp_end(&camps[i]);
}

void siege_leave_in(const char *order, const char *said)
{
	const struct siege_row row = {.name = order, .order = order};
	struct camp *c = &camps[0];

	camp_start(c);
	cr_assert(program_wait_said(&c->p, READY " ran", PROGRAM_WAIT_MS), "%s", c->p.said);
	give(c, &row, PROGRAM_WAIT_MS);
	cr_assert(program_wait_said(&c->p, said, PROGRAM_WAIT_MS), "%s", c->p.said);
	process_kill(c->p.pid, SIGTERM);
	camp_end(c);
}

void siege_fini(void)
{
	for (size_t i = 0; i < WORKERS; i++) {
		struct camp *c = &camps[i];

		if (!c->orders)
			continue;
		program_kill(&c->p);
		fd_close(&c->orders);
		folder_remove(c->folder);
		c->orders = 0;
	}
}
