#include "execd/check.h"

#include "execd/credentials.h"
#include "execd/netd_image.h"
#include "execd/netd_proc.h"
#include "execd/process.h"
#include "execd/slots.h"
#include "execd/weakness.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

static void line(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(const char *what, const char *format, ...)
{
	va_list args;

	printf("%-16s", what);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static void report_relay(const struct config *c)
{
	bool v6 = strchr(c->relay_host, ':') != NULL;

	line("relay", "%s%s%s:%u, %s", v6 ? "[" : "", c->relay_host, v6 ? "]" : "", c->relay_port,
	     c->relay_tls ? "TLS" : "plaintext");
	if (c->proxy_host[0])
		line("proxy", "%s:%u", c->proxy_host, c->proxy_port);
	if (c->relay_tls)
		line("roots", "%s",
		     c->ca_file[0]         ? c->ca_file
		     : c->ssl_cert_file[0] ? c->ssl_cert_file
		     : c->ssl_cert_dir[0]  ? c->ssl_cert_dir
					   : "the system's");
	if (c->relay_tls && c->cert_file[0])
		line("certificate", "%s", c->cert_file);
	line("id", "%s (%s)", c->sandbox_id, c->trusted ? "trusted" : "untrusted");
	line("tier", "%s", c->tier[0] ? c->tier : "none");
	line("token", "%s", c->token_file[0] ? c->token_file : "from the environment");
}

static void report_user(const char *what, const struct config_user *u)
{
	if (u->set)
		line(what, "%s, uid %u, gid %u, %u more groups", u->name, u->uid, u->gid, u->group_count);
	else
		line(what, "uid %u, as execd was started", getuid());
}

static void report_capabilities(const char *what, uint64_t caps)
{
	printf("%-16s%s", what, caps ? "" : "none");
	for (int n = 0; n < 64; n++) {
		char *name = caps & DROP_CAP(n) ? cap_to_name(n) : NULL;

		if (name)
			printf("%s ", name);
		cap_free(name);
	}
	putchar('\n');
}

static void report_commands(const struct config *c)
{
	printf("%-16s", "tools");
	for (unsigned i = 0; config_capabilities[i]; i++) {
		if (c->capability_mask & 1u << i)
			printf("%s ", config_capabilities[i]);
	}
	putchar('\n');
	line("folder", "%s", c->cwd);
	line("bash", "%s", c->bash);
	line("at once", "%u, %u more may wait", c->max_concurrent, LIMIT_WAITING);
	line("left behind", "%s", c->background_kill ? "killed" : "lives on");
	line("policy", "%s", c->seccomp_file[0] ? c->seccomp_file : "built in");
}

/* What netd may come to hold at the worst: commands and input that wait, both streams of each running command
 * that does not stream, and the message that is being read. */
static void report_memory(const struct config *c)
{
	unsigned held = LIMIT_HELD / LIMIT_MIB, message = LIMIT_MESSAGE / LIMIT_MIB + 1;
	unsigned buffered = 2 * c->max_concurrent * LIMIT_BUFFERED / LIMIT_MIB;

	line("memory", "netd at most %u MiB: %u held, %u of non-streaming output, %u of one message",
	     held + buffered + message, held, buffered, message);
}

static void report_weakness(const char *what)
{
	line("not protected", "%s", what);
}

void check_report(const struct config *config, const struct slots_plan *plan)
{
	const struct netd_image *image = netd_proc_image();

	report_relay(config);
	line("netd", "%s%s", image->path, image->fd >= 0 ? ", as a sealed copy" : "");
	report_user("netd's user", &config->netd_user);
	report_user("commands' user", &config->command_user);
	report_capabilities("execd keeps", process_capabilities(config->keep_caps));
	report_capabilities("commands keep", config->keep_caps);
	report_commands(config);
	line("Landlock", "ABI %d%s", plan->landlock_abi, plan->landlock_abi ? "" : " (none)");
	line("killer", "%s%s", plan->killer, plan->weak ? " (weak)" : "");
	report_memory(config);
	weakness_each(config, plan, true, report_weakness);
}
