/* Row 27 of "right in the field": a proxy that cuts streams without DATA. Here its limit and the heartbeat's
 * interval are scaled down; test_long_idle.c has the real ones. */
#include "tests/lib/idle.h"

#include <criterion/criterion.h>

TestSuite(idle, .timeout = 60, .fini = stage_fini);

Test(idle, row_27_is_kept_up_by_heartbeats)
{
	idle_keeps_the_connection("HEARTBEAT_S=1", 4000, 9000);
}

/* That proxy does cut; and the worker says so and comes back. */
Test(idle, row_27_without_heartbeats_is_cut)
{
	idle_loses_the_connection("HEARTBEAT_S=3600", 2000);
}
