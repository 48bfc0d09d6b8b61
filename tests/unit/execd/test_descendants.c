/* valgrind: not run: valgrind 3.19 does not know pidfd_open, without which the walk trusts no number */
/* Who is below a process, as /proc tells it. */
#include "execd/slot/descendants.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool parse(const char *text, struct descendants_stat *ret)
{
	return descendants_parse_stat(text, strlen(text), ret);
}

#define REST " 7 7 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 "

Test(descendants, reads_parent_and_start_time)
{
	struct descendants_stat s;

	cr_assert(parse("12 (bash) S 345" REST "67890 1000 2000", &s));
	cr_assert_eq(s.parent, 345);
	cr_assert_eq(s.started, 67890);
}

Test(descendants, a_name_cannot_forge_either)
{
	struct descendants_stat s;

	cr_assert(parse("12 (x) S 1 1 1) R 345" REST "67890 1", &s));
	cr_assert_eq(s.parent, 345);
	cr_assert_eq(s.started, 67890);
}

Test(descendants, what_is_cut_off_is_no_answer)
{
	const char whole[] = "12 (bash) S 345" REST "67890 1000";
	const char *start_time = strstr(whole, "67890");
	struct descendants_stat s;

	for (size_t n = 0; n < (size_t)(start_time - whole) - 1; n++)
		cr_assert(!descendants_parse_stat(whole, n, &s), "taken at %zu bytes", n);
}

Test(descendants, numbers_are_read_at_every_split)
{
	const char text[] = "1 22 333 4444 ";
	pid_t got[8];
	size_t rest;

	for (size_t cut = 0; cut <= strlen(text); cut++) {
		size_t first = descendants_parse_children(text, cut, false, got, 8, &rest);
		size_t second = descendants_parse_children(text + cut - rest, strlen(text) - cut + rest, true,
							   got + first, 8 - first, &rest);

		cr_assert_eq(first + second, 4);
		cr_assert(got[0] == 1 && got[1] == 22 && got[2] == 333 && got[3] == 4444);
	}
}

static pid_t seen[64];
static unsigned seen_count;

static void note(const struct descendant *d, void *owner)
{
	(void)owner;
	if (seen_count < 64)
		seen[seen_count++] = d->pid;
}

static bool was_seen(pid_t pid)
{
	for (unsigned i = 0; i < seen_count; i++) {
		if (seen[i] == pid)
			return true;
	}
	return false;
}

/* A child and its child, both waiting; the numbers come up a pipe. */
static pid_t family(int *ret_hold, pid_t *ret_grandchild)
{
	int up[2], hold[2];
	pid_t child;

	cr_assert(pipe(up) == 0 && pipe(hold) == 0);
	child = fork();
	if (child == 0) {
		pid_t grandchild = fork();
		char byte;

		close(hold[1]);
		if (grandchild > 0 && write(up[1], &grandchild, sizeof grandchild) < 0)
			_exit(1);
		_exit(read(hold[0], &byte, 1) < 0);
	}
	cr_assert_eq(read(up[0], ret_grandchild, sizeof *ret_grandchild), (ssize_t)sizeof *ret_grandchild);
	close(up[0]);
	close(up[1]);
	close(hold[0]);
	*ret_hold = hold[1];
	return child;
}

Test(descendants, finds_children_of_children)
{
	pid_t grandchild;
	int hold;
	pid_t child = family(&hold, &grandchild);

	cr_assert_geq(descendants_walk(getpid(), NULL, DESCENDANTS_MAX, note, NULL), 2);
	cr_assert(was_seen(child));
	cr_assert(was_seen(grandchild));
	close(hold);
	cr_assert_eq(waitpid(child, NULL, 0), child);
}

static pid_t spared;

static bool spare(pid_t child)
{
	return child == spared;
}

Test(descendants, spares_a_child_with_all_below_it)
{
	pid_t grandchild;
	int hold;

	spared = family(&hold, &grandchild);
	descendants_walk(getpid(), spare, DESCENDANTS_MAX, note, NULL);
	cr_assert(!was_seen(spared));
	cr_assert(!was_seen(grandchild));
	close(hold);
	cr_assert_eq(waitpid(spared, NULL, 0), spared);
}

Test(descendants, a_number_given_away_leads_to_no_stranger)
{
	cr_assert_lt(descendants_walk(0x3fffffff, NULL, DESCENDANTS_MAX, note, NULL), 0);
	cr_assert_eq(seen_count, 0);
}
