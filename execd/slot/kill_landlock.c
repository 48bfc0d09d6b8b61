#include "execd/slot/kill_landlock.h"

#include "common/fd.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ask(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 ? -errno : 0;
}

int kill_landlock_witness(pid_t outsider)
{
	FD_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, outsider, 0);
	int err;

	if (pidfd < 0)
		return -errno;
	err = ask(pidfd);
	return err < 0 ? err : fd_steal(&pidfd);
}

bool kill_landlock_held_back(int witness)
{
	return witness >= 0 && ask(witness) == -EPERM;
}

int kill_landlock(int witness)
{
	if (!kill_landlock_held_back(witness))
		return -EPERM;
	kill(-1, SIGKILL);
	return 0;
}
