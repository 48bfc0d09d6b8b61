#include "execd/environment.h"

#include "execd/config_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define DEFAULT_LANG "C.UTF-8"

static size_t count_vars(char *const vars[], size_t *ret_bytes)
{
	size_t n = 0;

	*ret_bytes = 0;
	for (; vars[n]; n++)
		*ret_bytes += strlen(vars[n]) + 1;
	return n;
}

/* Copies entries one after the other to the end of a table of pointers; returns the end of what is used. */
static char *add_var(char **vars, size_t *count, char *at, const char *name, const char *value)
{
	size_t n = strlen(name), v = strlen(value);

	vars[(*count)++] = at;
	memcpy(at, name, n);
	at[n] = '=';
	memcpy(at + n + 1, value, v + 1);
	return at + n + 1 + v + 1;
}

int environment_take(char **envp, struct environment *ret)
{
	static char *none[] = {NULL};
	size_t bytes, count = count_vars(envp, &bytes);
	size_t table = (count + 1) * sizeof *envp;
	char **vars = mmap(NULL, table + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = (char *)vars + table;

	if (vars == MAP_FAILED)
		return -errno;
	madvise(vars, table + bytes, MADV_DONTDUMP);
	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(envp[i]) + 1;

		memcpy(at, envp[i], n);
		explicit_bzero(envp[i], n);
		vars[i] = at;
		at += n;
	}
	vars[count] = NULL;
	environ = none;
	*ret = (struct environment){.vars = vars, .size = table + bytes};
	return 0;
}

void environment_wipe(struct environment *e)
{
	if (!e->vars)
		return;
	explicit_bzero(e->vars, e->size);
	munmap(e->vars, e->size);
	*e = (struct environment){0};
}

static const char *value_of(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}

const char *environment_find(char *const vars[], const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; vars[i] && !value; i++)
		value = value_of(vars[i], name);
	return value;
}

const char *environment_get(char *const vars[], const char *name)
{
	const char *value = environment_find(vars, name);

	return value && *value ? value : NULL;
}

static bool starts_with(const char *entry, const char *prefix)
{
	return strncmp(entry, prefix, strlen(prefix)) == 0;
}

/* HTTPS_PROXY, http_proxy, ALL_PROXY, npm_config_https_proxy, …: by the end of the name. A user without a
 * password may be a token as well, so any userinfo counts. */
static bool is_proxy_with_credentials(const char *entry, const char *equals)
{
	static const char suffix[] = "proxy";
	size_t n = (size_t)(equals - entry);

	return n >= sizeof suffix - 1 &&
	       strncasecmp(equals - (sizeof suffix - 1), suffix, sizeof suffix - 1) == 0 &&
	       strchr(equals, '@') != NULL;
}

/* The first that fits decides. Of what bash reads when it starts, or in the course of a command, nothing
 * comes from the worker's environment: a command means what it says. What says how programs are loaded or
 * tuned (LD_*, MALLOC_*, MAKEFLAGS, TZ, LC_*) is the image's own, and stays. */
const struct environment_rule environment_rules[] = {
    /* of the worker that this one replaces, and of its harness */
    {"SH_", ENVIRONMENT_HIDDEN},
    {"MOCA_", ENVIRONMENT_HIDDEN},
    /* ours, of which config_names knows the rest */
    {"HEARTBEAT_S=", ENVIRONMENT_HIDDEN},
    {"STATUS_FILE=", ENVIRONMENT_HIDDEN},
    /* a service manager's handles */
    {"NOTIFY_SOCKET=", ENVIRONMENT_HIDDEN},
    {"CREDENTIALS_DIRECTORY=", ENVIRONMENT_HIDDEN},
    {"WATCHDOG_", ENVIRONMENT_HIDDEN},
    /* which file bash reads, and in which mode it starts */
    {"BASH_ENV=", ENVIRONMENT_SHOWN},
    {"SSH_CLIENT=", ENVIRONMENT_HIDDEN}, /* with SHLVL below 2: ~/.bashrc */
    {"SSH2_CLIENT=", ENVIRONMENT_HIDDEN},
    {"SHLVL=", ENVIRONMENT_HIDDEN}, /* from 1,000 on a warning before each command */
    {"SHELLOPTS=", ENVIRONMENT_HIDDEN},
    {"BASHOPTS=", ENVIRONMENT_HIDDEN},
    {"POSIXLY_CORRECT=", ENVIRONMENT_HIDDEN},
    {"POSIX_PEDANTIC=", ENVIRONMENT_HIDDEN},
    /* functions in place of commands (BASH_FUNC_), BASH_COMPAT, BASH_XTRACEFD, BASH_LOADABLES_PATH, … */
    {"BASH_", ENVIRONMENT_HIDDEN},
    {"__BASH_FUNC<", ENVIRONMENT_HIDDEN},
    /* what words, names and folders become */
    {"CDPATH=", ENVIRONMENT_HIDDEN},
    {"EXECIGNORE=", ENVIRONMENT_HIDDEN},
    {"FIGNORE=", ENVIRONMENT_HIDDEN},
    {"GLOBIGNORE=", ENVIRONMENT_HIDDEN},
    {"GLOBSORT=", ENVIRONMENT_HIDDEN},
    {"IFS=", ENVIRONMENT_HIDDEN},
    {"OLDPWD=", ENVIRONMENT_HIDDEN}, /* cd - */
    /* what builtins and keywords do */
    {"FUNCNEST=", ENVIRONMENT_HIDDEN},
    {"PS3=", ENVIRONMENT_HIDDEN},
    {"PS4=", ENVIRONMENT_HIDDEN},
    {"TIMEFORMAT=", ENVIRONMENT_HIDDEN},
    {"TMOUT=", ENVIRONMENT_HIDDEN}, /* read gives up */
    /* bash's own variables, which keep a value that was there before them */
    {"_=", ENVIRONMENT_HIDDEN},
    {"DIRSTACK=", ENVIRONMENT_HIDDEN},
    {"EUID=", ENVIRONMENT_HIDDEN},
    {"FUNCNAME=", ENVIRONMENT_HIDDEN},
    {"GROUPS=", ENVIRONMENT_HIDDEN},
    {"HOSTTYPE=", ENVIRONMENT_HIDDEN},
    {"MACHTYPE=", ENVIRONMENT_HIDDEN},
    {"OSTYPE=", ENVIRONMENT_HIDDEN},
    {"PIPESTATUS=", ENVIRONMENT_HIDDEN},
    {"SECONDS=", ENVIRONMENT_HIDDEN},
    {"UID=", ENVIRONMENT_HIDDEN},
    /* the folders, sockets and traces of the user that the worker was started as */
    {"DBUS_SESSION_BUS_ADDRESS=", ENVIRONMENT_OWN},
    {"GNUPGHOME=", ENVIRONMENT_OWN},
    {"HISTFILE=", ENVIRONMENT_OWN},
    {"INPUTRC=", ENVIRONMENT_OWN},
    {"KRB5CCNAME=", ENVIRONMENT_OWN},
    {"MAIL=", ENVIRONMENT_OWN},
    {"MAILPATH=", ENVIRONMENT_OWN},
    {"SSH_", ENVIRONMENT_OWN},
    {"SUDO_", ENVIRONMENT_OWN},
    {"TEMP=", ENVIRONMENT_OWN},
    {"TMP=", ENVIRONMENT_OWN},
    {"TMPDIR=", ENVIRONMENT_OWN},
    {"USERNAME=", ENVIRONMENT_OWN},
    {"XAUTHORITY=", ENVIRONMENT_OWN},
    {"XDG_CACHE_HOME=", ENVIRONMENT_OWN},
    {"XDG_CONFIG_HOME=", ENVIRONMENT_OWN},
    {"XDG_DATA_HOME=", ENVIRONMENT_OWN},
    {"XDG_RUNTIME_DIR=", ENVIRONMENT_OWN},
    {"XDG_SESSION_", ENVIRONMENT_OWN},
    {"XDG_STATE_HOME=", ENVIRONMENT_OWN},
    {NULL, ENVIRONMENT_SHOWN},
};

bool environment_allowed(const char *entry, bool changed)
{
	const struct environment_rule *rule = environment_rules;
	const char *equals = strchr(entry, '=');

	if (!equals || equals == entry || config_names_is_ours(entry, (size_t)(equals - entry)))
		return false;
	while (rule->begins && !starts_with(entry, rule->begins))
		rule++;
	if (rule->fate == ENVIRONMENT_HIDDEN || (rule->fate == ENVIRONMENT_OWN && changed))
		return false;
	/* A function, to a bash that does not name them apart. */
	return !starts_with(equals + 1, "() {") && !is_proxy_with_credentials(entry, equals);
}

/* What is given to commands whatever was there, or only where nothing was. */
struct filled {
	const char *name;
	const char *value;
	bool always;
};

static bool is_replaced(const char *entry, const struct filled *filled, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *value = value_of(entry, filled[i].name);

		if (value && (filled[i].always || *value == '\0'))
			return true;
	}
	return false;
}

char **environment_for_commands(char *const vars[], const struct config_user *user, bool changed)
{
	const struct filled filled[] = {
	    {"PATH", DEFAULT_PATH, false}, {"HOME", user->home, changed}, {"USER", user->name, changed},
	    {"LANG", DEFAULT_LANG, false}, {"LOGNAME", user->name, true}, {"SHELL", user->shell, true},
	};
	/* LOGNAME and SHELL are only set where the user changes. */
	size_t fill = sizeof filled / sizeof *filled - (changed ? 0 : 2);
	size_t bytes, count = 0, given = count_vars(vars, &bytes);
	char **out, *at;

	for (size_t i = 0; i < fill; i++)
		bytes += strlen(filled[i].name) + strlen(filled[i].value) + 2;
	out = malloc((given + fill + 1) * sizeof *out + bytes);
	if (!out)
		return NULL;
	at = (char *)(out + given + fill + 1);
	for (size_t i = 0; i < given; i++) {
		size_t n = strlen(vars[i]) + 1;

		if (!environment_allowed(vars[i], changed) || is_replaced(vars[i], filled, fill))
			continue;
		memcpy(at, vars[i], n);
		out[count++] = at;
		at += n;
	}
	out[count] = NULL;
	for (size_t i = 0; i < fill; i++) {
		if (!filled[i].always && environment_get(out, filled[i].name))
			continue;
		at = add_var(out, &count, at, filled[i].name, filled[i].value);
		out[count] = NULL;
	}
	return out;
}
