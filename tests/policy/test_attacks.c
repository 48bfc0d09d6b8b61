/* A command that attacks the worker for real, not just asks whether it could. The worker keeps its processes
 * and answers the next command. */
#include "common/landlock.h"
#include "tests/lib/space.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

TestSuite(attacks, .timeout = 90, .init = space_need_own, .fini = stage_fini);

struct ours {
	pid_t execd, netd;
};

static void need_scopes(void)
{
	if (landlock_abi() < LANDLOCK_ABI_SCOPE)
		cr_skip_test("no Landlock with scopes");
}

static struct ours look(struct stage *s)
{
	return (struct ours){s->worker.pid, worker_netd(&s->worker)};
}

/* The same processes as before, not stopped, and at work. */
static void expect_unharmed(struct stage *s, struct ours before)
{
	for (int slots = 4; slots > 0; slots--)
		stage_expect_end(stage_exec(s, "exit 4"), 4);
	cr_assert(!s->worker.exited);
	cr_assert_eq(worker_netd(&s->worker), before.netd);
}

/* It ends all slots where commands share a world, its own and with it itself among them. An exec that is
 * handed to one whose end has not been noticed yet runs in another. */
Test(attacks, kill_of_everything_where_commands_share_a_world)
{
	struct ours before;
	struct stage *s;

	need_scopes();
	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=keep"));
	before = look(s);
	stage_expect_end(stage_exec(s, "kill -9 -1; sleep %s", s->mark), -1);
	expect_unharmed(s, before);
	stage_expect_end(stage_exec(s, "kill -STOP -1; sleep %s", s->mark), -1);
	expect_unharmed(s, before);
	stage_close(s);
}

Test(attacks, kill_of_everything_reaches_no_other_command_where_each_has_its_own)
{
	struct relay_exec *other;
	struct ours before;
	struct stage *s;

	need_scopes();
	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));
	before = look(s);
	other = stage_exec(s, "echo ready; until [ -e %s/go ]; do sleep 0.05; done; exit 5", s->folder);
	stage_wait_out(other, "ready\n");
	stage_expect_end(stage_exec(s, "kill -9 -1; kill -STOP -1; exit 6"), 6);
	stage_expect_end(stage_exec(s, "touch %s/go", s->folder), 0);
	stage_expect_end(other, 5);
	expect_unharmed(s, before);
	stage_close(s);
}

Test(attacks, kill_by_name)
{
	struct ours before;
	struct stage *s;

	need_scopes();
	if (access("/usr/bin/pkill", X_OK) < 0)
		cr_skip_test("no pkill");
	s = stage_open(WORKER_SETTINGS());
	before = look(s);
	stage_expect_end(
	    stage_exec(s, "for n in execd netd init; do pkill -KILL -x $n; pkill -STOP -x $n; done; exit 0"),
	    0);
	expect_unharmed(s, before);
	stage_close(s);
}

/* Bounded by its own RLIMIT_NPROC; the others' is not touched. */
Test(attacks, fork_bomb)
{
	struct relay_exec *bomb;
	struct ours before;
	struct stage *s;
	char command[64];

	snprintf(command, sizeof command, "ulimit -u 120; b() { b | b & }; b; sleep 100");
	s = stage_open(geteuid() == 0 ? WORKER_SETTINGS("SANDBOX_USER=65532:65532", "SANDBOX_BACKGROUND=kill")
				      : WORKER_SETTINGS("SANDBOX_BACKGROUND=kill"));
	before = look(s);
	bomb = stage_send(s, &(struct relay_request){.command = command, .timeout_s = 2, .streaming = true});
	for (int i = 0; i < 3; i++)
		stage_expect_end(stage_exec(s, "(exit 3) | true; exit 4"), 4);
	stage_expect_error(bomb, "timeout:2");
	expect_unharmed(s, before);
	stage_close(s);
}

/* Also those in flight, which count against the user. */
static const char hoard[] =
    "import os, socket, array, sys, time\n"
    "held = []\n"
    "try:\n"
    "    while True:\n"
    "        a, b = socket.socketpair(); held += [a, b]\n"
    "        for i in range(50):\n"
    "            a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 200))], "
    "socket.MSG_DONTWAIT)\n"
    "except OSError as e: print(e.errno, flush=True)\n"
    "try:\n"
    "    while True: held.append(os.open('/dev/null', 0))\n"
    "except OSError as e: print('full', flush=True)\n"
    "while not os.path.exists(sys.argv[1]): time.sleep(0.05)\n";

Test(attacks, descriptors)
{
	struct relay_exec *exec;
	struct ours before;
	struct stage *s;

	if (access("/usr/bin/python3", X_OK) < 0)
		cr_skip_test("no python3");
	s = stage_open(WORKER_SETTINGS());
	before = look(s);
	exec = stage_exec(s, "python3 -c \"%s\" %s/go | grep -o --line-buffered full", hoard, s->folder);
	stage_wait_out(exec, "full\n");
	expect_unharmed(s, before);
	/* A new netd is given its descriptors all the same. */
	process_kill(before.netd, SIGKILL);
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 4"), 4);
	stage_close(s);
}

Test(attacks, full_disk)
{
	char audit[FOLDER_PATH_MAX + 32], status[FOLDER_PATH_MAX + 32];
	struct ours before;
	struct stage *s;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
		cr_skip_test("needs root");
	s = stage_prepare();
	cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	cr_assert_eq(mount("tmpfs", s->folder, "tmpfs", 0, "size=64k"), 0);
	snprintf(audit, sizeof audit, "SANDBOX_AUDIT=%s/audit", s->folder);
	snprintf(status, sizeof status, "STATUS_FILE=%s/status", s->folder);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(audit, status));
	stage_reattach(s);
	before = look(s);
	stage_expect_end(stage_exec(s, "cat /dev/zero >%s/all 2>/dev/null; : >>%s/all; ! echo x >>%s/all",
				    s->folder, s->folder, s->folder),
			 0);
	for (int i = 0; i < 100; i++)
		stage_expect_end(stage_exec(s, "true"), 0);
	expect_unharmed(s, before);
	cr_assert(worker_stop(&s->worker));
	cr_assert_eq(umount2(s->folder, MNT_DETACH), 0);
	stage_leave(s);
}
