/* What a policy must keep to beyond its grammar (build time only). */
#ifndef POLICY_LINT_H
#define POLICY_LINT_H

#include "policy/parse.h"

/* Names exist, given numbers are right, allowed calls that are dangerous carry a reason. 0, or -EINVAL with
 * error->text. */
int policy_lint(const struct policy *policy, struct policy_error *error);

/* A filter is inherited: whatever outer refuses, inner must refuse too, or its own text lies. 0, or -EINVAL
 * with error->text. */
int policy_lint_subset(const struct policy *outer, const struct policy *inner, struct policy_error *error);

#endif
