/* A short soak: two lives that are always the same, and one that never is. With SOAK_S or SOAK_SEED only the
 * last, for SOAK_S seconds from SOAK_SEED on. suite-timeout: 240 */
#include "tests/soak/soak.h"

#include "common/clock.h"
#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define SHORT_S 6u

TestSuite(soak, .timeout = 1e6, .init = space_need_own, .fini = life_fini);

static void known(uint64_t seed)
{
	if (getenv("SOAK_S") || getenv("SOAK_SEED"))
		cr_skip_test("not the one that was asked for");
	life_many(seed, SHORT_S * 1000u);
}

Test(soak, of_a_seed_with_keep)
{
	known(1); /* and TLS, the sweep, a drain */
}

Test(soak, of_a_seed_with_kill)
{
	known(5);
}

Test(soak, of_any_seed)
{
	life_many(life_seed(), life_time_ms(SHORT_S));
}
