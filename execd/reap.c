#include "execd/reap.h"

#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* At an execve the kernel sends a tracee SIGTRAP in its own name. One that it sends itself looks the same. */
static bool is_of_execve(pid_t pid, int sig)
{
	siginfo_t info;

	return sig == SIGTRAP && ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) == 0 &&
	       info.si_code == SI_USER && info.si_pid == pid;
}

bool reap_is_exit(pid_t pid, int status)
{
	intptr_t sig;

	if (!WIFSTOPPED(status))
		return true;
	sig = is_of_execve(pid, WSTOPSIG(status)) ? 0 : WSTOPSIG(status);
	ptrace(PTRACE_DETACH, pid, NULL, sig);
	return false;
}
