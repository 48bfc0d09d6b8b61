#include "execd/config.h"

#include "common/drop.h"
#include "execd/config_names.h"
#include "execd/environment.h"
#include "execd/probe.h"
#include "execd/user.h"

#include <errno.h>
#include <stdio.h>
#include <sys/capability.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What N places need at the most: for each a slot's socket and pidfd, three pipes of both ends while a
 * command starts; for each minder a socket and a pidfd; and ours. */
#define DESCRIPTORS_OURS       64u
#define DESCRIPTORS_PER_PLACE  8u
#define DESCRIPTORS_PER_MINDER 2u
/* A slot and its bash; netd, the warden and ourselves. */
#define PROCESSES_OURS      4u
#define PROCESSES_PER_PLACE 2u

static int check_limits(const struct config *c, struct config_error *e)
{
	rlim_t files = DESCRIPTORS_OURS + LIMIT_MINDERS * DESCRIPTORS_PER_MINDER +
		       c->max_concurrent * DESCRIPTORS_PER_PLACE;
	rlim_t processes = PROCESSES_OURS + c->max_concurrent * PROCESSES_PER_PLACE;
	uid_t uid = c->command_user.set ? c->command_user.uid : getuid();
	struct rlimit has;

	if (getrlimit(RLIMIT_NOFILE, &has) == 0 && has.rlim_max < files)
		return config_refuse(
		    e, "WORKER_MAX_CONCURRENT", "is %u, which takes %llu descriptors; the hard limit is %llu",
		    c->max_concurrent, (unsigned long long)files, (unsigned long long)has.rlim_max);
	if (uid != 0 && getrlimit(RLIMIT_NPROC, &has) == 0 && has.rlim_cur < processes)
		return config_refuse(
		    e, "WORKER_MAX_CONCURRENT", "is %u, which takes %llu processes; the limit is %llu (soft)",
		    c->max_concurrent, (unsigned long long)processes, (unsigned long long)has.rlim_cur);
	return 0;
}

/* kill(2) */
static bool can_kill(uid_t uid)
{
	return uid == getuid() || drop_holds(CAP_KILL);
}

/* Started as root, netd gets a user of its own if the machine lets it; a user that was named must work. */
static int settle_netd_user(struct config *c, struct config_error *e)
{
	bool named = c->netd_user.set;
	const char *why;
	struct drop d;
	struct probe p;
	int err;

	if (!named && (!drop_holds(CAP_SETUID) || !drop_holds(CAP_KILL)))
		return 0;
	if (named && !can_kill(c->netd_user.uid))
		return config_refuse(e, "NETD_USER", "cannot be killed: execd has no CAP_KILL");
	if (!named && user_parse(&user_files_system, "nobody", &c->netd_user, &why) < 0) {
		log_info("no user nobody in /etc/passwd: netd runs as 65534");
		user_parse(&user_files_system, "65534:65534", &c->netd_user, &why);
	}
	d = config_drop(&c->netd_user, 0);
	err = probe_as(&d, &(struct probe_question){0}, &p);
	if (err < 0)
		return config_refuse(e, "NETD_USER", "cannot be tried: %s", log_errno(err));
	if (p.err == 0)
		return 0;
	if (named)
		return config_refuse(e, "NETD_USER", "cannot be taken: %s: %s", p.step, log_errno(p.err));
	log_warn("netd runs as the user that execd runs as", LOG_STR("step", p.step), LOG_ERR(p.err));
	c->netd_user = (struct config_user){0};
	return 0;
}

/* The path of the commands' folder, which must be absolute: it is entered again and again. *ret_named says
 * that it was asked for. */
static int find_folder(struct config *c, bool *ret_named, struct config_error *e)
{
	char start[sizeof c->cwd] = "", rest[sizeof c->cwd];
	int n;

	*ret_named = c->cwd[0] != '\0';
	if (c->cwd[0] == '/')
		return 0;
	memcpy(rest, c->cwd, sizeof rest);
	if (!getcwd(start, sizeof start)) {
		if (*ret_named)
			return config_refuse(e, "SANDBOX_CWD",
					     "%s is below a start folder that is not there: %s", c->cwd,
					     log_errno(errno));
		log_warn("commands start in /: there is no start folder", LOG_ERR(errno));
		snprintf(start, sizeof start, "/");
	}
	n = snprintf(c->cwd, sizeof c->cwd, "%s%s%s", start, *ret_named ? "/" : "", rest);
	return n < (int)sizeof c->cwd ? 0
				      : config_refuse(e, "SANDBOX_CWD", "is too long with its start folder");
}

/* A start folder that nobody named may be closed to the commands' user, as /root is. */
static int settle_folder(struct config *c, bool named, const struct probe *p, struct config_error *e)
{
	if (p->folder_err == 0)
		return 0;
	if (named)
		return config_refuse(e, "SANDBOX_CWD", "%s cannot be entered by the commands' user: %s",
				     c->cwd, log_errno(p->folder_err));
	log_warn("commands start in /: their user cannot enter the start folder", LOG_STR("folder", c->cwd),
		 LOG_ERR(p->folder_err));
	memcpy(c->cwd, "/", 2);
	return 0;
}

static int settle_commands(struct config *c, struct config_error *e)
{
	struct drop d = config_drop(&c->command_user, c->keep_caps);
	struct probe p;
	bool named;
	int err = find_folder(c, &named, e);

	if (err < 0)
		return err;
	if (c->keep_caps & ~drop_permitted())
		return config_refuse(e, "SANDBOX_KEEP_CAPS",
				     "names a capability that execd does not hold itself");
	if (c->command_user.set && !can_kill(c->command_user.uid))
		return config_refuse(e, "SANDBOX_USER", "cannot be killed: execd has no CAP_KILL");
	if (c->keep_caps & DROP_CAP(CAP_SETUID) && !drop_holds(CAP_KILL))
		return config_refuse(
		    e, "SANDBOX_KEEP_CAPS",
		    "lets commands become a user that cannot be killed: execd has no CAP_KILL");
	err = probe_as(
	    &d, &(struct probe_question){.folder = c->cwd, .path = c->path, .names = config_capabilities},
	    &p);
	if (err < 0)
		return config_refuse(e, "SANDBOX_USER", "cannot be tried: %s", log_errno(err));
	if (p.err < 0)
		return config_refuse(e, "SANDBOX_USER", "cannot be taken: %s: %s", p.step, log_errno(p.err));
	if (!p.first[0]) {
		config_refuse(e, "PATH", "has no bash that commands could run: %s", c->path);
		e->exit_code = 1;
		return -EINVAL;
	}
	c->capability_mask = p.found;
	memcpy(c->bash, p.first, sizeof c->bash);
	return settle_folder(c, named, &p, e);
}

static int make_environment(struct config *c, struct config_error *e)
{
	struct config_user now;
	const char *path;
	bool changed = c->command_user.set && c->command_user.uid != getuid();

	user_of_uid(&user_files_system, getuid(), &now);
	c->command_environ =
	    environment_for_commands(c->start_environ, changed ? &c->command_user : &now, changed);
	if (!c->command_environ)
		return config_refuse(e, "PATH", "no memory for the commands' environment");
	path = environment_get(c->command_environ, "PATH");
	if (strlen(path) >= sizeof c->path)
		return config_refuse(e, "PATH", "is longer than %zu bytes", sizeof c->path - 1);
	memcpy(c->path, path, strlen(path) + 1);
	return 0;
}

int config_settle(struct config *c, struct config_error *ret_error)
{
	int err = check_limits(c, ret_error);

	if (err == 0)
		err = settle_netd_user(c, ret_error);
	if (err == 0)
		err = make_environment(c, ret_error);
	if (err == 0)
		err = settle_commands(c, ret_error);
	if (err == 0)
		config_names_warn(c->start_environ);
	c->start_environ = NULL;
	return err;
}
