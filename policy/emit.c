#include "policy/emit.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define X32_BIT 0x40000000u

/* Calls from start up to the next range's start: one action, or the rules of one call. */
struct range {
	uint32_t start;
	uint32_t action;
	const struct policy_rule *rules; /* NULL: the action alone */
	unsigned rule_count;
};

struct program {
	const struct policy *policy;
	struct range ranges[2 * POLICY_RULES + 1];
	unsigned range_count;
	struct sock_filter *insns;
	unsigned count;
	unsigned max;
};

static const struct {
	uint32_t audit;
	uint32_t libseccomp;
} arches[POLICY_ARCHES] = {
    [POLICY_X86_64] = {AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64},
    [POLICY_AARCH64] = {AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64},
};

int policy_number(const struct policy_rule *rule, enum policy_arch arch, bool *ret_known)
{
	int nr = seccomp_syscall_resolve_name_arch(arches[arch].libseccomp, rule->call);

	if (ret_known)
		*ret_known = nr != __NR_SCMP_ERROR;
	/* Below -1: libseccomp's own numbers for calls that this architecture does not have. */
	return nr == __NR_SCMP_ERROR && rule->number >= 0 ? rule->number : nr;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void add_range(struct program *p, struct range range)
{
	const struct range *last = p->range_count > 0 ? &p->ranges[p->range_count - 1] : NULL;

	if (last && !last->rules && !range.rules && last->action == range.action)
		return;
	p->ranges[p->range_count++] = range;
}

/* The calls that have rules, by number. Their count. */
static unsigned collect_calls(const struct policy *policy, enum policy_arch arch, struct range *calls)
{
	unsigned count = 0;

	for (unsigned i = 0, n; i < policy->count; i += n) {
		const struct policy_rule *rule = &policy->rules[i];
		int nr = policy_number(rule, arch, NULL);
		bool plain = rule->condition_count == 0;

		for (n = 1; i + n < policy->count && strcmp(rule->call, policy->rules[i + n].call) == 0; n++)
			;
		if (nr >= 0)
			calls[count++] = (struct range){.start = (uint32_t)nr,
							.action = rule->action,
							.rules = plain ? NULL : rule,
							.rule_count = n};
	}
	qsort(calls, count, sizeof *calls, compare_ranges);
	return count;
}

static int build_ranges(struct program *p, enum policy_arch arch, struct policy_error *error)
{
	static struct range calls[POLICY_RULES];
	unsigned count = collect_calls(p->policy, arch, calls);
	uint32_t next = 0;

	for (unsigned i = 0; i < count; i++) {
		if (calls[i].start < next)
			return policy_fail(error, p->policy->rules[0].file, 0, "two names for call number %u",
					   calls[i].start);
		if (calls[i].start > next || i == 0)
			add_range(p, (struct range){.start = next, .action = p->policy->default_action});
		add_range(p, calls[i]);
		next = calls[i].start + 1;
	}
	add_range(p, (struct range){.start = next, .action = p->policy->default_action});
	return 0;
}

static void put(struct program *p, uint16_t code, uint32_t k, unsigned jt, unsigned jf)
{
	if (p->count < p->max)
		p->insns[p->count] = (struct sock_filter){code, (uint8_t)jt, (uint8_t)jf, k};
	p->count++;
}

static void put_return(struct program *p, uint32_t action)
{
	put(p, BPF_RET | BPF_K, action, 0, 0);
}

static void put_load(struct program *p, size_t offset)
{
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static unsigned condition_size(const struct policy_condition *c)
{
	switch (c->test) {
	case POLICY_ANY:
		return 2;
	case POLICY_NULL:
		return 4;
	default:
		return c->mask == UINT32_MAX ? 2 : 3;
	}
}

/* Goes on behind itself when it holds, else skip instructions further. Both architectures are little-endian:
 * the low half of an argument comes first. */
static void put_condition(struct program *p, const struct policy_condition *c, unsigned skip)
{
	size_t low = offsetof(struct seccomp_data, args) + c->arg * sizeof(uint64_t);

	put_load(p, low);
	switch (c->test) {
	case POLICY_ANY:
		put(p, BPF_JMP | BPF_JSET | BPF_K, c->mask, 0, skip);
		return;
	case POLICY_NULL:
		put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, skip + 2);
		put_load(p, low + sizeof(uint32_t));
		put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, skip);
		return;
	case POLICY_EQUAL:
	case POLICY_DIFFERS:
		break;
	}
	if (c->mask != UINT32_MAX)
		put(p, BPF_ALU | BPF_AND | BPF_K, c->mask, 0, 0);
	if (c->test == POLICY_EQUAL)
		put(p, BPF_JMP | BPF_JEQ | BPF_K, c->value, 0, skip);
	else
		put(p, BPF_JMP | BPF_JEQ | BPF_K, c->value, skip, 0);
}

/* First match decides; what no rule matches has the policy's default. */
static void put_rules(struct program *p, const struct range *range)
{
	for (unsigned i = 0; i < range->rule_count; i++) {
		const struct policy_rule *rule = &range->rules[i];
		unsigned rest = 1;

		for (unsigned j = 0; j < rule->condition_count; j++)
			rest += condition_size(&rule->conditions[j]);
		for (unsigned j = 0; j < rule->condition_count; j++) {
			rest -= condition_size(&rule->conditions[j]);
			put_condition(p, &rule->conditions[j], rest);
		}
		put_return(p, rule->action);
		if (rule->condition_count == 0)
			return;
	}
	put_return(p, p->policy->default_action);
}

static void put_leaf(struct program *p, const struct range *range)
{
	if (range->rules)
		put_rules(p, range);
	else
		put_return(p, range->action);
}

/* A binary search over ranges [from, to). A conditional jump reaches 255 instructions: over a longer left
 * half it takes a second, long one. */
static void put_search(struct program *p, unsigned from, unsigned to)
{
	unsigned middle = from + (to - from) / 2;
	unsigned start = p->count, left;

	if (to - from == 1) {
		put_leaf(p, &p->ranges[from]);
		return;
	}
	put(p, BPF_JMP | BPF_JGE | BPF_K, p->ranges[middle].start, 0, 0);
	put_search(p, from, middle);
	left = p->count - start - 1;
	if (left > UINT8_MAX) {
		p->count = start;
		put(p, BPF_JMP | BPF_JGE | BPF_K, p->ranges[middle].start, 0, 1);
		put(p, BPF_JMP | BPF_JA, left, 0, 0);
		put_search(p, from, middle);
	} else if (start < p->max) {
		p->insns[start].jt = (uint8_t)left;
	}
	put_search(p, middle, to);
}

int policy_emit(const struct policy *policy, enum policy_arch arch, struct sock_filter *insns, unsigned max,
		struct policy_error *error)
{
	static struct program p;
	int r;

	p = (struct program){.policy = policy, .insns = insns, .max = max};
	r = build_ranges(&p, arch, error);
	if (r < 0)
		return r;
	put_load(&p, offsetof(struct seccomp_data, arch));
	put(&p, BPF_JMP | BPF_JEQ | BPF_K, arches[arch].audit, 1, 0);
	put_return(&p, policy->badarch_action);
	put_load(&p, offsetof(struct seccomp_data, nr));
	if (arch == POLICY_X86_64) {
		/* x32 shares the audit architecture and its calls would slip past numbers compared with ours.
		 */
		put(&p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
		put_return(&p, policy->badarch_action);
	}
	put_search(&p, 0, p.range_count);
	if (p.count > max)
		return policy_fail(error, policy->rules[0].file, 0, "needs %u instructions, more than %u",
				   p.count, max);
	return (int)p.count;
}
