#include "common/landlock.h"

#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(landlock, .timeout = 20);

Test(landlock, leaves_out_what_a_kernel_does_not_know)
{
	struct landlock_world all = {
	    .fs = UINT64_MAX,
	    .net = UINT64_MAX,
	    .scoped = UINT64_MAX,
	};
	struct landlock_world w;

	w = landlock_known(0, &all);
	cr_assert(w.fs == 0 && w.net == 0 && w.scoped == 0);
	w = landlock_known(1, &all);
	cr_assert(w.fs == LANDLOCK_FS_REFER - 1 && w.net == 0 && w.scoped == 0);
	cr_assert_eq(landlock_known(2, &all).fs, LANDLOCK_FS_TRUNCATE - 1);
	cr_assert_eq(landlock_known(3, &all).fs, LANDLOCK_FS_IOCTL_DEV - 1);
	cr_assert_eq(landlock_known(3, &all).net, 0);
	cr_assert_eq(landlock_known(4, &all).net, LANDLOCK_NET_BIND | LANDLOCK_NET_CONNECT);
	cr_assert_eq(landlock_known(5, &all).fs, LANDLOCK_FS_ALL);
	cr_assert_eq(landlock_known(5, &all).scoped, 0);
	cr_assert_eq(landlock_known(6, &all).scoped, LANDLOCK_SCOPED_ABSTRACT | LANDLOCK_SCOPED_SIGNAL);
	cr_assert_eq(landlock_known(100, &all).fs, LANDLOCK_FS_ALL);
}

Test(landlock, makes_no_domain_that_would_only_break_rename)
{
	struct landlock_world scope = {.scoped = LANDLOCK_SCOPED_SIGNAL};

	cr_assert_eq(landlock_create(0, &scope, true), -EOPNOTSUPP);
	cr_assert_eq(landlock_create(1, &scope, true), -EOPNOTSUPP);
	cr_assert_eq(landlock_create(5, &scope, false), -EOPNOTSUPP);
}

static int need(int abi)
{
	int have = landlock_abi();

	if (have < abi)
		cr_skip_test("Landlock ABI %d here", have);
	return have;
}

/* Runs in a child, after entering the domain. */
static int in_domain(int ruleset, int (*what)(void *arg), void *arg)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(landlock_enter(ruleset, landlock_abi(), true) < 0 ? 100 : what(arg));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	cr_assert_neq(WEXITSTATUS(status), 100);
	return WEXITSTATUS(status);
}

static int signal_parent(void *arg)
{
	(void)arg;
	return kill(getppid(), 0) < 0 ? errno : 0;
}

Test(landlock, keeps_signals_inside)
{
	struct landlock_world scope = {.scoped = LANDLOCK_SCOPED_SIGNAL}, open_world = {0};
	int abi = need(LANDLOCK_ABI_SCOPE);
	int scoped = landlock_create(abi, &scope, false);
	int unscoped = landlock_create(abi, &open_world, true);

	cr_assert_eq(in_domain(scoped, signal_parent, NULL), EPERM);
	cr_assert_eq(in_domain(unscoped, signal_parent, NULL), 0);
}

static int rename_it(void *arg)
{
	const char *folder = arg;
	int fd = open(folder, O_RDONLY | O_DIRECTORY);

	return renameat(fd, "a/f", fd, "b/f") < 0 ? errno : 0;
}

Test(landlock, does_not_break_rename_across_folders)
{
	char folder[] = "/tmp/landlock.XXXXXX";
	struct landlock_world scope = {.scoped = LANDLOCK_SCOPED_SIGNAL};
	int abi = need(LANDLOCK_ABI_REFER);
	int ruleset = landlock_create(abi, &scope, true), fd;

	cr_assert(mkdtemp(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY);
	cr_assert_eq(mkdirat(fd, "a", 0700), 0);
	cr_assert_eq(mkdirat(fd, "b", 0700), 0);
	cr_assert_geq(openat(fd, "a/f", O_CREAT | O_WRONLY, 0600), 0);
	cr_assert_eq(in_domain(ruleset, rename_it, folder), 0);
	unlinkat(fd, "b/f", 0);
	unlinkat(fd, "a", AT_REMOVEDIR);
	unlinkat(fd, "b", AT_REMOVEDIR);
	rmdir(folder);
}

static int read_folder(void *arg)
{
	return open(arg, O_RDONLY | O_DIRECTORY) < 0 ? errno : 0;
}

Test(landlock, allows_the_folders_that_rules_name)
{
	struct landlock_world reading = {.fs = LANDLOCK_FS_READ_FILE | LANDLOCK_FS_READ_DIR};
	int abi = need(LANDLOCK_ABI_REFER);
	int ruleset = landlock_create(abi, &reading, false);
	char etc[] = "/etc", usr[] = "/usr";

	cr_assert_eq(landlock_allow(ruleset, abi, reading.fs, "/etc"), 0);
	cr_assert_eq(landlock_allow(ruleset, abi, reading.fs, "/nonexistent"), -ENOENT);
	cr_assert_eq(in_domain(ruleset, read_folder, etc), 0);
	cr_assert_eq(in_domain(ruleset, read_folder, usr), EACCES);
}

static int connect_to(void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = *(const in_port_t *)arg;
	return connect(fd, (struct sockaddr *)&to, sizeof to) < 0 ? errno : 0;
}

Test(landlock, allows_the_ports_that_rules_name)
{
	struct landlock_world connecting = {.net = LANDLOCK_NET_CONNECT};
	int abi = need(LANDLOCK_ABI_PORTS);
	int ruleset = landlock_create(abi, &connecting, false);
	struct sockaddr_in at[2];
	socklen_t size = sizeof *at;

	for (int i = 0; i < 2; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		at[i] =
		    (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		cr_assert_eq(bind(fd, (struct sockaddr *)&at[i], sizeof at[i]), 0);
		cr_assert_eq(listen(fd, 1), 0);
		cr_assert_eq(getsockname(fd, (struct sockaddr *)&at[i], &size), 0);
	}
	cr_assert_eq(landlock_allow_port(ruleset, abi, LANDLOCK_NET_CONNECT, ntohs(at[0].sin_port)), 0);
	cr_assert_eq(in_domain(ruleset, connect_to, &at[0].sin_port), 0);
	cr_assert_eq(in_domain(ruleset, connect_to, &at[1].sin_port), EACCES);
}

static int enter_many(void *arg)
{
	int n = 0;

	while (landlock_enter(*(int *)arg, landlock_abi(), true) == 0)
		n++;
	return n;
}

Test(landlock, can_be_entered_sixteen_deep)
{
	struct landlock_world open_world = {0};
	int ruleset = landlock_create(need(LANDLOCK_ABI_REFER), &open_world, true);

	cr_assert_eq(in_domain(ruleset, enter_many, &ruleset), 15);
}
