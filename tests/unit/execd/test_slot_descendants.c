/* valgrind: not run: valgrind 3.19 does not know pidfd_open, without which the walk trusts no number */
#include "execd/slot/descendants.h"
#include "execd/slot/proc.h"
#include "tests/lib/bound.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(slot_descendants, .timeout = 20);

static size_t parse(const char *text, bool last, pid_t *ret, size_t max, size_t *rest)
{
	return descendants_parse_children(text, strlen(text), last, ret, max, rest);
}

Test(slot_descendants, reads_a_list_of_children)
{
	pid_t pids[4];
	size_t rest;

	cr_assert_eq(parse("", true, pids, 4, &rest), 0);
	cr_assert_eq(parse("12 345 6 ", true, pids, 4, &rest), 3);
	cr_assert_eq(pids[0], 12);
	cr_assert_eq(pids[1], 345);
	cr_assert_eq(pids[2], 6);
	cr_assert_eq(parse("7", true, pids, 4, &rest), 1);
	cr_assert_eq(pids[0], 7);
	cr_assert_eq(rest, 0);
}

Test(slot_descendants, keeps_a_number_that_goes_on_in_the_next_piece)
{
	pid_t pids[4];
	size_t rest;

	cr_assert_eq(parse("12 34", false, pids, 4, &rest), 1);
	cr_assert_eq(rest, 2);
	cr_assert_eq(parse("12 34 ", false, pids, 4, &rest), 2);
	cr_assert_eq(rest, 0);
}

Test(slot_descendants, stores_no_more_than_asked_and_nothing_that_is_no_pid)
{
	pid_t pids[2] = {0, 0};
	size_t rest;

	cr_assert_eq(parse("1 2 3 ", true, pids, 2, &rest), 2);
	cr_assert_eq(parse("0 00 ", true, pids, 2, &rest), 0);
	cr_assert_eq(parse("99999999999999999999 ", true, pids, 2, &rest), 1);
	cr_assert_eq(pids[0], INT32_MAX);
}

#define REST " 5 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654321 1000 1"

static bool parse_stat(const char *text, struct descendants_stat *ret)
{
	return descendants_parse_stat(text, strlen(text), ret);
}

Test(slot_descendants, finds_parent_and_start_behind_any_name)
{
	static const char *const names[] = {"bash", "a) R 7", "1 2 3", "(((", ")", ""};
	struct descendants_stat stat;
	char text[256];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(text, sizeof text, "12 (%s) S 345" REST, names[i]);
		cr_assert(parse_stat(text, &stat), "%s", text);
		cr_assert_eq(stat.parent, 345, "%s", text);
		cr_assert_eq(stat.started, 987654321, "%s", text);
	}
}

Test(slot_descendants, tells_a_zombie_from_a_process_whose_first_thread_ended)
{
	struct descendants_stat stat;

	cr_assert(parse_stat("12 (x) S 345" REST, &stat) && !stat.zombie);
	cr_assert(parse_stat("12 (x) Z 345" REST, &stat) && stat.zombie);
	cr_assert(parse_stat("12 (x) Z 345 5 5 0 -1 1 1 2 3 4 5 6 7 8 20 0 2 0 9 1", &stat) && !stat.zombie);
}

Test(slot_descendants, takes_no_stat_that_ends_too_soon)
{
	static const char text[] = "12 (x) S 345" REST;
	size_t needed = strlen(text) - strlen("87654321 1000 1");
	struct descendants_stat stat;

	for (size_t size = 0; size + 1 < needed; size++)
		cr_assert(!descendants_parse_stat(text, size, &stat), "%zu", size);
	cr_assert(descendants_parse_stat(text, needed, &stat));
	cr_assert(!parse_stat("12 (x", &stat));
	cr_assert(!parse_stat("12 (x) S 99999999999" REST, &stat));
}

static pid_t family(int ready)
{
	pid_t pid = bound_fork();

	if (pid != 0)
		return pid;
	for (int i = 0; i < 2; i++) {
		if (bound_fork() == 0) {
			(void)!write(ready, "x", 1);
			for (;;)
				pause();
		}
	}
	for (;;)
		pause();
}

static pid_t spared;

static bool is_spared(pid_t pid)
{
	return pid == spared;
}

static void note(const struct descendant *d, void *owner)
{
	unsigned *own = owner;

	*own += d->own_child;
	cr_assert(d->own_child || d->pidfd >= 0);
}

Test(slot_descendants, walks_all_but_what_is_spared)
{
	unsigned own = 0;
	char c[4];
	int p[2];
	pid_t a, b;

	cr_assert_eq(pipe(p), 0);
	a = family(p[1]);
	cr_assert_gt(a, 0);
	b = family(p[1]);
	cr_assert_gt(b, 0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(read(p[0], c, 1), 1);
	cr_assert_eq(descendants_walk(getpid(), NULL, DESCENDANTS_MAX, note, &own), 6);
	cr_assert_eq(own, 2);
	cr_assert_eq(descendants_walk(getpid(), NULL, 1, NULL, NULL), 3);
	cr_assert_eq(descendants_walk(a, NULL, DESCENDANTS_MAX, NULL, NULL), 2);
	spared = b;
	cr_assert_eq(descendants_walk(getpid(), is_spared, DESCENDANTS_MAX, NULL, NULL), 3);
	kill(a, SIGKILL);
	kill(b, SIGKILL);
	waitpid(a, NULL, 0);
	waitpid(b, NULL, 0);
	cr_assert_lt(descendants_walk(a, NULL, DESCENDANTS_MAX, NULL, NULL), 0);
}

/* However many descriptors are left, from none to enough for all: never fewer processes than there are. */
Test(slot_descendants, counts_no_fewer_where_descriptors_run_out)
{
	unsigned complete = 0;
	struct rlimit files;
	rlim_t lowest;
	char c;
	int p[2];
	pid_t a;

	cr_assert_geq(proc_fd(), 0);
	cr_assert_eq(pipe(p), 0);
	a = family(p[1]);
	cr_assert_gt(a, 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(read(p[0], &c, 1), 1);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	lowest = (rlim_t)dup(p[0]);
	close((int)lowest);
	for (rlim_t more = 0; more < 8; more++) {
		struct rlimit few = {lowest + more, files.rlim_max};
		int count;

		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		count = descendants_walk(getpid(), NULL, DESCENDANTS_MAX, NULL, NULL);
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
		cr_expect(count == 3 || count == -EMFILE, "%d with %llu more", count,
			  (unsigned long long)more);
		complete += count == 3;
	}
	cr_expect(complete > 0 && complete < 8, "%u", complete);
	kill(a, SIGKILL);
	waitpid(a, NULL, 0);
}
