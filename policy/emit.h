/* A policy as a BPF program for one architecture (build time only). */
#ifndef POLICY_EMIT_H
#define POLICY_EMIT_H

#include "policy/parse.h"

#include <linux/filter.h>

enum policy_arch { POLICY_X86_64, POLICY_AARCH64, POLICY_ARCHES };

/* The number of a rule's call on an architecture, below 0: not there. *ret_known (may be NULL): libseccomp
 * knows the name, perhaps for other architectures only. */
int policy_number(const struct policy_rule *rule, enum policy_arch arch, bool *ret_known);

/* Writes at most max instructions. Each call costs a binary search over the ranges of calls that are decided
 * alike, then the tests of its own rules. The count, or -EINVAL with error->text. */
int policy_emit(const struct policy *policy, enum policy_arch arch, struct sock_filter *insns, unsigned max,
		struct policy_error *error);

#endif
