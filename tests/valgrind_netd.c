/* Stands where execd looks for netd and runs the real one in valgrind. A program, not a script: execd starts
 * netd from a sealed copy without a name, which an interpreter cannot open. NETD and LOGS come from the
 * makefile. */
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char *arguments[] = {"valgrind",
			     "-q",
			     "--track-fds=yes",
			     "--leak-check=full",
			     "--show-leak-kinds=definite",
			     "--log-file=" LOGS "/netd.%p",
			     NETD,
			     argc > 1 ? argv[1] : NULL,
			     NULL};

	execvp("/usr/bin/valgrind", arguments);
	perror("valgrind");
	return 127;
}
