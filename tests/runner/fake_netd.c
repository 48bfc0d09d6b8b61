/* Stands in for netd: tells on stderr in which state it was started, before it changes anything, and leaves.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* The numbers of all open descriptors but that of the folder that is read. */
static void tell_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	fprintf(stderr, "descriptors");
	while (d && (e = readdir(d))) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && fd != dirfd(d))
			fprintf(stderr, " %d", fd);
	}
	fprintf(stderr, "\n");
}

static void tell_signals(void)
{
	struct sigaction a;
	sigset_t blocked;
	int odd = 0;

	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (int s = 1; s < 32; s++)
		odd +=
		    sigismember(&blocked, s) == 1 || (sigaction(s, NULL, &a) == 0 && a.sa_handler != SIG_DFL);
	fprintf(stderr, "odd signals %d\n", odd);
}

int main(int argc, char **argv)
{
	struct rlimit core;
	char folder[64] = "";
	int death = 0;

	prctl(PR_GET_PDEATHSIG, &death);
	getrlimit(RLIMIT_CORE, &core);
	fprintf(stderr, "dumpable %d\n", prctl(PR_GET_DUMPABLE));
	fprintf(stderr, "no_new_privs %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	fprintf(stderr, "death signal %d\n", death);
	fprintf(stderr, "core %llu\n", (unsigned long long)core.rlim_cur);
	fprintf(stderr, "own session %d\n", getsid(0) == getpid());
	fprintf(stderr, "arguments %d %s\n", argc, argv[0]);
	fprintf(stderr, "environment %d\n", environ[0] != NULL);
	fprintf(stderr, "folder %s\n", getcwd(folder, sizeof folder) ? folder : "?");
	tell_signals();
	tell_descriptors();
	return 3;
}
