#include "execd/init.h"

#include "common/drop.h"
#include "common/log.h"
#include "execd/reap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_BY_SIGNAL 128

/* The rest is ignored, or the kernel keeps it from a process 1 that handles none. */
static const int passed_on[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};

/* Reaps all that have ended. True, with *ret_code, when the child was among them. */
static bool reap(pid_t child, int *ret_code)
{
	bool gone = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (!reap_is_exit(pid, status) || pid != child)
			continue;
		gone = true;
		*ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_BY_SIGNAL + WTERMSIG(status);
	}
	return gone;
}

/* When process 1 exits the kernel kills whatever is left in the container. */
_Noreturn static void be_init(pid_t child, const sigset_t *set)
{
	const char *step;
	int code = 1;
	int err = drop_privileges(&(struct drop){0}, &step);

	if (err < 0) {
		log_error("init cannot drop its privileges", LOG_STR("step", step), LOG_ERR(err));
		_exit(1);
	}
	prctl(PR_SET_NAME, "init");
	for (;;) {
		int sig = sigwaitinfo(set, NULL);

		if (sig > 0 && sig != SIGCHLD)
			kill(child, sig);
		if (reap(child, &code))
			exit(code);
	}
}

/* Of others: whoever executed us had them. What of them has ended is reaped. */
static bool has_children(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
		(void)reap_is_exit(pid, status);
	return pid == 0;
}

int init_split(struct environment *env, int *ret_parent)
{
	sigset_t set, before;
	int ends[2];
	pid_t child;

	*ret_parent = -1;
	if (getpid() != 1 && !has_children())
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, &before);
	child = fork();
	if (child < 0)
		return -errno;
	if (child > 0) {
		close(ends[0]);
		environment_wipe(env);
		be_init(child, &set);
	}
	close(ends[1]);
	*ret_parent = ends[0];
	sigprocmask(SIG_SETMASK, &before, NULL);
	return setsid() < 0 ? -errno : 0;
}
