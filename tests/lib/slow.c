#include "tests/lib/slow.h"

#include <criterion/criterion.h>
#include <criterion/hooks.h>

static void stretch(struct criterion_test_extra_data *data)
{
	if (data)
		data->timeout *= slow_factor();
}

static void stretch_tests(struct criterion_suite_set *suite)
{
	FOREACH_SET(struct criterion_test * test, suite->tests)
	{
		stretch(test->data);
	}
}

ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
	FOREACH_SET(struct criterion_suite_set * suite, tests->suites)
	{
		stretch(suite->suite.data);
		stretch_tests(suite);
	}
}
