#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool space_is_own(void)
{
	char comm[32] = "";
	FILE *f = fopen("/proc/1/comm", "re");

	if (f && !fgets(comm, sizeof comm, f))
		comm[0] = '\0';
	if (f)
		fclose(f);
	return strcmp(comm, "reap\n") == 0;
}

void space_need_own(void)
{
	if (geteuid() == 0 && !space_is_own())
		cr_skip_test("as root only by tests/run, which gives it a pid namespace");
}
