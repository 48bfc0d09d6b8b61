/* What a policy's text means, worked out rule by rule: the compiled program must agree. */
#ifndef TESTS_LIB_REFERENCE_H
#define TESTS_LIB_REFERENCE_H

#include "policy/parse.h"

/* The action for a call by name; call NULL: one that has no name here. */
uint32_t reference_action(const struct policy *policy, const char *call, const uint64_t args[6]);

/* Values worth trying as arguments: every value and bit of the policy's conditions, each beside its
 * neighbours and with bits set above the low 32. Their count, at most max. */
unsigned reference_values(const struct policy *policy, uint64_t *values, unsigned max);

#endif
