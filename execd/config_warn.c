#include "execd/config.h"

#include "common/address.h"
#include "execd/probe.h"
#include "execd/slots.h"

#include <string.h>
#include <unistd.h>

static void warn_of_relay(const struct config *c, const struct config_secrets *s)
{
	bool away = !address_is_this_host(c->relay_host);

	if (strcmp(c->sandbox_id, CONFIG_DEFAULT_ID) == 0)
		log_warn("SANDBOX_ID is the default; a relay refuses a second worker of the same id",
			 LOG_STR("id", c->sandbox_id));
	if (away && strcmp(s->token, CONFIG_DEFAULT_TOKEN) == 0)
		log_warn("SANDBOX_TOKEN is the default, and the relay is not on this machine");
	if (away && !c->relay_tls)
		log_warn("RELAY_TLS is off: the token and all commands cross the network in the clear",
			 LOG_STR("relay", c->relay_host));
}

/* The folder that holds path, or "." */
static void folder_of(const char *path, char *ret, size_t size)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) + (slash == path) : 0;

	if (n == 0 || n >= size) {
		path = ".";
		n = 1;
	}
	memcpy(ret, path, n);
	ret[n] = '\0';
}

static void warn_of_files(const struct config *c)
{
	char folder[sizeof c->status_file];
	struct probe_question q = {.readable_file = c->token_file[0] ? c->token_file : NULL};
	struct drop d = config_drop(&c->command_user, c->keep_caps);
	struct probe p;

	if (c->status_file[0]) {
		folder_of(c->status_file, folder, sizeof folder);
		q.writable_path = folder;
	}
	if (probe_as(&d, &q, &p) < 0 || p.err < 0)
		return;
	if (p.can_write)
		log_warn("STATUS_FILE is where commands can write: they can replace it",
			 LOG_STR("folder", folder));
	if (p.can_read)
		log_warn("SANDBOX_TOKEN_FILE can be read by commands; use SANDBOX_TOKEN, or set SANDBOX_USER",
			 LOG_STR("file", c->token_file));
}

void config_warn(const struct config *c, const struct config_secrets *secrets)
{
	uid_t uid = c->command_user.set ? c->command_user.uid : getuid();
	uid_t netd = c->netd_user.set ? c->netd_user.uid : getuid();
	struct slots_plan plan;

	warn_of_relay(c, secrets);
	if (!c->trusted && !c->background_kill)
		log_warn("SANDBOX_TRUST is untrusted, and what commands leave behind lives on; "
			 "SANDBOX_BACKGROUND=kill "
			 "ends it");
	if (uid == 0)
		log_warn("commands run as uid 0, which is no containment even without capabilities; set "
			 "SANDBOX_USER");
	if (netd == 0)
		log_warn("netd runs as uid 0, without capabilities; give execd CAP_SETUID, CAP_SETGID and "
			 "CAP_KILL, or "
			 "start it as another user");
	if (c->killer) {
		slots_plan(c, &plan);
		if (strcmp(c->killer, plan.killer) != 0)
			log_warn("SANDBOX_KILLER is set and not used: landlock needs SANDBOX_BACKGROUND=kill "
				 "and Landlock ABI 6",
				 LOG_STR("killer", plan.killer));
	}
	warn_of_files(c);
}
