/* Giving up privileges, in children: each step is in force afterwards, and there is no way back. */
#include "common/drop.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define UID 64123u
#define GID 64124u

#define DROP_FAILED 200

static const gid_t groups[] = {64125, 64126};

TestSuite(drop, .timeout = 20);

/* Runs check in a child after the drop; the exit code says which check failed (0: none), or DROP_FAILED. */
static int after(const struct drop *d, int (*check)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		const char *step;
		int err = drop_privileges(d, &step);

		_exit(err < 0 ? DROP_FAILED : check());
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "status %x", status);
	return WEXITSTATUS(status);
}

static void need_root(void)
{
	if (!drop_holds(CAP_SETUID) || !drop_holds(CAP_SETPCAP))
		cr_skip_test("needs root");
}

static bool is_hard(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && prctl(PR_GET_DUMPABLE) == 0;
}

static bool bounding_is_empty(void)
{
	for (cap_value_t c = 0; cap_get_bound(c) >= 0; c++) {
		if (cap_get_bound(c) != 0)
			return false;
	}
	return true;
}

static int is_another_user(void)
{
	uid_t r, e, s;
	gid_t have[8];

	if (getresuid(&r, &e, &s) < 0 || r != UID || e != UID || s != UID)
		return 1;
	if (getresgid(&r, &e, &s) < 0 || r != GID || e != GID || s != GID)
		return 2;
	if (getgroups(8, have) != 2 || have[0] != groups[0] || have[1] != groups[1])
		return 3;
	if (drop_permitted() != 0 || !bounding_is_empty())
		return 4;
	if (!is_hard())
		return 5;
	if (setuid(0) == 0 || setgid(0) == 0 || setgroups(0, NULL) == 0)
		return 6;
	return prctl(PR_GET_SECUREBITS) & 1 ? 0 : 7;
}

Test(drop, takes_another_identity_for_good)
{
	struct drop d = {.change_ids = true, .uid = UID, .gid = GID, .groups = groups, .group_count = 2};

	need_root();
	cr_assert_eq(after(&d, is_another_user), 0);
}

static int keeps_two(void)
{
	const uint64_t two = DROP_CAP(CAP_KILL) | DROP_CAP(CAP_SETPCAP);

	if (getuid() != 0 || drop_permitted() != two)
		return 1;
	if (!drop_holds(CAP_KILL) || drop_holds(CAP_CHOWN))
		return 2;
	if (cap_get_bound(CAP_KILL) != 1 || cap_get_bound(CAP_CHOWN) != 0)
		return 3;
	return is_hard() ? 0 : 4;
}

Test(drop, keeps_the_ids_and_what_is_named)
{
	const uint64_t two = DROP_CAP(CAP_KILL) | DROP_CAP(CAP_SETPCAP);

	need_root();
	cr_assert_eq(after(&(struct drop){.keep = two, .bounding = two}, keeps_two), 0);
}

/* As a program sees it: uid 0 without what root could. */
static int exec_has_no_capabilities(void)
{
	execl("/bin/bash", "bash", "-c", "[[ $(grep ^CapEff /proc/self/status) == *0000000000000000 ]]",
	      (char *)NULL);
	return 9;
}

Test(drop, leaves_root_nothing_after_an_execve)
{
	need_root();
	cr_assert_eq(after(&(struct drop){0}, exec_has_no_capabilities), 0);
}

static int exec_has_net_raw(void)
{
	execl("/bin/bash", "bash", "-c",
	      "[[ $(grep ^CapEff /proc/self/status) == *0000000000002000 && $UID == 64123 ]]", (char *)NULL);
	return 9;
}

Test(drop, hands_a_capability_through_an_execve_of_another_uid)
{
	struct drop d = {
	    .change_ids = true, .uid = UID, .gid = GID, .keep = DROP_CAP(CAP_NET_RAW), .ambient = true};

	need_root();
	if (!drop_holds(CAP_NET_RAW))
		cr_skip_test("needs CAP_NET_RAW");
	cr_assert_eq(after(&d, exec_has_net_raw), 0);
}

static int drops_again(void)
{
	const char *step;

	return drop_privileges(&(struct drop){0}, &step) == 0 && drop_permitted() == 0 && bounding_is_empty()
		   ? 0
		   : 1;
}

Test(drop, may_follow_another)
{
	const uint64_t one = DROP_CAP(CAP_SETPCAP);

	need_root();
	cr_assert_eq(after(&(struct drop){.keep = one, .bounding = one}, drops_again), 0);
}

static int nothing(void)
{
	return 0;
}

Test(drop, fails_hard_for_what_it_cannot_have)
{
	struct drop uid = {.change_ids = true, .uid = getuid() + 1, .gid = getgid()};
	struct drop gid = {.change_ids = true, .uid = getuid(), .gid = getgid() + 1};

	if (drop_holds(CAP_SETUID))
		cr_skip_test("is for the unprivileged run");
	cr_assert_eq(after(&uid, nothing), DROP_FAILED);
	cr_assert_eq(after(&gid, nothing), DROP_FAILED);
	cr_assert_eq(after(&(struct drop){.keep = DROP_CAP(CAP_CHOWN)}, nothing), DROP_FAILED);
}

static int is_hardened(void)
{
	return is_hard() && drop_permitted() == 0 ? 0 : 1;
}

Test(drop, needs_no_privilege_for_the_ids_in_force)
{
	struct drop same = {.change_ids = true, .uid = getuid(), .gid = getgid()};

	cr_assert_eq(after(&(struct drop){0}, is_hardened), 0);
	if (!drop_holds(CAP_SETUID))
		cr_assert_eq(after(&same, is_hardened), 0);
}

/* A process of the same uid, and without capabilities as commands are, tries to open our memory. */
static int memory_is_shut(void)
{
	char path[64];
	int status;
	pid_t pid;

	snprintf(path, sizeof path, "/proc/%d/mem", getpid());
	pid = fork();
	if (pid == 0)
		_exit(open(path, O_RDONLY) >= 0 ? 1 : 0);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

Test(drop, shuts_the_memory_to_processes_of_the_same_uid)
{
	struct drop d = {.change_ids = drop_holds(CAP_SETUID), .uid = UID, .gid = GID};

	cr_assert_eq(after(&d, memory_is_shut), 0);
}

Test(drop, knows_capabilities_by_name)
{
	char much[100];

	memset(much, 'a', sizeof much);
	cr_assert_eq(drop_capability_by_name("cap_kill", 8), CAP_KILL);
	cr_assert_eq(drop_capability_by_name("CAP_KILL", 8), CAP_KILL);
	cr_assert_eq(drop_capability_by_name("Kill,rest", 4), CAP_KILL);
	cr_assert_eq(drop_capability_by_name("", 0), -EINVAL);
	cr_assert_eq(drop_capability_by_name("cap_", 4), -EINVAL);
	cr_assert_eq(drop_capability_by_name("cap_kil", 7), -EINVAL);
	cr_assert_eq(drop_capability_by_name("63", 2), -EINVAL);
	cr_assert_eq(drop_capability_by_name(much, sizeof much), -EINVAL);
}
