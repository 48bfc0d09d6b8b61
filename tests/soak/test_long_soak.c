/* suite-timeout: 400 */
#include "tests/soak/soak.h"

#include "tests/lib/space.h"

#include <criterion/criterion.h>

TestSuite(long_soak, .timeout = 1e6, .init = space_need_own, .fini = life_fini);

Test(long_soak, of_any_seed)
{
	life_many(life_seed(), life_time_ms(75));
}
