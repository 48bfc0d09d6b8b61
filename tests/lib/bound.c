#include "tests/lib/bound.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

pid_t bound_fork(void)
{
	pid_t parent = getpid(), pid = fork(), now;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL);
	now = getppid();
	/* 0: it lives outside of the pid namespace that the child is the first of. */
	if (now != parent && now != 0)
		_exit(127);
	return 0;
}
