/* Rows of "right in the field" about how the worker is started: test_field.c has the list. */
#include "tests/lib/program.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <net/if.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(field_start, .timeout = 60, .fini = stage_fini);

static void bad_signals_and_descriptors(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	for (int fd = 3; fd <= 20; fd++)
		dup2(STDERR_FILENO, fd);
}

/* row 17 */
Test(field_start, row_17_a_bad_parent_does_not_show_in_commands)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_prepare();
	worker_start_prepared(&s->worker, s->relay, WORKER_SETTINGS(), bad_signals_and_descriptors);
	stage_reattach(s);
	exec = stage_exec(s, "grep -E 'Sig(Blk|Ign)' /proc/self/status; yes | head -n1; echo "
			     "${PIPESTATUS[0]}; ls /proc/$$/fd; :");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\ny\n141\n0\n1\n2\n");
	stage_close(s);
}

static struct {
	const char *program;
	char folder[FOLDER_PATH_MAX];
	char address[64];
	const char *environment[2]; /* at most one variable, or none at all */
} bare;

/* As "env -i" in a shell with a umask of 077, in a folder that is gone. */
static void start_bare(void)
{
	char *args[2] = {NULL};
	char *const *env;

	memcpy(&args[0], &bare.program, sizeof args[0]);
	memcpy(&env, &(const char *const *){bare.environment}, sizeof env);
	umask(077);
	if (chdir(bare.folder) == 0 && rmdir(bare.folder) == 0)
		execve(args[0], args, env);
	_exit(126);
}

/* What sandbox-worker(7) promises to a command whose worker was started with nothing. */
static void expect_bare(struct stage *s)
{
	const struct passwd *user = getpwuid(geteuid());
	struct relay_exec *exec;
	char home[512];

	bare.program = program_built("execd");
	folder_join(bare.folder, s->folder, "doomed");
	cr_assert_eq(mkdir(bare.folder, 0700), 0);
	worker_start_prepared(&s->worker, s->relay, WORKER_SETTINGS(), start_bare);
	stage_reattach(s);
	snprintf(home, sizeof home, "%s", user ? user->pw_dir : "/");
	exec = stage_exec(s,
			  "echo $PATH; [ \"$HOME\" = '%s' ] || echo $HOME; umask; pwd; "
			  "env | cut -d= -f1 | sort | tr '\\n' ' '",
			  home);
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n0077\n/\n"
			       "HOME LANG PATH PWD SHLVL USER _ ");
	stage_expect_err(exec, "");
	cr_assert(worker_said(&s->worker, "commands start in /"), "which folder it is must be in the log");
	stage_close(s);
}

/* row 18 */
Test(field_start, row_18_a_start_with_nothing_but_the_relay)
{
	struct stage *s = stage_prepare();

	stage_relay(s, &(struct relay_options){.token = "dev-token"});
	snprintf(bare.address, sizeof bare.address, "RELAY_ADDR=127.0.0.1:%u", relay_port(s->relay));
	bare.environment[0] = bare.address;
	expect_bare(s);
}

static bool lonely_loopback(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;
	bool up;

	if (unshare(CLONE_NEWNET) < 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
	close(fd);
	return up;
}

/* And with nothing at all: the relay is where the defaults say. */
Test(field_start, row_18_a_start_with_no_environment)
{
	struct stage *s;

	if (geteuid() != 0 || !lonely_loopback())
		cr_skip_test("a network namespace needs root");
	s = stage_prepare();
	stage_relay(s, &(struct relay_options){.port = 8443, .token = "dev-token"});
	expect_bare(s);
}

/* A folder that was named has to be there. */
Test(field_start, row_18_a_named_folder_that_is_gone_is_a_clear_error)
{
	struct stage *s = stage_prepare();

	worker_start(&s->worker, s->relay, WORKER_SETTINGS("SANDBOX_CWD=/nowhere/at/all"));
	cr_assert(worker_wait_exit(&s->worker, STAGE_WAIT_MS));
	cr_assert(WIFEXITED(s->worker.wait_status) && WEXITSTATUS(s->worker.wait_status) == 2);
	cr_assert(worker_wait_said(&s->worker,
				   "/nowhere/at/all cannot be entered by the commands' user: No such file",
				   STAGE_WAIT_MS));
	stage_leave(s);
}
