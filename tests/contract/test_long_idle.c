/* Row 27 of "right in the field" as it is there: streams without DATA for 60 s are cut, and the worker idles
 * for 3 min with its defaults. */
#include "tests/lib/idle.h"

#include <criterion/criterion.h>

TestSuite(long_idle, .timeout = 280, .fini = stage_fini);

Test(long_idle, row_27_three_minutes_on_one_connection)
{
	idle_keeps_the_connection("HEARTBEAT_S=", 60000, 180000);
}

/* The keepalive's PING after 30 s is no DATA. */
Test(long_idle, row_27_is_not_kept_up_by_pings)
{
	cr_assert_geq(idle_loses_the_connection("HEARTBEAT_S=3600", 60000), 1);
}
