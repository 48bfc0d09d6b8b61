/* What commands see of our environment, and what they do not. */
#include "execd/environment.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct config_user user = {
    .set = true, .uid = 1000, .gid = 1000, .name = "ann", .home = "/home/ann", .shell = "/bin/zsh"};

#define VARS(...) ((char *[]){__VA_ARGS__, NULL})

static bool has(char **vars, const char *entry)
{
	for (size_t i = 0; vars[i]; i++) {
		if (strcmp(vars[i], entry) == 0)
			return true;
	}
	return false;
}

static size_t count(char **vars)
{
	size_t n = 0;

	while (vars[n])
		n++;
	return n;
}

Test(environment, hides_what_is_secret)
{
	static const char *const hidden[] = {
	    "SANDBOX_TOKEN=x",
	    "SANDBOX_TOKEN_FILE=/x",
	    "SANDBOX_TOKEN_OLD=x",
	    "RELAY_ADDR=x:1",
	    "RELAY_KEY_FILE=/x",
	    "RELAY_ANYTHING=",
	    "SANDBOX_ID=x",
	    "SANDBOX_TIER=x",
	    "WORKER_ANYTHING=x",
	    "NETD_USER=x",
	    "SH_WORKSPACE_ROOT=/x",
	    "MOCA_RELAY_EXEC_TOKEN=x",
	    "sandbox_token=x",
	    "SANBOX_TOKEN=x",
	    "SANDBOX-TOKEN=x",
	    "REALY_TLS=1",
	    "f=() { :; }",
	    "NOTIFY_SOCKET=@x",
	    "CREDENTIALS_DIRECTORY=/x",
	    "WATCHDOG_USEC=1",
	    "WATCHDOG_PID=1",
	    "HTTPS_PROXY=http://u:p@h:1",
	    "https_proxy=http://u:p@h:1",
	    "HTTP_PROXY=u:p@h",
	    "all_proxy=socks5://token@h",
	    "npm_config_https_proxy=http://u:p@h:1",
	    "no equals sign",
	    "=x",
	    "",
	};

	for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
		cr_assert_not(environment_allowed(hidden[i], false), "%s", hidden[i]);
}

Test(environment, shows_the_rest)
{
	static const char *const shown[] = {
	    "PATH=/bin",   "HTTPS_PROXY=http://h:1",
	    "LOG_LEVEL=x", "LD_PRELOAD=x",
	    "BASH_ENV=/x", "MY_SANDBOX_TOKEN=x",
	    "RELAY=x",     "SHELL=x",
	    "MOCA=x",      "TMPDIR=/x",
	    "SUDO_USER=x", "LC_ALL=x",
	    "TZ=x",        "MAKEFLAGS=x",
	    "ENV=prod",    "f=()",
	    "EMPTY=",      "A=b=c",
	};

	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
		cr_assert(environment_allowed(shown[i], false), "%s", shown[i]);
}

Test(environment, takes_the_first_value_and_empty_for_unset)
{
	char **vars = VARS("A=1", "A=2", "B=", "AB=3");

	cr_assert_str_eq(environment_get(vars, "A"), "1");
	cr_assert_null(environment_get(vars, "B"));
	cr_assert_null(environment_get(vars, "C"));
	cr_assert_str_eq(environment_get(vars, "AB"), "3");
}

Test(environment, fills_in_what_is_missing)
{
	char **out = environment_for_commands(VARS("X=1", "HOME="), &user, false);

	cr_assert(has(out, "X=1"));
	cr_assert(has(out, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
	cr_assert(has(out, "HOME=/home/ann"));
	cr_assert(has(out, "USER=ann"));
	cr_assert(has(out, "LANG=C.UTF-8"));
	cr_assert_eq(count(out), 5);
	free(out);
}

Test(environment, keeps_what_is_there)
{
	char **out = environment_for_commands(VARS("PATH=/p", "HOME=/h", "USER=u", "LANG=de_DE", "SHELL=/s"),
					      &user, false);

	cr_assert(has(out, "PATH=/p") && has(out, "HOME=/h") && has(out, "USER=u") && has(out, "LANG=de_DE"));
	cr_assert(has(out, "SHELL=/s"));
	cr_assert_eq(count(out), 5);
	free(out);
}

Test(environment, becomes_the_users_with_a_change_of_uid)
{
	char **out = environment_for_commands(
	    VARS("PATH=/p", "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/sh", "SANDBOX_TOKEN=x"),
	    &user, true);

	cr_assert(has(out, "PATH=/p") && has(out, "HOME=/home/ann") && has(out, "USER=ann"));
	cr_assert(has(out, "LOGNAME=ann") && has(out, "SHELL=/bin/zsh") && has(out, "LANG=C.UTF-8"));
	cr_assert_eq(count(out), 6);
	free(out);
}

static const char *entry_of(const struct environment_rule *rule)
{
	static char entry[64];
	bool whole = rule->begins[strlen(rule->begins) - 1] == '=';

	snprintf(entry, sizeof entry, "%s%s", rule->begins, whole ? "x" : "X=x");
	return entry;
}

Test(environment, follows_each_rule)
{
	for (const struct environment_rule *r = environment_rules; r->begins; r++) {
		cr_assert_eq(environment_allowed(entry_of(r), false), r->fate != ENVIRONMENT_HIDDEN, "%s",
			     r->begins);
		cr_assert_eq(environment_allowed(entry_of(r), true), r->fate == ENVIRONMENT_SHOWN, "%s",
			     r->begins);
	}
}

/* The page has a name or "NAME*" for each. */
Test(environment, has_each_rule_on_the_page)
{
	static char page[256 * 1024];
	FILE *f = fopen("man/sandbox-worker.7", "re");
	char name[64];

	cr_assert(f);
	page[fread(page, 1, sizeof page - 1, f)] = '\0';
	fclose(f);
	for (const struct environment_rule *r = environment_rules; r->begins; r++) {
		size_t n = strcspn(r->begins, "=");

		snprintf(name, sizeof name, "%.*s%s", (int)n, r->begins, r->begins[n] ? "" : "*");
		cr_assert(strstr(page, name), "%s is not on the page", name);
	}
}

Test(environment, is_overwritten_where_it_was)
{
	char secret[] = "SANDBOX_TOKEN=s3cr3t", plain[] = "A=b";
	char **vars = VARS(secret, plain);
	struct environment env;

	cr_assert_eq(environment_take(vars, &env), 0);
	for (size_t i = 0; i < sizeof secret; i++)
		cr_assert_eq(secret[i], '\0');
	cr_assert_eq(plain[0], '\0');
	cr_assert_null(environ[0]);
	cr_assert_str_eq(environment_get(env.vars, "SANDBOX_TOKEN"), "s3cr3t");
	cr_assert_str_eq(environment_get(env.vars, "A"), "b");
	environment_wipe(&env);
	cr_assert_null(env.vars);
	environment_wipe(&env);
}
