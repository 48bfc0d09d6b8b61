/* Processes that were there before execd: children of whoever executed it, as in "daemon & exec execd". They
 * are not its own, nor is what they start. */
#include "tests/lib/peer.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENVIRONMENT                                                                                          \
	((const char *const[]){"PATH=/usr/bin:/bin", "SANDBOX_ID=t", "WORKER_MAX_CONCURRENT=1", address,     \
			       NULL})

static struct program p;
static char address[64];
static char folder[] = "/tmp/inherited-XXXXXX";
static char go[64];
static volatile pid_t *seen; /* shared: a daemon, and what it leaves behind */

static void setup(void)
{
	uint16_t port = 0;

	peer_listen(&port);
	snprintf(address, sizeof address, "RELAY_ADDR=127.0.0.1:%u", port);
	cr_assert(mkdtemp(folder));
	snprintf(go, sizeof go, "%s/go", folder);
	cr_assert_eq(mkfifo(go, 0600), 0);
	seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(seen, MAP_FAILED);
}

static void teardown(void)
{
	program_kill(&p);
	for (int i = 0; i < 2; i++) {
		if (seen[i] > 1)
			kill(seen[i], SIGKILL);
	}
	unlink(go);
	rmdir(folder);
}

TestSuite(inherited, .init = setup, .fini = teardown, .timeout = 60);

/* CHILD, as all that it calls: run, then stay. */
static pid_t leave(void (*run)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		for (int fd = 0; fd < 64; fd++)
			close(fd);
		run();
		for (;;)
			pause();
	}
	return pid;
}

static void stay(void)
{
}

static void leave_daemon(void)
{
	seen[0] = leave(stay);
}

static void give_birth(void)
{
	close(open(go, O_RDONLY));
	seen[1] = leave(stay);
	_exit(0);
}

static void leave_daemon_to_be(void)
{
	seen[0] = leave(give_birth);
}

static void ask_to_be_traced(void)
{
	close(open(go, O_RDONLY));
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGCHLD);
	seen[1] = getpid();
}

static void leave_one_that_is_traced(void)
{
	seen[0] = leave(ask_to_be_traced);
}

static void leave_zombie(void)
{
	seen[0] = leave(stay);
	kill(seen[0], SIGKILL);
	waitid(P_PID, (id_t)seen[0], &(siginfo_t){0}, WEXITED | WNOWAIT);
}

static pid_t start(void (*prepare)(void))
{
	pid_t execd;

	program_start(&p, (const char *const[]){program_built("execd"), NULL}, ENVIRONMENT, prepare);
	cr_assert(program_wait_said(&p, "msg=jailed", PROGRAM_WAIT_MS), "%s", p.said);
	execd = program_child(p.pid, "execd", 0);
	return execd ? execd : p.pid;
}

/* Ends a slot, whose orphans execd then looks for, until that is done. */
static void make_it_sweep(pid_t execd)
{
	pid_t slot = program_child(execd, "slot", PROGRAM_WAIT_MS);

	cr_assert_gt(slot, 1);
	kill(slot, SIGKILL);
	cr_assert(program_wait_said(&p, "slot died", PROGRAM_WAIT_MS), "%s", p.said);
	while (program_child(execd, "slot", PROGRAM_WAIT_MS) == slot)
		usleep(1000);
	cr_assert_gt(program_child(execd, "slot", PROGRAM_WAIT_MS), 1);
	usleep(200000); /* what would be killed wrongly is killed by now */
}

static void stop(void)
{
	kill(p.pid, SIGTERM);
	cr_assert_eq(program_wait_exit(&p, 5000), 0, "%s", p.said);
}

static void wait_until_reaped(pid_t pid)
{
	for (unsigned tries = 0; kill(pid, 0) == 0; tries++) {
		cr_assert_lt(tries, PROGRAM_WAIT_MS / 10);
		usleep(10000);
	}
	cr_assert_eq(errno, ESRCH);
}

static pid_t wait_for_second(void)
{
	int fd = open(go, O_WRONLY);

	cr_assert_geq(fd, 0);
	close(fd);
	for (unsigned tries = 0; seen[1] == 0; tries++) {
		cr_assert_lt(tries, PROGRAM_WAIT_MS / 10, "it does not go on");
		usleep(10000);
	}
	return seen[1];
}

Test(inherited, child_is_not_killed)
{
	make_it_sweep(start(leave_daemon));
	cr_assert(process_lives(seen[0]));
	stop();
	cr_assert(process_lives(seen[0]));
}

Test(inherited, child_is_reaped_when_it_ends)
{
	start(leave_daemon);
	kill(seen[0], SIGKILL);
	wait_until_reaped(seen[0]);
	stop();
}

/* As daemons do: the one that was started ends, and the one that works is an orphan. */
Test(inherited, child_may_leave_a_process_behind)
{
	pid_t execd = start(leave_daemon_to_be), orphan = wait_for_second();

	wait_until_reaped(seen[0]);
	make_it_sweep(execd);
	cr_assert(process_lives(orphan));
	stop();
	cr_assert(process_lives(orphan));
}

Test(inherited, child_that_asks_to_be_traced_goes_on)
{
	start(leave_one_that_is_traced);
	cr_assert_eq(wait_for_second(), seen[0]);
	stop();
}

/* Nothing stands between execd and its parent then. */
Test(inherited, zombie_is_reaped_and_no_more)
{
	cr_assert_eq(start(leave_zombie), p.pid);
	wait_until_reaped(seen[0]);
	stop();
}

Test(inherited, child_costs_no_signal)
{
	start(leave_daemon);
	kill(p.pid, SIGUSR1);
	kill(p.pid, SIGTSTP);
	kill(p.pid, SIGHUP);
	cr_assert(program_wait_said(&p, "files are opened again", PROGRAM_WAIT_MS), "%s", p.said);
	kill(p.pid, SIGQUIT);
	cr_assert_eq(program_wait_exit(&p, 5000), 0);
}

/* Who stands in execd's place is what a supervisor knows. */
Test(inherited, kill_of_the_parent_ends_all)
{
	pid_t execd = start(leave_daemon), slot = program_child(execd, "slot", PROGRAM_WAIT_MS);

	cr_assert_neq(execd, p.pid);
	kill(p.pid, SIGKILL);
	cr_assert(process_wait_dead(NULL, execd, 5000));
	cr_assert(process_wait_dead(NULL, slot, 5000));
	cr_assert(process_lives(seen[0]));
}
