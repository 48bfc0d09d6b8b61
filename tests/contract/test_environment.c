/* What of the worker's environment reaches a command, by real bash: each variable that could change what a
 * command means, and what the command says where it does not. */
#include "common/drop.h"
#include "execd/environment.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>

TestSuite(environment_of_commands, .timeout = 60, .fini = stage_fini);

static const struct {
	const char *entry, *command, *out;
} rows[] = {
    {"SSH_CLIENT=10.0.0.1 1 22", "echo a", "a\n"},
    {"SSH2_CLIENT=10.0.0.1 1 22", "echo a", "a\n"},
    {"SHLVL=2000", "echo $SHLVL", "1\n"},
    {"SHELLOPTS=errexit:noglob", "false; echo $-", "hBc\n"},
    {"BASHOPTS=nullglob:failglob", "echo /nowhere*", "/nowhere*\n"},
    {"POSIXLY_CORRECT=1", "shopt -oq posix; echo $?", "1\n"},
    {"POSIX_PEDANTIC=1", "shopt -oq posix; echo $?", "1\n"},
    {"BASH_FUNC_echo%%=() { printf stolen; }", "echo a", "a\n"},
    {"BASH_FUNC_echo()=() { printf stolen; }", "echo a; env | grep -c stolen", "a\n0\n"},
    {"__BASH_FUNC<echo>()=() { printf stolen; }", "env | grep -c stolen", "0\n"},
    {"echo=() { printf stolen; }", "env | grep -c stolen", "0\n"},
    {"BASH_COMPAT=31", "shopt -q compat31; echo $?", "1\n"},
    {"BASH_XTRACEFD=1", "set -x; :", ""},
    {"BASH_LOADABLES_PATH=/nowhere", "case $BASH_LOADABLES_PATH in /nowhere) echo a;; *) echo b;; esac",
     "b\n"},
    {"BASH_ARGV0=stolen", "echo $0", "bash\n"},
    {"CDPATH=/usr", "cd / && cd bin && echo $PWD", "/bin\n"},
    {"EXECIGNORE=*", "echo ${EXECIGNORE-unset}; type -P true >/dev/null; echo $?", "unset\n0\n"},
    {"FIGNORE=shadow", "echo ${FIGNORE-unset}", "unset\n"},
    {"GLOBIGNORE=*passwd", "echo /etc/passw?", "/etc/passwd\n"},
    {"GLOBSORT=-name", "echo ${GLOBSORT-unset}", "unset\n"},
    {"IFS=:", "env | grep -c ^IFS; x=a:b; echo $x", "0\na:b\n"},
    {"OLDPWD=/usr", "cd - 2>/dev/null; echo $?", "1\n"},
    {"FUNCNEST=1", "f() { g; }; g() { echo deep; }; f", "deep\n"},
    {"PS3=stolen", "select x in a; do break; done <<<1 2>&1", "1) a\n#? "},
    {"PS4=$(echo stolen)", "exec 2>&1; set -x; :", "+ :\n"},
    {"TIMEFORMAT=stolen", "{ time :; } 2>&1 | grep -c stolen", "0\n"},
    {"TMOUT=1", "read x < <(sleep 1.5; echo late); echo $x", "late\n"},
    {"_=stolen", "echo ${_##*/}", "bash\n"},
    {"DIRSTACK=/usr", "cd /; echo ${DIRSTACK[@]}", "/\n"},
    {"EUID=7", "[ $EUID = $(id -u) ]; echo $?", "0\n"},
    {"UID=7", "[ $UID = $(id -u) ]; echo $?", "0\n"},
    {"GROUPS=7", "[ $GROUPS = $(id -g) ]; echo $?", "0\n"},
    {"FUNCNAME=stolen", "f() { echo $FUNCNAME; }; f", "f\n"},
    {"HOSTTYPE=stolen", "case $HOSTTYPE in stolen) echo a;; *) echo b;; esac", "b\n"},
    {"MACHTYPE=stolen", "case $MACHTYPE in stolen) echo a;; *) echo b;; esac", "b\n"},
    {"OSTYPE=stolen", "case $OSTYPE in linux*) echo a;; esac", "a\n"},
    {"PIPESTATUS=9", "true; echo $PIPESTATUS", "0\n"},
    {"SECONDS=1000", "[ $SECONDS -lt 900 ]; echo $?", "0\n"},
    /* left alone, because bash asks for it only where somebody types */
    {"ENV=/dev/stdin", "echo $ENV; sh -c 'echo a'", "/dev/stdin\na\n"},
};

#define ROWS (sizeof rows / sizeof *rows)

/* One worker for all: what one variable does to another's command is a fault as well. */
static struct stage *open_with_rows(void)
{
	static const char *settings[WORKER_ENVIRONMENT_MAX];
	static char home[FOLDER_PATH_MAX + 8], rc[FOLDER_PATH_MAX];
	struct stage *s = stage_prepare();
	size_t n = 0;

	folder_join(rc, s->folder, ".bashrc");
	folder_write(rc, "echo stolen\n", 12);
	snprintf(home, sizeof home, "HOME=%s", s->folder);
	settings[n++] = home;
	for (size_t i = 0; i < ROWS; i++)
		settings[n++] = rows[i].entry;
	settings[n] = NULL;
	worker_start(&s->worker, s->relay, settings);
	stage_reattach(s);
	return s;
}

Test(environment_of_commands, changes_no_command)
{
	struct stage *s = open_with_rows();

	for (size_t i = 0; i < ROWS; i++) {
		struct relay_exec *exec = stage_exec(s, "%s", rows[i].command);

		cr_assert_eq(relay_wait_end(exec, STAGE_WAIT_MS)->kind, RELAY_END);
		relay_bytes_add(&exec->out, "", 1);
		relay_bytes_add(&exec->err, "", 1);
		cr_assert_str_eq((const char *)exec->out.at, rows[i].out, "%s: \"%s\", not \"%s\"",
				 rows[i].entry, (const char *)exec->out.at, rows[i].out);
		cr_assert_null(strstr((const char *)exec->err.at, "warning"), "%s", rows[i].entry);
	}
	stage_close(s);
}

static size_t length_of(const struct environment_rule *rule)
{
	return strcspn(rule->begins, "=");
}

/* A variable for each rule; ours must have values that can be in force. */
static void expect_by_rule(const char *user, bool changed)
{
	static const char *settings[WORKER_ENVIRONMENT_MAX];
	static char entries[WORKER_ENVIRONMENT_MAX][64];
	const struct environment_rule *r;
	struct stage *s = stage_prepare();
	struct relay_exec *exec;
	size_t n = 0;

	for (r = environment_rules; r->begins; r++) {
		if (strcmp(r->begins, "STATUS_FILE=") == 0)
			continue;
		snprintf(entries[n], sizeof *entries, "%.*s%s=77", (int)length_of(r), r->begins,
			 r->begins[length_of(r)] ? "" : "X");
		settings[n] = entries[n];
		n++;
	}
	settings[n++] = user;
	settings[n] = NULL;
	worker_start(&s->worker, s->relay, settings);
	stage_reattach(s);
	exec = stage_exec(s, "env | grep '=77$'");
	stage_expect_end(exec, 0);
	relay_bytes_add(&exec->out, "", 1);
	for (r = environment_rules; r->begins; r++) {
		bool seen = false;

		for (const char *at = (const char *)exec->out.at; *at; at += strcspn(at, "\n") + 1)
			seen |=
			    strncmp(at, r->begins, strlen(r->begins)) == 0 && strncmp(at, "BASH_ENV", 8) != 0;
		if (r->fate == ENVIRONMENT_HIDDEN || (r->fate == ENVIRONMENT_OWN && changed))
			cr_assert_not(seen, "%s in %s", r->begins, (const char *)exec->out.at);
		else if (strcmp(r->begins, "BASH_ENV=") != 0)
			cr_assert(seen, "no %s in %s", r->begins, (const char *)exec->out.at);
	}
	cr_assert(strstr((const char *)exec->out.at, "BASH_ENV=77"));
	stage_close(s);
}

Test(environment_of_commands, has_what_the_rules_leave)
{
	expect_by_rule("SANDBOX_USER=", false);
}

Test(environment_of_commands, has_nothing_of_the_users_own_for_another)
{
	if (!drop_holds(CAP_SETUID))
		cr_skip_test("needs root");
	expect_by_rule("SANDBOX_USER=64123", true);
}
