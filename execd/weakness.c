#include "execd/weakness.h"

#include "common/log.h"
#include "execd/config.h"
#include "execd/slots.h"

#include <unistd.h>

void weakness_each(const struct config *config, const struct slots_plan *plan, bool all,
		   void (*say)(const char *what))
{
	uid_t commands = config->command_user.set ? config->command_user.uid : getuid();
	uid_t netd = config->netd_user.set ? config->netd_user.uid : getuid();

	if (!plan->commands_scoped)
		say("slots from signals of commands that started before them (Landlock ABI 6)");
	if (!plan->commands_scoped && commands == netd)
		say("netd from signals of commands that started before it (Landlock ABI 6 or NETD_USER)");
	if (plan->landlock_abi == 0)
		say("commands from each other; they get no ptrace (no Landlock)");
	if (plan->weak)
		say("a kill from a fork bomb of uid 0, which RLIMIT_NPROC does not bind");
	if (!all)
		return;
	if (commands == 0)
		say("files of uid 0 from commands (set SANDBOX_USER)");
	if (netd == getuid())
		say("execd's files from a taken-over netd of the same uid, but by its policy");
	if (!config->background_kill)
		say("one command from what an earlier one left behind (SANDBOX_BACKGROUND=kill)");
}

static void warn(const char *what)
{
	log_warn("not protected", LOG_STR("what", what));
}

void weakness_warn(const struct config *config, const struct slots_plan *plan)
{
	weakness_each(config, plan, false, warn);
}
