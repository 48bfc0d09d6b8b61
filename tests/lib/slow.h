/* Time for slow machines. TEST_SLOW=N, a whole number above 1, makes each deadline of a test N times as long:
 * those of the waits in tests/lib and tests/relay, Criterion's for each test, and tests/run's for each suite.
 * What a test promises of the worker itself (answered within …) stays as it is. */
#ifndef TESTS_LIB_SLOW_H
#define TESTS_LIB_SLOW_H

#include <stdlib.h>

static inline unsigned slow_factor(void)
{
	const char *text = getenv("TEST_SLOW");
	int n = text ? atoi(text) : 1;

	return n > 1 ? (unsigned)n : 1;
}

/* What a deadline of so many milliseconds is here. */
static inline unsigned slow_ms(unsigned ms)
{
	return ms * slow_factor();
}

#endif
