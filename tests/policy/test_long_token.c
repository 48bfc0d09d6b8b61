/* The token stays secret through many restarts of netd beside a kept process that looks for it all the time.
 */
#include "tests/policy/hammer.h"

TestSuite(token_long, .timeout = 280, .fini = stage_fini);

#define RESTARTS 50

Test(token_long, is_safe_through_many_restarts_beside_what_was_kept)
{
	if (access("/usr/bin/python3", X_OK) < 0)
		cr_skip_test("no python3");
	restart_beside_a_hammer(RESTARTS, true);
}

Test(token_long, is_safe_through_many_restarts_without_landlock)
{
	if (access("/usr/bin/python3", X_OK) < 0)
		cr_skip_test("no python3");
	restart_beside_a_hammer(RESTARTS, false);
}
