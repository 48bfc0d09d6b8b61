#include "execd/slot/kill_landlock.h"

#include <errno.h>
#include <signal.h>

bool kill_landlock_reachable(pid_t outsider)
{
	return kill(outsider, 0) == 0;
}

bool kill_landlock_held_back(pid_t outsider)
{
	return kill(outsider, 0) < 0 && errno == EPERM;
}

int kill_landlock(pid_t parent)
{
	if (!kill_landlock_held_back(parent))
		return -EPERM;
	kill(-1, SIGKILL);
	return 0;
}
