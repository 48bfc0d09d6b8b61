#include "tests/lib/world.h"

#include "common/fd.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int loopback_up(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	FD_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0 ? -errno : 0;
}

static int replace(const char *path, const char *text)
{
	char from[] = "/tmp/world-etc-XXXXXX";
	FD_CLOSE int fd = mkstemp(from);
	int r = fd_write_full(fd, text, strlen(text));

	fchmod(fd, 0644);
	if (r == 0 && mount(from, path, NULL, MS_BIND, NULL) < 0)
		r = -errno;
	unlink(from);
	return r;
}

void world_need(void)
{
	if (geteuid() != 0)
		cr_skip_test("a mount and network namespace needs root");
	if (access("/etc/hosts", F_OK) < 0 || access("/etc/resolv.conf", F_OK) < 0)
		cr_skip_test("no /etc/hosts and /etc/resolv.conf to cover");
}

int world_enter(const char *hosts, const char *resolv_conf)
{
	int r;

	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
		return -errno;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	r = loopback_up();
	if (r == 0)
		r = replace("/etc/hosts", hosts);
	return r < 0 ? r : replace("/etc/resolv.conf", resolv_conf);
}
