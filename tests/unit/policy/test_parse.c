/* The language of the policies: what it takes, and the one line that it answers to what it does not. */
#include "policy/parse.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD "default deny ENOSYS\nbadarch kill\n"

static char folder[] = "/tmp/parse.XXXXXX";
static struct policy policy;
static struct policy_error error;

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	cr_assert(f);
	fputs(text, f);
	cr_assert(fclose(f) == 0);
}

static void set_up(void)
{
	cr_assert(mkdtemp(folder) && chdir(folder) == 0);
}

static void tear_down(void)
{
	unlink("a.policy");
	unlink("b.policy");
	unlink("c.policy");
	rmdir(folder);
}

TestSuite(parse, .init = set_up, .fini = tear_down, .timeout = 30);

static void parses(const char *text)
{
	put("a.policy", text);
	cr_assert(policy_parse("a.policy", &policy, &error) == 0, "%s", error.text);
}

static void fails(const char *text, const char *message)
{
	put("a.policy", text);
	cr_assert_eq(policy_parse("a.policy", &policy, &error), -EINVAL, "accepted: %s", text);
	cr_assert_str_eq(error.text, message);
}

Test(parse, reads_actions_and_headers)
{
	parses("# a comment\n\n" HEAD "allow close\t# why\nkill execve\ndeny EPERM mount #\ntrap read # x\n");
	cr_assert_eq(policy.default_action, SECCOMP_RET_ERRNO | ENOSYS);
	cr_assert_eq(policy.badarch_action, SECCOMP_RET_KILL_PROCESS);
	cr_assert_eq(policy.count, 4);
	cr_assert_str_eq(policy.rules[0].call, "close");
	cr_assert_eq(policy.rules[0].action, SECCOMP_RET_ALLOW);
	cr_assert(policy.rules[0].has_reason);
	cr_assert_eq(policy.rules[0].line, 5);
	cr_assert_eq(policy.rules[1].action, SECCOMP_RET_KILL_PROCESS);
	cr_assert_eq(policy.rules[2].action, SECCOMP_RET_ERRNO | EPERM);
	cr_assert(!policy.rules[2].has_reason);
	cr_assert_eq(policy.rules[3].action, SECCOMP_RET_TRAP);
}

Test(parse, reads_conditions)
{
	const struct policy_condition *c;

	parses(HEAD "allow prctl if arg0 == 0x10 and arg1 & CLONE_NEWUSER|CLONE_NEWNET and arg2 & 6 != 2\n"
		    "allow prlimit64 if arg2 == NULL\n"
		    "deny EPERM socket if arg0 != AF_UNIX\n");
	cr_assert_eq(policy.rules[0].condition_count, 3);
	c = policy.rules[0].conditions;
	cr_assert(c[0].arg == 0 && c[0].test == POLICY_EQUAL && c[0].mask == UINT32_MAX &&
		  c[0].value == 0x10);
	cr_assert(c[1].arg == 1 && c[1].test == POLICY_ANY && c[1].mask == (CLONE_NEWUSER | CLONE_NEWNET));
	cr_assert(c[2].arg == 2 && c[2].test == POLICY_DIFFERS && c[2].mask == 6 && c[2].value == 2);
	cr_assert_eq(policy.rules[1].conditions[0].test, POLICY_NULL);
	c = policy.rules[2].conditions;
	cr_assert(c[0].test == POLICY_DIFFERS && c[0].value == AF_UNIX);
}

Test(parse, reads_numbers_of_calls)
{
	parses(HEAD "allow cachestat=451\nallow read\n");
	cr_assert_eq(policy.rules[0].number, 451);
	cr_assert_eq(policy.rules[1].number, -1);
}

Test(parse, takes_the_last_line_without_a_newline)
{
	parses(HEAD "allow read");
	cr_assert_eq(policy.count, 1);
}

Test(parse, says_what_is_wrong_and_where)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
	    {"allow read\n", "a.policy: no default"},
	    {"default allow\nallow read\n", "a.policy: no badarch"},
	    {"default allow\ndefault allow\n", "a.policy:2: given twice"},
	    {"default\n", "a.policy:1: an action is missing"},
	    {"default perhaps\n", "a.policy:1: unknown word 'perhaps'"},
	    {"default allow now\n", "a.policy:1: unexpected 'now'"},
	    {HEAD "permit read\n", "a.policy:3: unknown word 'permit'"},
	    {HEAD "allow\n", "a.policy:3: a system call's name is missing or too long"},
	    {HEAD "allow =3\n", "a.policy:3: a system call's name is missing or too long"},
	    {HEAD "allow aaaaaaaaaabbbbbbbbbbccccccccccddddddddddX\n",
	     "a.policy:3: a system call's name is missing or too long"},
	    {HEAD "allow re-ad\n", "a.policy:3: 're-ad' is no system call's name"},
	    {HEAD "allow new=4096\n", "a.policy:3: '4096' is no system call's number"},
	    {HEAD "allow new=-1\n", "a.policy:3: '-1' is no system call's number"},
	    {HEAD "allow new=\n", "a.policy:3: '' is no system call's number"},
	    {HEAD "allow read write\n", "a.policy:3: unexpected 'write'"},
	    {HEAD "deny\n", "a.policy:3: deny needs an errno"},
	    {HEAD "deny EWHAT read\n", "a.policy:3: unknown errno 'EWHAT'"},
	    {HEAD "deny read\n", "a.policy:3: unknown errno 'read'"},
	    {HEAD "allow read if\n", "a.policy:3: a condition starts with arg0 to arg5, not ''"},
	    {HEAD "allow read if fd == 0\n", "a.policy:3: a condition starts with arg0 to arg5, not 'fd'"},
	    {HEAD "allow read if arg6 == 0\n",
	     "a.policy:3: a condition starts with arg0 to arg5, not 'arg6'"},
	    {HEAD "allow read if arg0\n", "a.policy:3: arg0 is compared with nothing"},
	    {HEAD "allow read if arg0 < 3\n", "a.policy:3: arg0 is compared with nothing"},
	    {HEAD "allow read if arg0 ==\n", "a.policy:3: a value is missing"},
	    {HEAD "allow read if arg0 == AF_WHAT\n", "a.policy:3: unknown constant 'AF_WHAT'"},
	    {HEAD "allow read if arg0 == 4294967296\n", "a.policy:3: unknown constant '4294967296'"},
	    {HEAD "allow read if arg0 == AF_UNIX|\n", "a.policy:3: unknown constant ''"},
	    {HEAD "allow read if arg0 & 0\n", "a.policy:3: a mask of 0 never matches"},
	    {HEAD "allow read if arg0 & 6 == 1\n", "a.policy:3: the value has bits outside the mask"},
	    {HEAD "allow read if arg0 != NULL\n", "a.policy:3: unknown constant 'NULL'"},
	    {HEAD "allow read if arg0 == 1 or arg1 == 1\n", "a.policy:3: unexpected 'or'"},
	    {HEAD "allow read if arg0 == 1 and arg1 == 1 and arg2 == 1 and arg3 == 1\n",
	     "a.policy:3: more than 3 conditions"},
	    {HEAD "allow write\nallow read\n",
	     "a.policy:4: read is not in its place: rules are sorted, and it comes before write"},
	    {HEAD "allow read\nallow read if arg0 == 1\n",
	     "a.policy:4: never reached: line 3 decides read in any case"},
	    {HEAD "allow read if arg0 == 1\ndeny EPERM read if arg0 == 1\n",
	     "a.policy:4: never reached: the same condition as line 3"},
	    {HEAD "allow new=451 if arg0 == 1\nallow new=452\n",
	     "a.policy:4: new has another number in line 3"},
	    {HEAD "include\n", "a.policy:3: include needs a file"},
	    {HEAD "allow read\ninclude b.policy\n", "a.policy:4: include comes before the rules"},
	    {"include b.policy\ninclude c.policy\n", "a.policy:2: only one include"},
	    {"include b.policy\n", "b.policy: No such file or directory"},
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		fails(bad[i].text, bad[i].message);
}

Test(parse, refuses_lines_at_the_limit)
{
	char text[1024] = HEAD "#";
	size_t head = strlen(text) - 1;

	memset(text + head + 1, 'x', 509);
	strcpy(text + head + 510, "\n");
	parses(text);
	memset(text + head + 1, 'x', 510);
	strcpy(text + head + 511, "\n");
	fails(text, "a.policy:3: longer than 510 bytes");
}

Test(parse, refuses_more_rules_than_it_has_room_for)
{
	static char text[64 * (POLICY_RULES + 2)];
	size_t used = (size_t)sprintf(text, HEAD);

	for (unsigned i = 0; i < POLICY_RULES; i++)
		used += (size_t)sprintf(text + used, "allow c%04u=%u\n", i, i);
	parses(text);
	cr_assert_eq(policy.count, POLICY_RULES);
	sprintf(text + used, "allow d=1\n");
	fails(text, "a.policy:643: more than 640 rules");
}

Test(parse, an_overlay_replaces_the_rules_of_a_call)
{
	put("b.policy", HEAD "allow close\nallow ioctl if arg1 == 1\ndeny EPERM ioctl\nallow read\n");
	parses("include b.policy\ndefault trap\nallow brk\nallow ioctl if arg1 == 2\n");
	cr_assert_eq(policy.default_action, SECCOMP_RET_TRAP);
	cr_assert_eq(policy.badarch_action, SECCOMP_RET_KILL_PROCESS);
	cr_assert_eq(policy.count, 4);
	cr_assert_str_eq(policy.rules[0].call, "brk");
	cr_assert_str_eq(policy.rules[1].call, "close");
	cr_assert_str_eq(policy.rules[1].file, "b.policy");
	cr_assert_str_eq(policy.rules[2].call, "ioctl");
	cr_assert_eq(policy.rules[2].conditions[0].value, 2);
	cr_assert_str_eq(policy.rules[3].call, "read");
}

Test(parse, rules_of_a_call_keep_their_order_through_an_include)
{
	put("b.policy",
	    HEAD "allow read\nallow socket if arg0 == 1\nallow socket if arg0 == 2\ndeny EPERM socket\n");
	parses("include b.policy\nallow brk\n");
	cr_assert_eq(policy.rules[2].conditions[0].value, 1);
	cr_assert_eq(policy.rules[3].conditions[0].value, 2);
	cr_assert_eq(policy.rules[4].condition_count, 0);
}

Test(parse, includes_do_not_nest)
{
	put("b.policy", "include c.policy\n");
	put("c.policy", HEAD "allow read\n");
	fails("include b.policy\n", "b.policy: an included file includes another");
}

Test(parse, an_error_in_an_included_file_names_that_file)
{
	put("b.policy", HEAD "allow read if\n");
	fails("include b.policy\n", "b.policy:3: a condition starts with arg0 to arg5, not ''");
}
