#include "execd/process.h"

#include "common/drop.h"
#include "common/fd.h"
#include "common/log.h"
#include "execd/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define OOM_SCORE_ADJ "-500"

/* A closed descriptor 2 would make the first file that is opened the log. */
static int open_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_NOCTTY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int process_harden(const char **ret_step)
{
	struct rlimit core;
	int err;

	/* The soft limit: commands may raise theirs as far as we could. Ours is of no matter once we are not
	 * dumpable. */
	*ret_step = "core limit";
	if (getrlimit(RLIMIT_CORE, &core) < 0)
		return -errno;
	core.rlim_cur = 0;
	if (setrlimit(RLIMIT_CORE, &core) < 0)
		return -errno;
	*ret_step = "dumpable";
	if (prctl(PR_SET_DUMPABLE, 0UL, 0, 0, 0) < 0)
		return -errno;
	*ret_step = "standard descriptors";
	err = open_standard();
	if (err < 0)
		return err;
	fd_close_between(STDERR_FILENO + 1, ~0u);
	signals_reset();
	(void)log_own_stderr(); /* without /proc, say, it stays as it is */
	return 0;
}

/* Advice to the kernel: without CAP_SYS_RESOURCE it may not be lowered, and nothing hangs on it. */
static void shield_from_oom(void)
{
	FD_CLOSE int fd = -1;

	if (!drop_holds(CAP_SYS_RESOURCE))
		return;
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)fd_write_full(fd, OOM_SCORE_ADJ, sizeof OOM_SCORE_ADJ - 1);
}

int process_prepare(const char **ret_step)
{
	struct rlimit files;

	*ret_step = "subreaper";
	if (prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0, 0, 0) < 0)
		return -errno;
	*ret_step = "descriptor limit";
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	shield_from_oom();
	return 0;
}

uint64_t process_capabilities(uint64_t keep)
{
	const uint64_t wanted = DROP_CAP(CAP_SETUID) | DROP_CAP(CAP_SETGID) | DROP_CAP(CAP_KILL) |
				DROP_CAP(CAP_SYS_RESOURCE) | DROP_CAP(CAP_SYS_NICE) | DROP_CAP(CAP_SETPCAP);

	return (wanted | keep) & drop_permitted();
}

int process_drop(uint64_t keep, const char **ret_step)
{
	uint64_t kept = process_capabilities(keep);

	return drop_privileges(&(struct drop){.keep = kept, .bounding = kept}, ret_step);
}
