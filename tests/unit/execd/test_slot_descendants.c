#include "execd/slot/descendants.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
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

static pid_t parent(const char *text)
{
	return descendants_parse_parent(text, strlen(text));
}

Test(slot_descendants, finds_the_parent_behind_any_name)
{
	cr_assert_eq(parent("12 (bash) S 345 12 12 0"), 345);
	cr_assert_eq(parent("12 (a) R 7) S 345 12"), 345);
	cr_assert_eq(parent("12 (1 2 3) Z 1 12"), 1);
	cr_assert_eq(parent("12 (x) S 0 0"), 0);
	cr_assert_eq(parent("12 (x"), 0);
	cr_assert_eq(parent("12 (x)"), 0);
	cr_assert_eq(parent("12 (x) S"), 0);
	cr_assert_eq(parent(""), 0);
}

static pid_t family(int ready)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 2; i++) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
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
	b = family(p[1]);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(read(p[0], c, 1), 1);
	cr_assert_eq(descendants_walk(getpid(), NULL, DESCENDANTS_MAX, note, &own), 6);
	cr_assert_eq(own, 2);
	cr_assert_eq(descendants_walk(getpid(), NULL, 4, NULL, NULL), 4);
	cr_assert_eq(descendants_walk(a, NULL, DESCENDANTS_MAX, NULL, NULL), 2);
	spared = b;
	cr_assert_eq(descendants_walk(getpid(), is_spared, DESCENDANTS_MAX, NULL, NULL), 3);
	kill(a, SIGKILL);
	kill(b, SIGKILL);
	waitpid(a, NULL, 0);
	waitpid(b, NULL, 0);
	cr_assert_lt(descendants_walk(a, NULL, DESCENDANTS_MAX, NULL, NULL), 0);
}
