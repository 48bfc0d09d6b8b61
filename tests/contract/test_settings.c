/* contract.md "Configuration", design.md "Settings of ours": a bad value is one clear line and exit 2. */
#include "tests/lib/program.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

TestSuite(settings, .timeout = 60, .fini = stage_fini);

static int run(const char *const *settings, char log[8192])
{
	const char *environment[WORKER_ENVIRONMENT_MAX];
	const char *argv[] = {program_built("execd"), NULL};

	worker_environment(environment, 9, settings);
	return process_run(argv, environment, log, 8192, 10000);
}

Test(settings, that_are_bad_are_one_line_and_exit_2)
{
	static const struct {
		const char *named; /* what the line must name */
		const char *settings[3];
	} bad[] = {
	    {"RELAY_TLS", {"RELAY_TLS=yes"}},
	    {"RELAY_TLS", {"RELAY_TLS=2"}},
	    {"RELAY_ADDR", {"RELAY_ADDR=http://localhost:8443"}},
	    {"RELAY_ADDR", {"RELAY_ADDR=localhost"}},
	    {"RELAY_ADDR", {"RELAY_ADDR=:8443"}},
	    {"RELAY_ADDR", {"RELAY_ADDR=localhost:0"}},
	    {"RELAY_ADDR", {"RELAY_ADDR=localhost:65536"}},
	    {"RELAY_ADDR", {"RELAY_ADDR=::1:8443"}},
	    {"WORKER_MAX_CONCURRENT", {"WORKER_MAX_CONCURRENT=0"}},
	    {"WORKER_MAX_CONCURRENT", {"WORKER_MAX_CONCURRENT=257"}},
	    {"WORKER_MAX_CONCURRENT", {"WORKER_MAX_CONCURRENT=-1"}},
	    {"WORKER_MAX_CONCURRENT", {"WORKER_MAX_CONCURRENT=4x"}},
	    {"SANDBOX_TRUST", {"SANDBOX_TRUST=maybe"}},
	    {"SANDBOX_TOKEN", {"SANDBOX_TOKEN=a\nb"}},
	    {"SANDBOX_TOKEN", {"SANDBOX_TOKEN=caf\xc3\xa9"}},
	    {"SANDBOX_TOKEN_FILE", {"SANDBOX_TOKEN=a", "SANDBOX_TOKEN_FILE=/dev/null"}},
	    {"RELAY_KEY_FILE", {"RELAY_TLS=1", "RELAY_KEY_FILE=/dev/null"}},
	    {"SANDBOX_BACKGROUND", {"SANDBOX_BACKGROUND=maybe"}},
	    {"HEARTBEAT_S", {"HEARTBEAT_S=0"}},
	    {"LOG_LEVEL", {"LOG_LEVEL=loud"}},
	    {"LOG_FORMAT", {"LOG_FORMAT=xml"}},
	    {"SANDBOX_CWD", {"SANDBOX_CWD=/nowhere/at/all"}},
	    {"SANDBOX_USER", {"SANDBOX_USER=nobody-of-this-name"}},
	    {"WORKER_DRAIN_S", {"WORKER_DRAIN_S=soon"}},
	};
	char log[8192];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int status = run(bad[i].settings, log);
		const char *newline = strchr(log, '\n');

		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2, "%s: wait status %x, %s",
			  bad[i].settings[0], (unsigned)status, log);
		cr_assert(strstr(log, bad[i].named), "%s: %s", bad[i].settings[0], log);
		cr_assert(newline && newline[1] == '\0', "%s: not one line: %s", bad[i].settings[0], log);
	}
}

Test(settings, without_bash_on_the_path_are_exit_1)
{
	char log[8192];
	int status = run(WORKER_SETTINGS("PATH=/nowhere"), log);

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%x", (unsigned)status);
	cr_assert(strstr(log, "PATH"), "%s", log);
	cr_assert(strstr(log, "bash"), "%s", log);
}

/* What Go's ParseBool takes; empty counts as unset. */
Test(settings, may_say_no_to_tls_in_many_words)
{
	static const char *const words[] = {"0", "f", "F", "false", "False", "FALSE", ""};
	char setting[32];

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct stage *s;

		snprintf(setting, sizeof setting, "RELAY_TLS=%s", words[i]);
		s = stage_open(WORKER_SETTINGS(setting));
		stage_close(s);
	}
}

Test(settings, choose_the_folder_of_the_commands)
{
	char setting[FOLDER_PATH_MAX + 16], expected[FOLDER_PATH_MAX + 1];
	struct relay_exec *exec;
	struct stage *s;

	s = stage_prepare();
	snprintf(setting, sizeof setting, "SANDBOX_CWD=%s", s->folder);
	snprintf(expected, sizeof expected, "%s\n", s->folder);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
	stage_reattach(s);
	exec = stage_exec(s, "pwd");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, expected);
	stage_close(s);
}
