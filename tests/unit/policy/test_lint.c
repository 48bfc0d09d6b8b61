/* What a policy must keep to beyond its grammar, and the shape of what it compiles to. */
#include "policy/emit.h"
#include "policy/lint.h"
#include "tests/lib/bpf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD "default deny ENOSYS\nbadarch kill\n"
#define OPEN "default allow\nbadarch kill\n"

static char folder[] = "/tmp/lint.XXXXXX";
static struct policy policy, other;
static struct policy_error error;

static void set_up(void)
{
	cr_assert(mkdtemp(folder) && chdir(folder) == 0);
}

static void tear_down(void)
{
	unlink("a.policy");
	unlink("b.policy");
	rmdir(folder);
}

TestSuite(lint, .init = set_up, .fini = tear_down, .timeout = 30);

static void read_policy(const char *name, const char *text, struct policy *ret)
{
	FILE *f = fopen(name, "w");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
	cr_assert(policy_parse(name, ret, &error) == 0, "%s", error.text);
}

static void accept(const char *text)
{
	read_policy("a.policy", text, &policy);
	cr_assert(policy_lint(&policy, &error) == 0, "%s", error.text);
}

static void refuse(const char *text, const char *message)
{
	read_policy("a.policy", text, &policy);
	cr_assert_eq(policy_lint(&policy, &error), -EINVAL);
	cr_assert_str_eq(error.text, message);
}

Test(lint, wants_names_that_exist)
{
	accept(HEAD "allow open\nallow read\n"); /* open: x86_64 only */
	refuse(HEAD "allow reed\n", "a.policy:3: unknown system call 'reed'");
	refuse(HEAD "allow mmap2\n", "a.policy:3: mmap2 exists on none of our architectures");
}

Test(lint, wants_given_numbers_to_be_right)
{
	accept(HEAD "allow close_range=436\nallow nobody_knows_me=700\n");
	refuse(HEAD "allow close_range=437\n", "a.policy:3: close_range has the number 436, not 437");
}

Test(lint, wants_a_reason_for_what_is_dangerous)
{
	accept(HEAD "allow ptrace # debuggers\n");
	accept(HEAD "deny EPERM ptrace\n");
	refuse(HEAD "allow ptrace\n", "a.policy:3: ptrace is dangerous: give a reason behind '#'");
	refuse(HEAD "allow ptrace # \n", "a.policy:3: ptrace is dangerous: give a reason behind '#'");
	refuse(HEAD "allow clone if arg0 == 0\n", "a.policy:3: clone is dangerous: give a reason behind '#'");
}

static int subset(const char *outer, const char *inner)
{
	read_policy("a.policy", outer, &policy);
	read_policy("b.policy", inner, &other);
	return policy_lint_subset(&policy, &other, &error);
}

Test(lint, wants_inherited_refusals_to_be_refused_anyway)
{
	cr_assert_eq(subset(OPEN "deny EPERM mount\n", HEAD "allow read\n"), 0);
	cr_assert_eq(subset(OPEN "deny EPERM mount\n", OPEN "deny EPERM mount\nallow read\n"), 0);
	cr_assert_eq(subset(OPEN "deny EPERM mount\n", OPEN "allow read\n"), -EINVAL);
	cr_assert_str_eq(error.text, "a.policy:3: refuses mount, which b.policy may allow");
	cr_assert_eq(subset(OPEN "deny EPERM mount\n", HEAD "allow mount # why\n"), -EINVAL);
	cr_assert_eq(subset(HEAD "allow read\n", HEAD "allow read\n"), -EINVAL);
	cr_assert_str_eq(error.text, "a.policy: an inherited policy must allow by default");
}

Test(lint, compares_conditions_of_inherited_refusals)
{
	static const char outer[] = OPEN "deny EPERM ioctl if arg1 == TIOCSTI\n";

	cr_assert_eq(subset(outer, HEAD "deny EPERM ioctl if arg1 == TIOCSTI\nallow ioctl # why\n"), 0);
	cr_assert_eq(subset(outer, HEAD "allow ioctl if arg1 == FIONREAD # why\n"), 0);
	cr_assert_eq(subset(outer, HEAD "allow ioctl # why\n"), -EINVAL);
	cr_assert_eq(subset(outer, HEAD "deny EPERM ioctl if arg1 == FIONREAD\nallow ioctl # why\n"),
		     -EINVAL);
	cr_assert_eq(subset(outer, HEAD "allow ioctl if arg0 == 0 # why\n"), -EINVAL);
	cr_assert_eq(subset(OPEN "deny EPERM ioctl\n", HEAD "allow ioctl if arg1 == FIONREAD # why\n"),
		     -EINVAL);
}

/* --- the shape of programs --- */

static struct sock_filter insns[BPF_MAXINSNS];

static uint32_t run(unsigned count, int nr, uint64_t arg0)
{
	struct seccomp_program program = {insns, (unsigned short)count};
	struct seccomp_data data = {.nr = nr, .arch = AUDIT_ARCH_X86_64, .args = {arg0}};
	uint32_t action;

	cr_assert(bpf_run(&program, &data, &action, NULL) == 0);
	return action;
}

/* A search tree whose halves are further apart than a conditional jump reaches. */
Test(lint, long_programs_jump_far)
{
	static char text[64 * 4 * 256];
	size_t used = (size_t)sprintf(text, HEAD);
	int count;

	for (int i = 0; i < 150; i++) {
		for (int value = 0; value < 4; value++)
			used += (size_t)sprintf(text + used, "deny %s c%03d=%d if arg0 == %d\n",
						value % 2 ? "EPERM" : "EACCES", i, 2 * i, value);
	}
	read_policy("a.policy", text, &policy);
	count = policy_emit(&policy, POLICY_X86_64, insns, BPF_MAXINSNS, &error);
	cr_assert_gt(count, 1800, "%s", error.text);
	for (int i = 0; i < 150; i++) {
		for (uint64_t value = 0; value < 4; value++)
			cr_assert_eq(run((unsigned)count, 2 * i, value),
				     SECCOMP_RET_ERRNO | (value % 2 ? EPERM : EACCES));
		cr_assert_eq(run((unsigned)count, 2 * i, 4), SECCOMP_RET_ERRNO | ENOSYS);
		cr_assert_eq(run((unsigned)count, 2 * i + 1, 0), SECCOMP_RET_ERRNO | ENOSYS);
	}
}

Test(lint, programs_that_do_not_fit_are_refused)
{
	int count;

	accept(HEAD "allow read\n");
	count = policy_emit(&policy, POLICY_X86_64, insns, BPF_MAXINSNS, &error);
	cr_assert_gt(count, 0);
	cr_assert_eq(policy_emit(&policy, POLICY_X86_64, insns, (unsigned)count, &error), count);
	cr_assert_eq(policy_emit(&policy, POLICY_X86_64, insns, (unsigned)count - 1, &error), -EINVAL);
}

Test(lint, two_names_for_one_number_are_refused)
{
	accept(HEAD "allow another=0\nallow read\n");
	cr_assert_eq(policy_emit(&policy, POLICY_X86_64, insns, BPF_MAXINSNS, &error), -EINVAL);
	cr_assert_str_eq(error.text, "a.policy: two names for call number 0");
}
