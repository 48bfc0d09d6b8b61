/* How execd starts, or does not: arguments, settings, what its parent left it. */
#include "common/drop.h"
#include "tests/lib/program.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENV(...)                                                                                             \
	((const char *const[]){"PATH=/usr/bin:/bin", "SANDBOX_ID=t",                                         \
			       "RELAY_ADDR=127.0.0.1:9" __VA_OPT__(, ) __VA_ARGS__, NULL})
#define ARGS(...) ((const char *const[]){program_built("execd") __VA_OPT__(, ) __VA_ARGS__, NULL})

static struct program p;
static char folder[] = "/tmp/start-XXXXXX";
static char file[64];

static void setup(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(file, sizeof file, "%s/file", folder);
}

static void teardown(void)
{
	program_kill(&p);
	unlink(file);
	rmdir(folder);
}

TestSuite(start, .init = setup, .fini = teardown, .timeout = 60);

static void put(const char *text)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static unsigned lines_of(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* One error line that names the setting, and exit code 2. */
static void expect_refused(const char *setting, const char *const environment[], void (*prepare)(void))
{
	char named[64];
	int status = program_run(&p, ARGS(), environment, prepare);

	snprintf(named, sizeof named, "setting=%s ", setting);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2, "%s: status %x: %s", setting,
		  (unsigned)status, p.said);
	cr_assert(strstr(p.said, named), "%s: %s", setting, p.said);
	cr_assert(strstr(p.said, "level=error"));
	cr_assert_eq(lines_of(p.said), 1, "%s: %s", setting, p.said);
}

Test(start, refuses_each_bad_value_with_one_line_and_exit_2)
{
	static const char *const bad[] = {
	    "RELAY_ADDR=http://relay:1",
	    "RELAY_ADDR=relay",
	    "RELAY_TLS=yes",
	    "RELAY_SERVER_NAME=a b",
	    "RELAY_KEY_FILE=/k",
	    "RELAY_CERT_FILE=/k",
	    "NO_PROXY=\x01",
	    "SANDBOX_ID=\xff",
	    "SANDBOX_TOKEN=a\nb",
	    "SANDBOX_TOKEN_FILE=/nonexistent\x01",
	    "SANDBOX_IMAGE=\xff",
	    "SANDBOX_TRUST=maybe",
	    "SANDBOX_USER=no-such-user",
	    "SANDBOX_KEEP_CAPS=cap_none_such",
	    "SANDBOX_BACKGROUND=maybe",
	    "SANDBOX_SECCOMP_BPF=/nonexistent",
	    "SANDBOX_KILLER=axe",
	    "SANDBOX_CWD=/nonexistent",
	    "SANDBOX_CWD=/etc/passwd",
	    "SANDBOX_AUDIT=/nonexistent/audit",
	    "SANDBOX_AUDIT=/dev/null",
	    "NETD_USER=no-such-user",
	    "WORKER_MAX_CONCURRENT=0",
	    "WORKER_MAX_CONCURRENT=257",
	    "WORKER_DRAIN_S=x",
	    "HEARTBEAT_S=0",
	    "LOG_LEVEL=loud",
	    "LOG_FORMAT=yaml",
	    "STATUS_FILE=/nonexistent/status",
	    "STATUS_FILE=/dev/null",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const char *equals = strchr(bad[i], '=');
		const char *environment[] = {"PATH=/usr/bin:/bin", bad[i], NULL};
		char name[64];

		snprintf(name, sizeof name, "%.*s", (int)(equals - bad[i]), bad[i]);
		expect_refused(name, environment, NULL);
	}
}

Test(start, refuses_a_proxy_that_it_cannot_use)
{
	const char *environment[] = {"PATH=/usr/bin:/bin", "RELAY_ADDR=relay.example:1", NULL, NULL};

	environment[2] = "HTTPS_PROXY=https://proxy:1";
	expect_refused("HTTPS_PROXY", environment, NULL);
	environment[2] = "https_proxy=socks://proxy:1";
	expect_refused("https_proxy", environment, NULL);
}

Test(start, refuses_bad_credential_files)
{
	char token[96], ca[96];

	snprintf(token, sizeof token, "SANDBOX_TOKEN_FILE=%s", file);
	snprintf(ca, sizeof ca, "RELAY_CA_FILE=%s", folder);
	put("a\nb\n");
	expect_refused("SANDBOX_TOKEN_FILE", ENV(token), NULL);
	put("");
	expect_refused("SANDBOX_TOKEN_FILE", ENV(token), NULL);
	expect_refused("SANDBOX_TOKEN", ENV(token, "SANDBOX_TOKEN=x"), NULL);
	expect_refused("RELAY_CA_FILE", ENV("RELAY_TLS=1", ca), NULL);
	expect_refused("SSL_CERT_FILE", ENV("RELAY_TLS=1", "SSL_CERT_FILE=/nonexistent"), NULL);
	expect_refused("SSL_CERT_DIR", ENV("RELAY_TLS=1", "SSL_CERT_DIR=/etc/passwd"), NULL);
	expect_refused("SSL_CERT_DIR", ENV("RELAY_TLS=1", "SSL_CERT_DIR=/etc/passwd::/nonexistent"), NULL);
}

Test(start, takes_a_list_of_certificate_folders)
{
	cr_assert_eq(
	    program_run(&p, ARGS("--check"), ENV("RELAY_TLS=1", "SSL_CERT_DIR=/nonexistent:/etc"), NULL), 0,
	    "%s", p.said);
}

static void few_descriptors(void)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){256, 256});
}

static void few_processes(void)
{
	struct rlimit few;

	getrlimit(RLIMIT_NPROC, &few);
	few.rlim_cur = 100; /* which the kernel enforces, whatever the hard one is */
	setrlimit(RLIMIT_NPROC, &few);
}

Test(start, refuses_more_at_once_than_its_limits_allow)
{
	expect_refused("WORKER_MAX_CONCURRENT", ENV("WORKER_MAX_CONCURRENT=256"), few_descriptors);
	expect_refused(
	    "WORKER_MAX_CONCURRENT",
	    ENV("WORKER_MAX_CONCURRENT=256", getuid() == 0 ? "SANDBOX_USER=64123" : "SANDBOX_USER="),
	    few_processes);
}

Test(start, refuses_users_and_capabilities_that_it_cannot_give)
{
	if (getuid() == 0)
		cr_skip_test("is for the unprivileged run");
	expect_refused("SANDBOX_USER", ENV("SANDBOX_USER=0"), NULL);
	expect_refused("NETD_USER", ENV("NETD_USER=0"), NULL);
	expect_refused("SANDBOX_KEEP_CAPS", ENV("SANDBOX_KEEP_CAPS=net_raw"), NULL);
}

/* A container with these two and no CAP_KILL. */
static void only_changes_users(void)
{
	const uint64_t two = DROP_CAP(CAP_SETUID) | DROP_CAP(CAP_SETGID);
	const char *step;

	if (drop_privileges(&(struct drop){.keep = two, .bounding = two, .ambient = true}, &step) < 0)
		_exit(126);
}

Test(start, refuses_users_that_it_cannot_kill)
{
	if (getuid() != 0)
		cr_skip_test("needs root");
	expect_refused("SANDBOX_USER", ENV("SANDBOX_USER=64123"), only_changes_users);
	expect_refused("NETD_USER", ENV("NETD_USER=64123"), only_changes_users);
	expect_refused("SANDBOX_KEEP_CAPS", ENV("SANDBOX_KEEP_CAPS=setuid"), only_changes_users);
	cr_assert_eq(program_run(&p, ARGS("--check"), ENV("SANDBOX_USER=0:0"), only_changes_users), 0, "%s",
		     p.said);
	cr_assert(strstr(p.said, "uid 0, as execd"), "%s", p.said);
}

Test(start, without_bash_is_exit_1_and_names_path)
{
	const char *environment[] = {"PATH=/nonexistent:relative:", NULL};
	int status = program_run(&p, ARGS(), environment, NULL);

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%s", p.said);
	cr_assert(strstr(p.said, "setting=PATH") && strstr(p.said, "bash"));
}

Test(start, takes_three_arguments_and_no_others)
{
	static const char *const wrong[] = {"--chec", "-h", "check", ""};
	int status = program_run(&p, ARGS("--version"), ENV(), NULL);

	cr_assert_eq(status, 0);
	cr_assert_eq(strncmp(p.said, "execd ", 6), 0);
	cr_assert_eq(program_run(&p, ARGS("--help"), ENV(), NULL), 0);
	cr_assert(strstr(p.said, "--check"));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		status = program_run(&p, ARGS(wrong[i]), ENV(), NULL);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
	}
	status = program_run(&p, ARGS("--check", "--check"), ENV(), NULL);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
}

Test(start, checks_and_says_what_is_in_force)
{
	static const char *const said[] = {"relay ",  "127.0.0.1:9", "killer ",     "Landlock ",     "bash ",
					   "memory ", "policy ",     "netd's user", "commands' user"};
	int status = program_run(&p, ARGS("--check"), ENV("SANDBOX_TOKEN=s3cr3t"), NULL);

	cr_assert_eq(status, 0, "%s", p.said);
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		cr_assert(strstr(p.said, said[i]), "no %s in: %s", said[i], p.said);
	cr_assert_null(strstr(p.said, "s3cr3t"));
	cr_assert_null(strstr(p.said, "/proc"), "%s", p.said);
	status = program_run(&p, ARGS("--check"), ENV("RELAY_TLS=2"), NULL);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
}

Test(start, sums_up_the_memory_of_the_worst_case)
{
	cr_assert_eq(program_run(&p, ARGS("--check"), ENV("WORKER_MAX_CONCURRENT=1"), NULL), 0);
	cr_assert(strstr(p.said, "68 held, 16 of non-streaming output, 18 of one message"), "%s", p.said);
	cr_assert(strstr(p.said, "at most 102 MiB"));
}

static void expect_warning(const char *text, const char *const environment[])
{
	cr_assert_eq(program_run(&p, ARGS("--check"), environment, NULL), 0, "%s", p.said);
	cr_assert(strstr(p.said, text), "no %s in: %s", text, p.said);
}

static void expect_no_warning(const char *text, const char *const environment[])
{
	cr_assert_eq(program_run(&p, ARGS("--check"), environment, NULL), 0, "%s", p.said);
	cr_assert_null(strstr(p.said, text), "%s in: %s", text, p.said);
}

Test(start, warns_of_what_is_unwise)
{
	char status[96];

	expect_warning("SANDBOX_ID is the default", (const char *const[]){"PATH=/usr/bin:/bin", NULL});
	expect_no_warning("SANDBOX_ID is the default", ENV());
	expect_warning("SANDBOX_TOKEN is the default",
		       (const char *const[]){"PATH=/usr/bin:/bin", "RELAY_ADDR=relay.example:1", NULL});
	expect_no_warning("SANDBOX_TOKEN is the default", ENV());
	expect_warning("untrusted", ENV());
	expect_no_warning("untrusted, and", ENV("SANDBOX_BACKGROUND=kill"));
	expect_no_warning("untrusted, and", ENV("SANDBOX_TRUST=trusted"));
	snprintf(status, sizeof status, "STATUS_FILE=%s", file);
	expect_warning("STATUS_FILE is where commands can write", ENV(status));
	if (getuid() == 0)
		expect_warning("uid 0", ENV());
	else
		expect_no_warning("uid 0", ENV());
}

static unsigned times_said(const char *text)
{
	unsigned n = 0;

	for (const char *at = p.said; (at = strstr(at, text)); at++)
		n++;
	return n;
}

Test(start, warns_of_misspelt_settings_by_name_and_never_by_value)
{
	static const char *const said[] = {
	    "msg=\"unknown setting\" name=SANDBOX_TOKN nearest=SANDBOX_TOKEN",
	    "msg=\"unknown setting\" name=RELAY_ADDRESS nearest=RELAY_ADDR",
	    "msg=\"unknown setting\" name=SANBOX_TOKEN_FILE nearest=SANDBOX_TOKEN_FILE",
	    "msg=\"unknown setting\" name=worker_drain_s nearest=WORKER_DRAIN_S",
	    "msg=\"unknown setting\" name=NETD_GROUP nearest=NETD_USER",
	};
	int status = program_run(&p, ARGS("--check"),
				 ENV("SANDBOX_TOKN=s3cr3t", "RELAY_ADDRESS=s3cr3t", "SANDBOX_TOKN=s3cr3t",
				     "SANBOX_TOKEN_FILE=/s3cr3t", "worker_drain_s=s3cr3t", "NETD_GROUP="),
				 NULL);

	cr_assert_eq(status, 0, "%s", p.said);
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		cr_assert_eq(times_said(said[i]), 1, "%s in: %s", said[i], p.said);
	cr_assert_eq(times_said("unknown setting"), sizeof said / sizeof *said, "%s", p.said);
	cr_assert_null(strstr(p.said, "s3cr3t"));
}

/* What the kubelet makes of a Service called relay, and of one called sandbox-worker. */
Test(start, takes_service_links_for_no_settings)
{
	expect_no_warning("unknown setting",
			  ENV("RELAY_SERVICE_HOST=10.0.0.1", "RELAY_SERVICE_PORT=8443",
			      "RELAY_SERVICE_PORT_GRPC=8443", "RELAY_PORT=tcp://10.0.0.1:8443",
			      "RELAY_PORT_8443_TCP=tcp://10.0.0.1:8443", "RELAY_PORT_8443_TCP_PROTO=tcp",
			      "RELAY_PORT_8443_TCP_PORT=8443", "RELAY_PORT_8443_TCP_ADDR=10.0.0.1",
			      "SANDBOX_WORKER_PORT=udp://10.0.0.2:1"));
	expect_warning("name=RELAY_PORT ", ENV("RELAY_PORT=8443"));
}

Test(start, says_that_a_killer_is_not_used)
{
	expect_warning("SANDBOX_KILLER is set and not used", ENV("SANDBOX_KILLER=landlock"));
	expect_no_warning("SANDBOX_KILLER is set", ENV("SANDBOX_KILLER=sweep", "SANDBOX_BACKGROUND=kill"));
}

Test(start, warns_of_plaintext_only_where_it_leaves_the_machine)
{
	static const char *const near[] = {"RELAY_ADDR=localhost:1", "RELAY_ADDR=127.9.9.9:1",
					   "RELAY_ADDR=[::1]:1", "RELAY_ADDR=a.localhost:1"};
	static const char *const far[] = {"RELAY_ADDR=relay.example:1", "RELAY_ADDR=10.0.0.1:1",
					  "RELAY_ADDR=[::2]:1"};

	for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
		const char *environment[] = {"PATH=/usr/bin:/bin", "SANDBOX_TOKEN=x", near[i], NULL};

		expect_no_warning("in the clear", environment);
	}
	for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
		const char *environment[] = {"PATH=/usr/bin:/bin", "SANDBOX_TOKEN=x", far[i], NULL};

		expect_warning("in the clear", environment);
	}
}

Test(start, warns_of_a_token_file_that_commands_can_read)
{
	char token[96];

	snprintf(token, sizeof token, "SANDBOX_TOKEN_FILE=%s", file);
	put("tok");
	expect_warning("SANDBOX_TOKEN_FILE can be read by commands", ENV(token));
	expect_warning(file, ENV(token));
	if (getuid() == 0)
		expect_no_warning("SANDBOX_TOKEN_FILE can be read", ENV(token, "SANDBOX_USER=64123"));
}

static void bad_parent(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	signal(SIGTERM, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	close(STDIN_FILENO);
	fcntl(STDOUT_FILENO, F_DUPFD, 50);
}

Test(start, survives_what_a_parent_left_it)
{
	char path[64];
	int status;

	program_start(&p, ARGS(), ENV(), bad_parent);
	cr_assert(program_wait_said(&p, "backoff_ms=", PROGRAM_WAIT_MS), "%s", p.said);
	snprintf(path, sizeof path, "/proc/%d/fd/50", p.pid);
	cr_assert_eq(faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW), -1,
		     "an inherited descriptor is open");
	kill(p.pid, SIGTERM);
	status = program_wait_exit(&p, 5000);
	cr_assert_eq(status, 0, "%x: %s", (unsigned)status, p.said);
}

static void no_descriptors(void)
{
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
}

Test(start, works_without_any_descriptor)
{
	int status;

	program_start(&p, ARGS(), ENV(), no_descriptors);
	cr_assert(program_child(p.pid, "slot", PROGRAM_WAIT_MS) > 0);
	kill(p.pid, SIGTERM);
	status = program_wait_exit(&p, 5000);
	cr_assert_eq(status, 0);
}

static void ignore_hangup(void)
{
	signal(SIGHUP, SIG_IGN);
}

Test(start, heeds_nohup)
{
	program_start(&p, ARGS(), ENV(), ignore_hangup);
	cr_assert(program_wait_said(&p, "backoff_ms=", PROGRAM_WAIT_MS));
	kill(p.pid, SIGHUP);
	kill(p.pid, SIGTERM);
	cr_assert_eq(program_wait_exit(&p, 5000), 0);
}
