/* Users as /etc/passwd and /etc/group name them, without NSS. */
#include "execd/user.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/user-XXXXXX";
static char passwd[64], group[64];
static struct user_files files;

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f);
	fputs(text, f);
	fclose(f);
}

static void setup(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(passwd, sizeof passwd, "%s/passwd", folder);
	snprintf(group, sizeof group, "%s/group", folder);
	files = (struct user_files){.passwd = passwd, .group = group};
	put(passwd, "root:x:0:0:root:/root:/bin/bash\n"
		    "# a comment\n"
		    "\n"
		    "broken\n"
		    "alsobroken:x:notanumber:1::/:\n"
		    "ann:x:1000:1000:Ann,,,:/home/ann:/bin/zsh\n"
		    "bare:x:1001:1002:::\n"
		    "wrap:x:4294967296:0::/:\n"
		    "minus:x:4294967295:0::/:\n"
		    "last:x:1003:1003::/home/last:/bin/sh");
	put(group, "root:x:0:\nann:x:1000:ann\ndev:x:2000:bob,ann\nops:x:2001:ann\nannex:x:2002:annabel\n");
}

static void teardown(void)
{
	unlink(passwd);
	unlink(group);
	rmdir(folder);
}

TestSuite(user, .init = setup, .fini = teardown);

static struct config_user expect(const char *spec)
{
	struct config_user u;
	const char *why = "";

	cr_assert_eq(user_parse(&files, spec, &u, &why), 0, "%s: %s", spec, why);
	cr_assert(u.set);
	return u;
}

Test(user, is_found_by_name_with_its_groups)
{
	struct config_user u = expect("ann");

	cr_assert_eq(u.uid, 1000);
	cr_assert_eq(u.gid, 1000);
	cr_assert_str_eq(u.home, "/home/ann");
	cr_assert_str_eq(u.shell, "/bin/zsh");
	cr_assert_eq(u.group_count, 2);
	cr_assert_eq(u.groups[0], 2000);
	cr_assert_eq(u.groups[1], 2001);
}

Test(user, is_found_by_number)
{
	struct config_user u = expect("1000");

	cr_assert_str_eq(u.name, "ann");
	cr_assert_eq(u.group_count, 2);
	cr_assert_str_eq(expect("1003").name, "last");
}

Test(user, takes_a_group_and_then_no_others)
{
	struct config_user u = expect("ann:dev");

	cr_assert_eq(u.gid, 2000);
	cr_assert_eq(u.group_count, 0);
	cr_assert_eq(expect("ann:77").gid, 77);
	cr_assert_eq(expect("0:0").uid, 0);
}

Test(user, may_be_a_number_that_no_line_names)
{
	struct config_user u = expect("65532");

	cr_assert_eq(u.uid, 65532);
	cr_assert_eq(u.gid, 65532);
	cr_assert_str_eq(u.name, "65532");
	cr_assert_str_eq(u.home, "/");
	cr_assert_str_eq(u.shell, "/bin/sh");
	cr_assert_eq(expect("65532:1000").gid, 1000);
}

Test(user, has_defaults_for_empty_fields)
{
	struct config_user u = expect("bare");

	cr_assert_str_eq(u.home, "/");
	cr_assert_str_eq(u.shell, "/bin/sh");
	cr_assert_eq(u.gid, 1002);
}

Test(user, is_refused)
{
	static const char *const bad[] = {
	    "",           ":",          ":1000", "nobody-here", "ann:nogroup", "ann:",       "ann:1000:1000",
	    "4294967295", "4294967296", "-1",    "broken",      "wrap",        "alsobroken", "minus",
	    "1000 ",      " ann",       "0x10"};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct config_user u;
		const char *why = NULL;

		cr_assert_lt(user_parse(&files, bad[i], &u, &why), 0, "%s", bad[i]);
		cr_assert(why);
	}
}

Test(user, may_have_32_more_groups_and_no_more)
{
	FILE *f = fopen(group, "w");
	struct config_user u;
	const char *why;

	cr_assert(f);
	for (int i = 0; i < 32; i++)
		fprintf(f, "g%d:x:%d:ann\n", i, 3000 + i);
	fclose(f);
	cr_assert_eq(expect("ann").group_count, 32);
	f = fopen(group, "a");
	cr_assert(f);
	fprintf(f, "one:x:4000:ann\n");
	fclose(f);
	cr_assert_lt(user_parse(&files, "ann", &u, &why), 0);
	cr_assert_eq(expect("ann:1000").group_count, 0);
}

Test(user, without_files_is_a_number)
{
	struct user_files none = {.passwd = "/nonexistent/passwd", .group = "/dev/null"};
	struct config_user u;
	const char *why;

	cr_assert_eq(user_parse(&none, "1000", &u, &why), 0);
	cr_assert_eq(u.gid, 1000);
	cr_assert_lt(user_parse(&none, "root", &u, &why), 0);
}
