/* Row 27 of "right in the field" as it is there: streams without DATA for 60 s are cut, and the worker idles
 * for 3 min with its defaults. */
#include "tests/lib/idle.h"

#include <criterion/criterion.h>

TestSuite(long_idle, .timeout = 280, .fini = stage_fini);

Test(long_idle, row_27_three_minutes_on_one_connection)
{
	idle_keeps_the_connection("HEARTBEAT_S=", 60000, 180000);
}

/* Where Heartbeats are rare, so are PINGs: none comes before the cut. */
Test(long_idle, row_27_without_heartbeats_is_cut)
{
	cr_assert_eq(idle_loses_the_connection("HEARTBEAT_S=3600", 60000), 0);
}
