/* A policy's text, read and checked (build time only). The language: sandbox-worker-policy(5). */
#ifndef POLICY_PARSE_H
#define POLICY_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_NAME       40
#define POLICY_RULES      640
#define POLICY_CONDITIONS 3

enum policy_test { POLICY_EQUAL, POLICY_DIFFERS, POLICY_ANY, POLICY_NULL };

/* One comparison of an argument's low 32 bits, as the kernel takes an int; POLICY_NULL alone looks at all 64.
 */
struct policy_condition {
	unsigned arg;
	enum policy_test test;
	uint32_t mask; /* all ones: none was given */
	uint32_t value;
};

struct policy_rule {
	char call[POLICY_NAME];
	int number;      /* what the text gives, the same on all architectures; -1: ask libseccomp */
	uint32_t action; /* SECCOMP_RET_* with its data */
	struct policy_condition conditions[POLICY_CONDITIONS];
	unsigned condition_count;
	bool has_reason;
	const char *file; /* the caller's string, or one of the policy's own */
	unsigned line;
};

/* Rules are sorted by name; those of one call are next to each other in the order of the text: the first that
 * matches decides. */
struct policy {
	uint32_t default_action;
	uint32_t badarch_action;
	bool has_default;
	bool has_badarch;
	struct policy_rule rules[POLICY_RULES];
	unsigned count;
	char included[256];
};

struct policy_error {
	char text[512]; /* file:line: what is wrong */
};

/* Reads a policy file and what it includes. 0, or -EINVAL with error->text. */
int policy_parse(const char *file, struct policy *ret, struct policy_error *error);

/* Writes error->text and returns -EINVAL. line 0: the file as a whole. */
int policy_fail(struct policy_error *error, const char *file, unsigned line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A constant by name: those that have one value on x86_64 and aarch64. 0 or -ENOENT. */
int policy_constant(const char *name, uint32_t *ret_value);
/* An errno by name. 0 or -ENOENT. */
int policy_errno(const char *name, uint32_t *ret_value);

/* True when both rules test the same. */
bool policy_same_conditions(const struct policy_rule *a, const struct policy_rule *b);

#endif
