#include "tests/lib/reference.h"

#include <string.h>

static bool holds(const struct policy_condition *c, const uint64_t args[6])
{
	uint32_t low = (uint32_t)args[c->arg] & c->mask;

	switch (c->test) {
	case POLICY_EQUAL:
		return low == c->value;
	case POLICY_DIFFERS:
		return low != c->value;
	case POLICY_ANY:
		return low != 0;
	case POLICY_NULL:
		return args[c->arg] == 0;
	}
	return false;
}

uint32_t reference_action(const struct policy *policy, const char *call, const uint64_t args[6])
{
	for (unsigned i = 0; call && i < policy->count; i++) {
		const struct policy_rule *rule = &policy->rules[i];
		bool all = strcmp(rule->call, call) == 0;

		for (unsigned j = 0; all && j < rule->condition_count; j++)
			all = holds(&rule->conditions[j], args);
		if (all)
			return rule->action;
	}
	return policy->default_action;
}

struct values {
	uint64_t *at;
	unsigned count;
	unsigned max;
};

static void add(struct values *v, uint64_t value)
{
	for (unsigned i = 0; i < v->count; i++) {
		if (v->at[i] == value)
			return;
	}
	if (v->count < v->max)
		v->at[v->count++] = value;
}

static void add_around(struct values *v, uint32_t value)
{
	add(v, value);
	add(v, value + 1u);
	add(v, value - 1u);
	add(v, (uint64_t)value | 1ull << 32);
}

unsigned reference_values(const struct policy *policy, uint64_t *values, unsigned max)
{
	struct values v = {.at = values, .max = max};

	add_around(&v, 0);
	for (unsigned i = 0; i < policy->count; i++) {
		for (unsigned j = 0; j < policy->rules[i].condition_count; j++) {
			const struct policy_condition *c = &policy->rules[i].conditions[j];

			add_around(&v, c->value);
			for (unsigned bit = 0; c->mask != UINT32_MAX && bit < 32; bit++) {
				if (c->mask >> bit & 1)
					add_around(&v, c->value ^ 1u << bit);
			}
		}
	}
	return v.count;
}
