/* row 31 of "right in the field" (tests/contract/test_field.c), a fiftieth of it: three and a half days. */
#include "tests/unit/netd/heartbeats.h"

Test(heartbeats, come_each_at_its_time, .timeout = 300 /* by valgrind */)
{
	live_for(20000);
}
