/* stderr is a terminal that nobody reads, as in a frozen tmux or under docker run -t. */
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TestSuite(terminal, .timeout = 60, .fini = stage_fini);

static const char *name;

static void stderr_is_the_terminal(void)
{
	int fd = open(name, O_RDWR | O_NOCTTY);

	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(126);
	close(fd);
}

static int open_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	cr_assert(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	name = ptsname(master);
	return master;
}

/* Leaves less room than a line needs: poll(2) calls that writable. */
static void fill(int master)
{
	static const char junk[64] = {0};
	int slave = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	char some[8192];

	cr_assert_geq(slave, 0);
	for (int quiet = 0; quiet < 20; quiet++) {
		while (write(slave, junk, sizeof junk) > 0)
			quiet = 0;
		usleep(5000); /* the kernel moves it on by itself */
	}
	cr_assert_gt(read(master, some, sizeof some), 0);
	close(slave);
}

Test(terminal, that_nobody_reads_stops_nothing)
{
	static const char *const settings[] = {"LOG_LEVEL=debug", NULL};
	int master = open_terminal();
	struct relay_exec *exec;
	struct stage *s;

	s = stage_prepare();
	fill(master);
	worker_start_prepared(&s->worker, s->relay, settings, stderr_is_the_terminal);
	stage_reattach(s);
	for (unsigned i = 0; i < 40; i++) {
		exec = stage_exec(s, "exit 3");
		stage_expect_end(exec, 3);
	}
	exec = stage_send(s, &(struct relay_request){.command = "sleep 30", .timeout_s = 1});
	stage_expect_error(exec, "timeout:1");
	exec = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(exec, "up\n");
	process_kill(s->worker.pid, SIGTERM);
	stage_expect_end(exec, -1);
	stage_close(s);
	close(master);
}

/* As after su(1): nobody of ours may open it anew. */
static void stderr_is_anothers(void)
{
	stderr_is_the_terminal();
	if (setgroups(0, NULL) < 0 || setresgid(65532, 65532, 65532) < 0 ||
	    setresuid(65532, 65532, 65532) < 0)
		_exit(126);
}

static bool catches(pid_t pid, int signal)
{
	char path[64], line[256];
	unsigned long long caught = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "re");
	cr_assert(f);
	while (fgets(line, sizeof line, f))
		sscanf(line, "SigCgt: %llx", &caught);
	fclose(f);
	return caught >> (signal - 1) & 1;
}

/* Its log has a timer, too, and the jail lets it use that. */
Test(terminal, of_another_user_that_nobody_reads_stops_no_netd)
{
	struct relay_exec *exec;
	struct stage *s;
	int master;

	if (geteuid() != 0)
		cr_skip_test("another user needs root");
	master = open_terminal();
	s = stage_prepare();
	worker_start_prepared(&s->worker, s->relay, (const char *const[]){NULL}, stderr_is_anothers);
	stage_reattach(s);
	exec = stage_exec(s, "echo up; sleep 1; exit 3");
	stage_wait_out(exec, "up\n");
	cr_assert(catches(process_child(s->worker.pid, "netd"), SIGALRM));
	fill(master);
	relay_goaway(s->attached);
	stage_expect_end(exec, 3);
	stage_close(s);
	close(master);
}
