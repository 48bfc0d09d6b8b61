/* A netd that says nothing: execd waits for its sign of life, and no longer. */
#include "tests/lib/siege.h"

#include <criterion/criterion.h>

TestSuite(hostile_netd_long, .timeout = 120, .fini = siege_fini);

#define ROW_MS 40000

Test(hostile_netd_long, no_silence_of_it_lasts)
{
	static const struct siege_row rows[] = {
	    {"silence before jailed", "jailing", "silence", "silence", {"msg=\"attempt failed\""}, false},
	    {"silence before attached", "dialling", "silence", "silence", {"msg=\"attempt failed\""}, false},
	    {"silence", NULL, "silence", "silence", {"msg=\"stream lost\""}, false},
	    {"answers that it never reads",
	     NULL,
	     "full-stay",
	     "silence",
	     {"the channel is full", "msg=\"stream lost\""},
	     false},
	};

	siege(rows, sizeof rows / sizeof *rows, ROW_MS);
}
