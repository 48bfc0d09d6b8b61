/* contract.md 10: five hundred workers that lose one relay at once come back to it, and not together: what
 * each of them chose to wait is in its log.
 * suite-timeout: 600 */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(long_storm, .timeout = 540, .fini = stage_fini);

#define WORKERS       500u
#define AT_ONCE       20u /* that start side by side: it is not their start that is tested */
#define PROCESSES     5u  /* execd, warden, slot, netd; and the next netd beside one that ends */
#define DESCRIPTORS   3u  /* for each, of the test's: its log, its pidfd, its connection */
#define WORKER_MEMORY (4u << 20)
#define BIN_MS        100u
#define BINS          11u /* of a first wait, 0 to 1000 ms */

static struct worker others[WORKERS]; /* 0 is the stage's own */

static struct worker *worker_of(struct stage *s, unsigned i)
{
	return i == 0 ? &s->worker : &others[i];
}

/* The number behind key in a file; UINT64_MAX where there is none ("max"). */
static uint64_t number_in(const char *path, const char *key)
{
	static char text[8192];
	const char *at;

	if (folder_read(path, text, sizeof text) < 0)
		return UINT64_MAX;
	at = strstr(text, key);
	at = at ? at + strlen(key) + strspn(at + strlen(key), " ") : "";
	return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : UINT64_MAX;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void need(const char *what, uint64_t is, uint64_t wanted)
{
	if (is < wanted)
		cr_skip_test("%s: %llu are needed, %llu are allowed here", what, (unsigned long long)wanted,
			     (unsigned long long)is);
}

/* Looks at the machine before it is used: five hundred that half start would be everybody's trouble. */
static void need_room(void)
{
	struct rlimit files, processes;
	uint64_t limit;

	getrlimit(RLIMIT_NOFILE, &files);
	need("descriptors", files.rlim_max, WORKERS * DESCRIPTORS + 200);
	files.rlim_cur = files.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	need("descriptors of the machine",
	     number_in("/proc/sys/fs/file-max", "") - number_in("/proc/sys/fs/file-nr", ""), WORKERS * 100);

	getrlimit(RLIMIT_NPROC, &processes);
	limit = geteuid() == 0 ? UINT64_MAX : processes.rlim_cur;
	limit = at_most(limit, number_in("/sys/fs/cgroup/pids.max", ""));
	limit = at_most(limit, number_in("/sys/fs/cgroup/pids/pids.max", ""));
	limit = at_most(limit, number_in("/proc/sys/kernel/threads-max", ""));
	limit = at_most(limit, number_in("/proc/sys/kernel/pid_max", ""));
	need("processes", limit, WORKERS * PROCESSES + 300);

	limit = number_in("/proc/meminfo", "MemAvailable:") * 1024;
	limit = at_most(limit, number_in("/sys/fs/cgroup/memory.max", ""));
	limit = at_most(limit, number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", ""));
	need("bytes of memory", limit, (uint64_t)WORKERS * WORKER_MEMORY);
}

/* Workers that are attached, or have logged that they lost their stream. */
struct progress {
	struct stage *s;
	unsigned count;
	unsigned wanted;
	unsigned cut; /* the relay's number of the last Attach before the cut */
};

static unsigned attached_after(struct relay *relay, unsigned number)
{
	unsigned count = 0;

	for (const struct relay_worker *w = relay_attached(relay); w && w->number > number; w = w->next)
		count += w->stream != NULL;
	return count;
}

static bool are_attached(const void *arg)
{
	const struct progress *p = arg;

	return attached_after(p->s->relay, p->cut) >= p->wanted;
}

static bool first_wait(const struct worker *worker, uint64_t *ret_ms)
{
	static const char said[] = "msg=\"stream lost\"", key[] = " backoff_ms=";
	const char *at = (const char *)worker->log.at, *end = at + worker->log.size;
	const char *line = at ? memmem(at, (size_t)(end - at), said, strlen(said)) : NULL;
	const char *value = line ? memmem(line, (size_t)(end - line), key, strlen(key)) : NULL;

	if (!value || !memchr(value, '\n', (size_t)(end - value)))
		return false;
	*ret_ms = strtoull(value + strlen(key), NULL, 10);
	return true;
}

static bool all_have_chosen(const void *arg)
{
	struct progress *p = *(struct progress *const *)arg;
	uint64_t ms;

	while (p->count < WORKERS && first_wait(worker_of(p->s, p->count), &ms))
		p->count++;
	return p->count == WORKERS;
}

static void start_all(struct progress *p)
{
	char id[32];

	for (unsigned i = 0; i < WORKERS; i++) {
		snprintf(id, sizeof id, "SANDBOX_ID=storm-%03u", i);
		worker_start(worker_of(p->s, i), p->s->relay, WORKER_SETTINGS(id, "WORKER_MAX_CONCURRENT=1"));
		p->wanted = i + 1 > AT_ONCE ? i + 1 - AT_ONCE : 0;
		cr_assert(relay_wait(p->s->relay, are_attached, p, 60000), "%u are not attached", p->wanted);
	}
	p->wanted = WORKERS;
	cr_assert(relay_wait(p->s->relay, are_attached, p, 60000), "not all are attached");
}

/* The relay ends, and is back when all have chosen how long they wait. */
static void lose_the_relay(struct progress *p)
{
	struct relay_worker *next;

	p->cut = relay_attached(p->s->relay)->number;
	relay_deaf(p->s->relay);
	for (struct relay_worker *w = relay_attached(p->s->relay); w; w = next) {
		next = w->next;
		if (w->stream)
			relay_cut(w, RELAY_CUT_RESET);
	}
	p->count = 0;
	cr_assert(relay_wait(p->s->relay, all_have_chosen, &p, 60000), "%u know of the loss", p->count);
	cr_assert_eq(relay_listen(p->s->relay), 0);
}

static void check_waits(struct stage *s)
{
	unsigned bins[BINS] = {0};

	for (unsigned i = 0; i < WORKERS; i++) {
		uint64_t ms;

		cr_assert(first_wait(worker_of(s, i), &ms));
		cr_assert_leq(ms, 1000u);
		bins[ms / BIN_MS]++;
	}
	for (unsigned i = 0; i < BINS; i++) {
		fprintf(stderr, "storm: %u workers wait for %u to %u ms\n", bins[i], i * BIN_MS,
			i * BIN_MS + BIN_MS - 1);
		cr_assert_leq(bins[i], WORKERS / 5, "more than a fifth wait for %u ms and a few", i * BIN_MS);
	}
}

static void use_all(struct stage *s, unsigned after)
{
	static struct relay_exec *execs[WORKERS];
	unsigned count = 0;

	for (struct relay_worker *w = relay_attached(s->relay); w && w->number > after; w = w->next) {
		if (w->stream && count < WORKERS)
			execs[count++] =
			    relay_exec(w, &(struct relay_request){.req_id = w->number, .command = "exit 3"});
	}
	cr_assert_eq(count, WORKERS);
	for (unsigned i = 0; i < WORKERS; i++) {
		cr_assert_eq(relay_wait_end(execs[i], 60000)->kind, RELAY_END);
		cr_assert_eq(execs[i]->terminal[0].exit_code, 3);
	}
}

static void stop_all(struct stage *s)
{
	for (unsigned i = 1; i < WORKERS; i++)
		process_kill(others[i].pid, SIGTERM);
	for (unsigned i = 1; i < WORKERS; i++) {
		cr_assert(worker_wait_exit(&others[i], 60000), "%u did not leave", i);
		cr_assert(WIFEXITED(others[i].wait_status) && WEXITSTATUS(others[i].wait_status) == 0);
		worker_free(&others[i]);
	}
	stage_close(s);
}

Test(long_storm, five_hundred_that_lose_one_relay_come_back_apart)
{
	uint64_t start = clock_now_ms(), memory;
	struct progress p = {0};

	need_room();
	p.s = stage_prepare();
	memory = number_in("/proc/meminfo", "MemAvailable:");
	start_all(&p);
	fprintf(stderr, "storm: %u attached after %llu ms, with %llu KiB of memory\n", WORKERS,
		(unsigned long long)(clock_now_ms() - start),
		(unsigned long long)(memory - number_in("/proc/meminfo", "MemAvailable:")));
	start = clock_now_ms();
	lose_the_relay(&p);
	check_waits(p.s);
	cr_assert(relay_wait(p.s->relay, are_attached, &p, 180000), "%u of %u are back",
		  attached_after(p.s->relay, p.cut), WORKERS);
	fprintf(stderr, "storm: all are back after %llu ms\n", (unsigned long long)(clock_now_ms() - start));
	cr_assert_eq(relay_refusals(p.s->relay), 0);
	use_all(p.s, p.cut);
	stop_all(p.s);
}
