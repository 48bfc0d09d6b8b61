/* What the filters cost: a call that is always allowed (the kernel keeps a bitmap of those), two that are
 * decided by an argument, and the start of a program. Prints one line for each stack of filters. */
#include "common/clock.h"
#include "policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS  200000
#define ROUNDS 7
#define STARTS 300

/* Nanoseconds a call, the best of a few rounds; it fails, in the kernel or before. */
static double call_ns(long nr, long first, long second)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = clock_now_us(), took;

		for (int i = 0; i < CALLS; i++)
			syscall(nr, first, second, 0);
		took = clock_now_us() - start;
		if (took < best)
			best = took;
	}
	return (double)best * 1000 / CALLS;
}

static double start_us(void)
{
	uint64_t start = clock_now_us();

	for (int i = 0; i < STARTS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
	}
	return (double)(clock_now_us() - start) / STARTS;
}

static void measure(const char *name)
{
	printf("%-24s getppid %4.0f ns  ioctl %4.0f ns  socket %4.0f ns  fork, exec, wait %5.0f us\n", name,
	       call_ns(SYS_getppid, 0, 0), call_ns(SYS_ioctl, -1, 0x5413), call_ns(SYS_socket, -1, 0),
	       start_us());
	fflush(stdout);
}

int main(void)
{
	measure("no filter");
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (seccomp_load(&policy_execd) < 0)
		return 1;
	measure("execd's");
	if (seccomp_load(&policy_commands) < 0)
		return 1;
	measure("execd's and commands'");
	return 0;
}
