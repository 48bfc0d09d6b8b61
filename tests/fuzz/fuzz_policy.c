/* The compiler of policies: any text that it takes must mean the same in both architectures' programs as rule
 * by rule. */
#include "policy/emit.h"
#include "policy/lint.h"
#include "tests/lib/bpf.h"
#include "tests/lib/reference.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define VALUES 24 /* a few: their pairs are tried */

#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct policy policy;
static struct sock_filter insns[BPF_MAXINSNS];

static void compare(enum policy_arch arch, unsigned count, const struct policy_rule *rule, int nr)
{
	static const uint32_t audit[POLICY_ARCHES] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64};
	struct seccomp_program program = {insns, (unsigned short)count};
	uint64_t values[VALUES];
	unsigned many = reference_values(&policy, values, VALUES);

	for (unsigned i = 0; i < many * many; i++) {
		unsigned at = rule->condition_count > 0 ? rule->conditions[0].arg : 0;
		struct seccomp_data d = {.nr = nr, .arch = audit[arch]};
		uint64_t args[6] = {0};
		uint32_t action;

		args[at] = values[i % many];
		args[(at + 1) % 6] = values[i / many];
		memcpy(d.args, args, sizeof args);
		MUST(bpf_run(&program, &d, &action, NULL) == 0);
		MUST(action == reference_action(&policy, rule->call, args));
	}
}

static void emit(enum policy_arch arch)
{
	struct policy_error error;
	int count = policy_emit(&policy, arch, insns, BPF_MAXINSNS, &error);

	if (count < 0) {
		MUST(strlen(error.text) > 0);
		return;
	}
	for (unsigned i = 0; i < policy.count; i++) {
		int nr = policy_number(&policy.rules[i], arch, NULL);

		if (nr >= 0)
			compare(arch, (unsigned)count, &policy.rules[i], nr);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy_error error = {.text = ""};
	char path[32];
	int fd;

	/* An include would read whatever the fuzzer names. */
	if (size > 8192 || memmem(data, size, "include", 7))
		return 0;
	fd = memfd_create("policy", MFD_CLOEXEC);
	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (policy_parse(path, &policy, &error) < 0) {
		MUST(strncmp(error.text, path, strlen(path)) == 0);
	} else {
		MUST(policy_lint(&policy, &error) == 0 || strlen(error.text) > 0);
		for (enum policy_arch arch = 0; arch < POLICY_ARCHES && policy.count > 0; arch++)
			emit(arch);
	}
	close(fd);
	return 0;
}
