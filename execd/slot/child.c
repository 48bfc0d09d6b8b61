#include "execd/slot/child.h"

#include "common/landlock.h"
#include "common/outcome.h"
#include "common/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_WANTED (8u * 1024u * 1024u) /* execve takes arguments up to a quarter of it */

/* The memory is the slot's: what is written here is how the slot learns of it. */
struct told {
	uint32_t failed;
	uint32_t folder_errno;
};

/* CHILD */
static _Noreturn void fail(volatile struct told *told, enum start_step step, int err)
{
	told->failed = OUTCOME_START_VALUE(step, err);
	_exit(127);
}

/* CHILD. By its path, as commands remove, remake and rename their folder. */
static void enter_folder(const char *folder, volatile struct told *told)
{
	if (chdir(folder) == 0)
		return;
	told->folder_errno = (uint32_t)errno;
	if (chdir("/") < 0)
		fail(told, START_FOLDER, errno);
}

/* CHILD */
static int raise_stack(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) < 0)
		return -errno;
	if (limit.rlim_cur >= STACK_WANTED)
		return 0;
	limit.rlim_cur = limit.rlim_max < STACK_WANTED ? limit.rlim_max : STACK_WANTED;
	return setrlimit(RLIMIT_STACK, &limit) < 0 ? -errno : 0;
}

/* CHILD. The dispositions are the slot's: all default, set once. Every descriptor is CLOEXEC already;
 * close_range says it again for one that a later change forgets, and may be missing (Linux before 5.9). */
static _Noreturn void become_bash(const struct child_plan *plan, volatile struct told *told)
{
	sigset_t none;
	int err;

	if (setsid() < 0)
		fail(told, START_SESSION, errno);
	for (int i = 0; i < 3; i++) {
		if (dup2(plan->fds[i], i) < 0)
			fail(told, START_FILES, errno);
	}
	syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
	enter_folder(plan->folder, told);
	if (plan->raise_stack && (err = raise_stack()) < 0)
		fail(told, START_LIMITS, -err);
	if (plan->ruleset >= 0 && (err = landlock_enter(plan->ruleset, plan->landlock_abi, true)) < 0)
		fail(told, START_LANDLOCK, -err);
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		fail(told, START_SESSION, errno);
	if (plan->guard && (err = seccomp_load(plan->guard)) < 0)
		fail(told, START_SECCOMP, -err);
	if (plan->seccomp && (err = seccomp_load(plan->seccomp)) < 0)
		fail(told, START_SECCOMP, -err);
	execve(plan->bash, plan->argv, plan->environ);
	fail(told, START_EXEC, errno);
}

pid_t child_start(const struct child_plan *plan, uint32_t *ret_failed, uint32_t *ret_folder_errno)
{
	volatile struct told told = {0};
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

	if (pid == 0)
		become_bash(plan, &told); /* NOLINT(clang-analyzer-unix.Vfork) */
	if (pid < 0) {
		*ret_failed = OUTCOME_START_VALUE(START_PROCESS, errno);
		return -1;
	}
	if (!told.failed) {
		*ret_folder_errno = told.folder_errno;
		return pid;
	}
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		continue;
	*ret_failed = told.failed;
	return -1;
}
