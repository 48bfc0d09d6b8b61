/* Both architectures' programs, run by an interpreter of ours against the text's meaning and the kernel's own
 * numbers. */
#include "policy/emit.h"
#include "policy/policy.h"
#include "tests/lib/aarch64_calls.h"
#include "tests/lib/bpf.h"
#include "tests/lib/reference.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>

#define VALUES 512

static const char *const files[] = {"policy/netd.policy", "policy/netd.san.policy", "policy/execd.policy",
				    "policy/commands.policy", "policy/commands-ptrace.policy"};
#define FILES (sizeof files / sizeof *files)

static const uint32_t audit[POLICY_ARCHES] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64};

static struct policy policy;
static struct sock_filter insns[BPF_MAXINSNS];
static struct seccomp_program program;

static void compile(const char *file, enum policy_arch arch)
{
	struct policy_error error;
	int count;

	cr_assert(policy_parse(file, &policy, &error) == 0, "%s", error.text);
	count = policy_emit(&policy, arch, insns, BPF_MAXINSNS, &error);
	cr_assert(count > 0, "%s", error.text);
	program = (struct seccomp_program){.insns = insns, .count = (unsigned short)count};
}

static uint32_t run(enum policy_arch arch, int nr, const uint64_t args[6])
{
	struct seccomp_data data = {.nr = nr, .arch = audit[arch]};
	uint32_t action;

	memcpy(data.args, args, sizeof data.args);
	cr_assert(bpf_run(&program, &data, &action, NULL) == 0, "number %d", nr);
	return action;
}

static void compare(enum policy_arch arch, const char *name, int nr, const uint64_t args[6])
{
	uint32_t expected = reference_action(&policy, name, args);
	uint32_t got = run(arch, nr, args);

	if (expected != got)
		cr_assert_fail("%s(%#lx, %#lx, %#lx, %#lx): %#x, not %#x", name, args[0], args[1], args[2],
			       args[3], got, expected);
}

/* All pairs of values in two neighbouring arguments, each beside a few in the third: no rule looks at more.
 */
static void compare_call(enum policy_arch arch, const char *name, int nr, const uint64_t *values,
			 unsigned count)
{
	for (unsigned at = 0; at < 4; at++) {
		for (unsigned i = 0; i < count; i++) {
			for (unsigned j = 0; j < count; j++) {
				for (unsigned k = 0; k < count && k < 4; k++) {
					uint64_t args[6] = {0};

					args[at] = values[i];
					args[at + 1] = values[j];
					args[at + 2] = values[k];
					compare(arch, name, nr, args);
				}
			}
		}
	}
}

static bool conditional(const char *name)
{
	for (unsigned i = 0; i < policy.count; i++) {
		if (strcmp(policy.rules[i].call, name) == 0 && policy.rules[i].condition_count > 0)
			return true;
	}
	return false;
}

Test(arches, the_aarch64_program_means_what_the_text_says, .timeout = 240)
{
	static uint64_t values[VALUES];

	for (size_t f = 0; f < FILES; f++) {
		unsigned count, seen = 0;

		compile(files[f], POLICY_AARCH64);
		count = reference_values(&policy, values, VALUES);
		cr_assert(count < VALUES);
		for (const struct aarch64_call *c = aarch64_calls; c->name; c++, seen++)
			compare_call(POLICY_AARCH64, c->name, c->nr, values,
				     conditional(c->name) ? count : 2);
		cr_assert_geq(seen, 290);
	}
}

Test(arches, the_x86_64_program_means_what_the_text_says, .timeout = 240)
{
	static uint64_t values[VALUES];

	for (size_t f = 0; f < FILES; f++) {
		unsigned count;

		compile(files[f], POLICY_X86_64);
		count = reference_values(&policy, values, VALUES);
		for (unsigned i = 0; i < policy.count; i++) {
			int nr = policy_number(&policy.rules[i], POLICY_X86_64, NULL);

			if (nr >= 0 &&
			    (i == 0 || strcmp(policy.rules[i].call, policy.rules[i - 1].call) != 0))
				compare_call(POLICY_X86_64, policy.rules[i].call, nr, values,
					     conditional(policy.rules[i].call) ? count : 2);
		}
	}
}

Test(arches, numbers_are_those_of_the_kernels_header)
{
	unsigned seen = 0;

	compile("policy/commands.policy", POLICY_AARCH64);
	for (unsigned i = 0; i < policy.count; i++) {
		int nr = policy_number(&policy.rules[i], POLICY_AARCH64, NULL);

		for (const struct aarch64_call *c = aarch64_calls; c->name; c++) {
			if (strcmp(c->name, policy.rules[i].call) != 0)
				continue;
			cr_assert_eq(nr, c->nr, "%s is %d, not %d", c->name, c->nr, nr);
			seen++;
		}
	}
	cr_assert_geq(seen, 280);
}

Test(arches, calls_without_a_name_get_the_default)
{
	static const uint64_t args[6];

	for (enum policy_arch arch = 0; arch < POLICY_ARCHES; arch++) {
		compile("policy/commands.policy", arch);
		cr_assert_eq(run(arch, 400, args), SECCOMP_RET_ERRNO | ENOSYS);
		cr_assert_eq(run(arch, 511, args), SECCOMP_RET_ERRNO | ENOSYS);
		cr_assert_eq(run(arch, 0x3fffffff, args), SECCOMP_RET_ERRNO | ENOSYS);
		compile("policy/netd.policy", arch);
		cr_assert_eq(run(arch, 511, args), SECCOMP_RET_TRAP);
		compile("policy/execd.policy", arch);
		cr_assert_eq(run(arch, 511, args), SECCOMP_RET_ALLOW);
	}
}

Test(arches, another_architecture_gets_badarch)
{
	static const uint32_t others[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64, 0};

	for (enum policy_arch arch = 0; arch < POLICY_ARCHES; arch++) {
		for (size_t f = 0; f < FILES; f++) {
			compile(files[f], arch);
			for (size_t i = 0; i <= sizeof others / sizeof *others; i++) {
				struct seccomp_data data = {.nr = 0, .arch = audit[!arch]};
				uint32_t action;

				if (i < sizeof others / sizeof *others)
					data.arch = others[i];
				cr_assert(bpf_run(&program, &data, &action, NULL) == 0);
				cr_assert_eq(action, policy.badarch_action);
			}
		}
	}
}

Test(arches, x32_calls_get_badarch_on_x86_64)
{
	static const uint64_t args[6];

	for (size_t f = 0; f < FILES; f++) {
		compile(files[f], POLICY_X86_64);
		cr_assert_eq(run(POLICY_X86_64, 0x40000000, args), policy.badarch_action);
		cr_assert_eq(run(POLICY_X86_64, 0x40000000 | SYS_execve, args), policy.badarch_action);
		cr_assert_eq(run(POLICY_X86_64, -1, args), policy.badarch_action);
	}
}

Test(arches, the_linked_programs_are_those_of_the_texts)
{
	const struct seccomp_program *const linked[] = {&policy_execd, &policy_commands,
							&policy_commands_ptrace};
#if defined(__x86_64__)
	enum policy_arch arch = POLICY_X86_64;
#else
	enum policy_arch arch = POLICY_AARCH64;
#endif

	for (size_t i = 0; i < 3; i++) {
		compile(files[i + 2], arch);
		cr_assert_eq(program.count, linked[i]->count);
		cr_assert(memcmp(program.insns, linked[i]->insns, program.count * sizeof *program.insns) ==
			  0);
	}
}

/* The search is balanced: what a call costs does not depend on its luck. */
Test(arches, no_call_costs_more_than_a_few_dozen_instructions)
{
	for (enum policy_arch arch = 0; arch < POLICY_ARCHES; arch++) {
		for (size_t f = 0; f < FILES; f++) {
			compile(files[f], arch);
			for (int nr = 0; nr < 512; nr++) {
				struct seccomp_data data = {.nr = nr, .arch = audit[arch]};
				uint32_t action;
				unsigned steps;

				cr_assert(bpf_run(&program, &data, &action, &steps) == 0);
				cr_assert_leq(steps, 48, "%s: number %d takes %u", files[f], nr, steps);
			}
		}
	}
}
