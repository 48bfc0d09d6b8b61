#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
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

void space_own_proc(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", 0, NULL) < 0)
		_exit(125);
}
