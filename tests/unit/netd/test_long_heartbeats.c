/* row 31 of "right in the field" (tests/contract/test_field.c): 174 days.
 * suite-timeout: 300 */
#include "tests/unit/netd/heartbeats.h"

Test(long_heartbeats, come_each_at_its_time, .timeout = 280)
{
	live_for(1000000);
}
