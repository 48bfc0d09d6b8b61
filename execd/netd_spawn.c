#include "execd/netd_spawn.h"

#include "common/channel_io.h"
#include "common/dispositions.h"
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#define IMAGE_FD       (CHANNEL_FD + 1)
#define OUT_OF_THE_WAY 16

/* CHILD */
_Noreturn static void fail(const char *step, int err)
{
	log_error("netd cannot be started", LOG_STR("step", step), LOG_ERR(err));
	_exit(127);
}

/* CHILD: the descriptors may be any, so they step aside first. All others are close-on-exec. */
static void place_descriptors(int channel_fd, int null_fd, int image_fd)
{
	int channel = fcntl(channel_fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
	int null = fcntl(null_fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
	int image = image_fd >= 0 ? fcntl(image_fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY) : -1;

	if (channel < 0 || null < 0 || (image_fd >= 0 && image < 0))
		fail("descriptors", errno);
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(channel, CHANNEL_FD) < 0)
		fail("descriptors", errno);
	if (image >= 0 && dup3(image, IMAGE_FD, O_CLOEXEC) < 0)
		fail("descriptors", errno);
}

/* CHILD */
static void drop(const struct config *config)
{
	const struct config_user *u = &config->netd_user;
	struct drop d = {.change_ids = u->set,
			 .uid = u->uid,
			 .gid = u->gid,
			 .groups = u->groups,
			 .group_count = u->group_count};
	const char *step;
	int err = drop_privileges(&d, &step);

	if (err < 0)
		fail(step, err);
}

/* CHILD: a change of uid clears the parent-death signal, so it is set after it; a parent that died before
 * that has left us to somebody else. */
static void die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL) < 0)
		fail("parent-death signal", errno);
	if (getppid() != parent)
		_exit(127);
}

/* CHILD */
_Noreturn static void execute(const struct netd_image *image)
{
	static char name[] = "netd";
	char *argv[] = {name, NULL}, *none[] = {NULL};

	if (image->fd >= 0)
		execveat(IMAGE_FD, "", argv, none, AT_EMPTY_PATH);
	else
		execve(image->path, argv, none);
	fail("execve", errno);
}

pid_t netd_spawn(const struct netd_image *image, const struct config *config, int channel_fd, int null_fd)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	dispositions_reset();
	if (setsid() < 0)
		fail("session", errno);
	place_descriptors(channel_fd, null_fd, image->fd);
	if (chdir("/") < 0)
		fail("folder", errno);
	drop(config);
	die_with(parent);
	execute(image);
}
