#include "common/drop.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define GROUPS_MAX 256

struct cap_sets {
	uint64_t effective;
	uint64_t permitted;
	uint64_t inheritable;
};

static int get_sets(struct cap_sets *ret)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (capget(&header, data) < 0)
		return -errno;
	*ret = (struct cap_sets){
	    .effective = data[0].effective | (uint64_t)data[1].effective << 32,
	    .permitted = data[0].permitted | (uint64_t)data[1].permitted << 32,
	    .inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32,
	};
	return 0;
}

static int set_sets(const struct cap_sets *s)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
	    {(uint32_t)s->effective, (uint32_t)s->permitted, (uint32_t)s->inheritable},
	    {(uint32_t)(s->effective >> 32), (uint32_t)(s->permitted >> 32),
	     (uint32_t)(s->inheritable >> 32)},
	};

	return capset(&header, data) < 0 ? -errno : 0;
}

uint64_t drop_permitted(void)
{
	struct cap_sets s = {0};

	return get_sets(&s) < 0 ? 0 : s.permitted;
}

bool drop_holds(unsigned capability)
{
	struct cap_sets s = {0};

	return get_sets(&s) == 0 && (s.effective & s.permitted & DROP_CAP(capability));
}

int drop_capability_by_name(const char *name, size_t length)
{
	char full[64] = "cap_";
	size_t prefix = length > 4 && strncasecmp(name, "cap_", 4) == 0 ? 0 : 4;
	cap_value_t value;

	if (length == 0 || length + prefix >= sizeof full)
		return -EINVAL;
	for (size_t i = 0; i < length; i++)
		full[prefix + i] = (char)tolower((unsigned char)name[i]);
	full[prefix + length] = '\0';
	if (cap_from_name(full, &value) < 0 || cap_get_bound(value) < 0)
		return -EINVAL;
	return value;
}

/* cap_get_bound is below 0 past the last capability that the kernel knows. */
static int drop_bounding(uint64_t bounding)
{
	for (cap_value_t c = 0; c < 64 && cap_get_bound(c) >= 0; c++) {
		if (bounding & DROP_CAP(c))
			continue;
		if (cap_get_bound(c) == 1 && cap_drop_bound(c) < 0)
			return -errno;
		if (cap_get_bound(c) != 0)
			return -EPERM;
	}
	return 0;
}

static int lock_securebits(void)
{
	int bits = prctl(PR_GET_SECUREBITS);

	if (bits < 0)
		return -errno;
	bits |= SECBIT_NOROOT | SECBIT_NOROOT_LOCKED;
	if (prctl(PR_SET_SECUREBITS, (unsigned long)bits, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_GET_SECUREBITS) == bits ? 0 : -EPERM;
}

static bool same_groups(const gid_t *groups, size_t count)
{
	gid_t now[GROUPS_MAX];
	int n = getgroups(GROUPS_MAX, now);

	if (n < 0 || (size_t)n != count)
		return false;
	for (size_t i = 0; i < count; i++) {
		bool found = false;

		for (int j = 0; j < n; j++)
			found = found || now[j] == groups[i];
		if (!found)
			return false;
	}
	return true;
}

static bool ids_are(uid_t uid, gid_t gid)
{
	uid_t u[3];
	gid_t g[3];

	if (getresuid(&u[0], &u[1], &u[2]) < 0 || getresgid(&g[0], &g[1], &g[2]) < 0)
		return false;
	return u[0] == uid && u[1] == uid && u[2] == uid && g[0] == gid && g[1] == gid && g[2] == gid;
}

/* Without privilege, ids that are right already are enough, whatever the groups: they cannot be given up
 * then, and a container's plain user has none that matter beyond those it was given. */
static int change_ids(const struct drop *d, const char **ret_step)
{
	if (ids_are(d->uid, d->gid) && !drop_holds(CAP_SETGID))
		return 0;
	*ret_step = "groups";
	if (!same_groups(d->groups, d->group_count)) {
		if (setgroups(d->group_count, d->groups) < 0)
			return -errno;
		if (!same_groups(d->groups, d->group_count))
			return -EPERM;
	}
	*ret_step = "gid";
	if (setresgid(d->gid, d->gid, d->gid) < 0)
		return -errno;
	*ret_step = "uid";
	if (setresuid(d->uid, d->uid, d->uid) < 0)
		return -errno;
	return ids_are(d->uid, d->gid) ? 0 : -EPERM;
}

static int drop_capabilities(uint64_t keep, bool ambient)
{
	struct cap_sets want = {keep, keep, ambient ? keep : 0};
	struct cap_sets is = {0};
	int err;

	/* EINVAL: a kernel without ambient capabilities has none to clear. */
	if (cap_reset_ambient() < 0 && errno != EINVAL)
		return -errno;
	err = set_sets(&want);
	if (err < 0)
		return err;
	for (cap_value_t c = 0; ambient && c < 64; c++) {
		if ((keep & DROP_CAP(c)) && cap_set_ambient(c, CAP_SET) < 0)
			return -errno;
	}
	err = get_sets(&is);
	if (err < 0)
		return err;
	if (is.effective != want.effective || is.permitted != want.permitted ||
	    is.inheritable != want.inheritable)
		return -EPERM;
	return 0;
}

/* As an attacker would who has taken over the process: every way back must be shut. */
static int try_to_get_back(const struct drop *d, uid_t uid_before, gid_t gid_before)
{
	struct cap_sets all = {.effective = UINT64_MAX >> 23, .permitted = UINT64_MAX >> 23};
	bool setuid_kept = d->keep & DROP_CAP(CAP_SETUID);
	bool setgid_kept = d->keep & DROP_CAP(CAP_SETGID);
	int err = 0;

	if (d->change_ids && !setuid_kept && d->uid != 0 && setresuid(0, 0, 0) == 0)
		err = -EPERM;
	if (d->change_ids && !setuid_kept && d->uid != uid_before &&
	    setresuid(uid_before, uid_before, uid_before) == 0)
		err = -EPERM;
	if (d->change_ids && !setgid_kept && d->gid != gid_before &&
	    setresgid(gid_before, gid_before, gid_before) == 0)
		err = -EPERM;
	if ((d->keep & all.permitted) != all.permitted && set_sets(&all) == 0)
		err = -EPERM;
	return err;
}

int drop_privileges(const struct drop *d, const char **ret_step)
{
	bool setpcap = drop_holds(CAP_SETPCAP);
	uid_t uid_before = getuid();
	gid_t gid_before = getgid();
	int err;

	*ret_step = "bounding set";
	err = setpcap ? drop_bounding(d->bounding | d->keep) : 0;
	if (err < 0)
		return err;
	*ret_step = "securebits";
	err = setpcap ? lock_securebits() : 0;
	if (err < 0)
		return err;
	*ret_step = "keepcaps";
	if (prctl(PR_SET_KEEPCAPS, d->change_ids && d->keep ? 1UL : 0UL, 0, 0, 0) < 0)
		return -errno;
	*ret_step = "ids";
	err = d->change_ids ? change_ids(d, ret_step) : 0;
	if (err < 0)
		return err;
	*ret_step = "capabilities";
	err = drop_capabilities(d->keep, d->ambient);
	if (err < 0)
		return err;
	*ret_step = "keepcaps";
	if (prctl(PR_SET_KEEPCAPS, 0UL, 0, 0, 0) < 0)
		return -errno;
	*ret_step = "no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0, 0, 0) < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return -EPERM;
	*ret_step = "dumpable";
	if (prctl(PR_SET_DUMPABLE, 0UL, 0, 0, 0) < 0 || prctl(PR_GET_DUMPABLE) != 0)
		return -EPERM;
	*ret_step = "the way back";
	return try_to_get_back(d, uid_before, gid_before);
}
