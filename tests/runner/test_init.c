/* execd as PID 1: a tiny init stays, the worker is its child. In a PID namespace of its own, so for root. */
#include "common/drop.h"
#include "tests/lib/peer.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/lib/space.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static struct program p;
static char address[64];

/* The first process of a new PID namespace is the next child. */
static void setup(void)
{
	uint16_t port = 0;

	peer_listen(&port);
	snprintf(address, sizeof address, "RELAY_ADDR=127.0.0.1:%u", port);
	if (!drop_holds(CAP_SYS_ADMIN) || unshare(CLONE_NEWPID) < 0)
		cr_skip_test("needs CAP_SYS_ADMIN");
}

static void teardown(void)
{
	program_kill(&p);
}

TestSuite(init, .init = setup, .fini = teardown, .timeout = 60);

static void start(void)
{
	program_start(&p, (const char *const[]){program_built("execd"), NULL},
		      (const char *const[]){"PATH=/usr/bin:/bin", "SANDBOX_ID=t", "SANDBOX_TOKEN=tkn-77",
					    address, NULL},
		      space_own_proc);
	cr_assert(program_wait_said(&p, "msg=jailed", PROGRAM_WAIT_MS), "%s", p.said);
}

static pid_t worker(void)
{
	pid_t pid = program_child(p.pid, "execd", PROGRAM_WAIT_MS);

	cr_assert_gt(pid, 0, "init has no execd");
	return pid;
}

/* Numbers of the old namespace's /proc are those of other processes in the new one. */
static void expect_no_start(const char *argument, void (*prepare)(void), const char *why)
{
	int status =
	    program_run(&p, (const char *const[]){program_built("execd"), argument, NULL},
			(const char *const[]){"PATH=/usr/bin:/bin", "SANDBOX_ID=t", address, NULL}, prepare);

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%x %s", (unsigned)status, p.said);
	cr_assert(strstr(p.said, why), "%s", p.said);
	cr_assert_eq(strchr(p.said, '\n'), p.said + strlen(p.said) - 1, "%s", p.said);
}

Test(init, does_not_start_in_the_proc_of_another_namespace)
{
	expect_no_start(NULL, NULL, "it is of another PID namespace");
}

Test(init, is_not_checked_in_the_proc_of_another_namespace)
{
	expect_no_start("--check", NULL, "it is of another PID namespace");
}

/* A file system of no kind that matters. */
static void no_proc(void)
{
	space_own_proc();
	if (mount("none", "/proc", "tmpfs", 0, NULL) < 0)
		_exit(125);
}

Test(init, does_not_start_without_proc)
{
	expect_no_start(NULL, no_proc, "no proc file system");
}

Test(init, holds_nothing)
{
	char path[64], bytes[4096];
	ssize_t n;
	int fd;

	start();
	cr_assert_str_eq(program_status(p.pid, "Name"), "init");
	cr_assert_eq(strtoull(program_status(p.pid, "CapPrm"), NULL, 16), 0);
	cr_assert_eq(strtoull(program_status(p.pid, "CapBnd"), NULL, 16), 0);
	cr_assert_str_eq(program_status(p.pid, "NoNewPrivs"), "1");
	snprintf(path, sizeof path, "/proc/%d/environ", p.pid);
	fd = open(path, O_RDONLY);
	n = read(fd, bytes, sizeof bytes);
	for (ssize_t i = 0; i < n; i++)
		cr_assert_eq(bytes[i], '\0');
	close(fd);
	kill(p.pid, SIGTERM);
	cr_assert_eq(program_wait_exit(&p, 5000), 0);
}

Test(init, leaves_the_worker_a_session_of_its_own)
{
	start();
	cr_assert_eq(getsid(worker()), worker());
	kill(p.pid, SIGINT);
	cr_assert_eq(program_wait_exit(&p, 5000), 0);
}

Test(init, exits_with_the_workers_code)
{
	int status = program_run(&p, (const char *const[]){program_built("execd"), NULL},
				 (const char *const[]){"RELAY_TLS=x", NULL}, space_own_proc);

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2, "%x %s", (unsigned)status, p.said);
}

Test(init, exits_by_128_and_the_signal_that_killed_the_worker)
{
	int status;

	start();
	kill(worker(), SIGKILL);
	status = program_wait_exit(&p, 5000);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL, "%x", (unsigned)status);
}

/* The kernel gives the first process the orphans of its namespace. Here: the children of a killed worker. */
Test(init, takes_the_rest_with_it)
{
	pid_t slot, netd;

	start();
	slot = program_child(worker(), "slot", PROGRAM_WAIT_MS);
	netd = program_child(worker(), "netd", PROGRAM_WAIT_MS);
	kill(worker(), SIGKILL);
	cr_assert_neq(program_wait_exit(&p, 5000), -1);
	cr_assert(process_wait_dead(NULL, slot, 5000));
	cr_assert(process_wait_dead(NULL, netd, 5000));
}
