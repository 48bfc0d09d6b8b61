/* What a process of another identity could do, asked of one. */
#include "execd/probe.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/probe-XXXXXX";
static char tool[64], plain[64], inner[64];
static const struct drop ourselves;
static const struct drop another = {.change_ids = true, .uid = 64123, .gid = 64124};

static void put(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	cr_assert(fd >= 0);
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
}

static void setup(void)
{
	cr_assert(mkdtemp(folder));
	cr_assert_eq(chmod(folder, 0755), 0);
	snprintf(tool, sizeof tool, "%s/tool", folder);
	snprintf(plain, sizeof plain, "%s/plain", folder);
	snprintf(inner, sizeof inner, "%s/inner", folder);
	put(tool, 0755);
	put(plain, 0644);
	cr_assert_eq(mkdir(inner, 0700), 0);
}

static void teardown(void)
{
	unlink(tool);
	unlink(plain);
	rmdir(inner);
	rmdir(folder);
}

TestSuite(probe, .init = setup, .fini = teardown, .timeout = 20);

static struct probe ask(const struct drop *as, const struct probe_question *q)
{
	struct probe p;

	cr_assert_eq(probe_as(as, q, &p), 0);
	cr_assert_eq(p.err, 0, "%s", p.step);
	return p;
}

static void need_root(void)
{
	if (!drop_holds(CAP_SETUID) || !drop_holds(CAP_SETPCAP))
		cr_skip_test("needs root");
}

Test(probe, finds_programs_along_a_path)
{
	const char *names[] = {"tool", "plain", "inner", "none", NULL};
	char path[256];
	struct probe p;

	snprintf(path, sizeof path, "relative:/nonexistent::%s:/bin", folder);
	p = ask(&ourselves, &(struct probe_question){.path = path, .names = names});
	cr_assert_eq(p.found, 1);
	cr_assert_str_eq(p.first, tool);
}

/* Where a command stands must not decide which program is told of. */
Test(probe, skips_parts_that_are_not_absolute)
{
	const char *names[] = {"tool", NULL};
	struct probe p;

	cr_assert_eq(chdir(folder), 0);
	p = ask(&ourselves, &(struct probe_question){.path = ".::", .names = names});
	cr_assert_eq(p.found, 0);
	cr_assert_str_eq(p.first, "");
}

Test(probe, asks_as_the_other_user)
{
	const char *names[] = {"tool", NULL};
	struct probe_question q = {
	    .folder = inner, .path = folder, .names = names, .readable_file = plain, .writable_path = folder};
	struct probe p;

	need_root();
	p = ask(&another, &q);
	cr_assert_eq(p.found, 1);
	cr_assert_eq(p.folder_err, -EACCES);
	cr_assert(p.can_read);
	cr_assert_not(p.can_write);
	cr_assert_eq(chmod(tool, 0700), 0);
	cr_assert_eq(chmod(plain, 0600), 0);
	cr_assert_eq(chmod(folder, 0777), 0);
	cr_assert_eq(chmod(inner, 0755), 0);
	p = ask(&another, &q);
	cr_assert_eq(p.found, 0);
	cr_assert_eq(p.folder_err, 0);
	cr_assert_not(p.can_read);
	cr_assert(p.can_write);
	cr_assert_eq(rmdir(inner), 0);
	cr_assert_eq(ask(&another, &q).folder_err, -ENOENT, "it is gone");
}

Test(probe, says_what_could_not_be_dropped)
{
	struct probe p;

	if (drop_holds(CAP_SETUID))
		cr_skip_test("is for the unprivileged run");
	cr_assert_eq(probe_as(&another, &(struct probe_question){0}, &p), 0);
	cr_assert_eq(p.err, -EPERM);
	cr_assert_gt(strlen(p.step), 0);
}

Test(probe, changes_nothing_in_who_asks)
{
	uid_t uid = getuid();

	need_root();
	ask(&another, &(struct probe_question){0});
	cr_assert_eq(getuid(), uid);
	cr_assert(drop_holds(CAP_SETUID));
}
