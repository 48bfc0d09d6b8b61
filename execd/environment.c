#include "execd/environment.h"

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

bool environment_allowed(const char *entry)
{
	static const char *const secret[] = {
	    "SANDBOX_TOKEN", "RELAY_", "NOTIFY_SOCKET=", "CREDENTIALS_DIRECTORY=", "WATCHDOG_", NULL};
	const char *equals = strchr(entry, '=');

	if (!equals || equals == entry)
		return false;
	for (size_t i = 0; secret[i]; i++) {
		if (starts_with(entry, secret[i]))
			return false;
	}
	return !is_proxy_with_credentials(entry, equals);
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

		if (!environment_allowed(vars[i]) || is_replaced(vars[i], filled, fill))
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
