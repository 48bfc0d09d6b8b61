/* Rows of "right in the field" about the machine around the worker: processes, disks, PID 1. */
#include "tests/lib/program.h"
#include "tests/lib/space.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <unistd.h>

TestSuite(field_world, .timeout = 60, .fini = stage_fini);

static size_t family(const struct stage *s)
{
	pid_t pids[512];

	return process_descendants(s->worker.pid, pids, 512);
}

/* row 3, and the accident that is feared: a command that dies by a death signal with what made its slot. The
 * command is quiet meanwhile; test_long_field.c has the row as it is. */
Test(field_world, row_3_a_command_outlives_what_made_its_slot)
{
	static const char *const backgrounds[] = {"SANDBOX_BACKGROUND=keep", "SANDBOX_BACKGROUND=kill"};

	for (size_t i = 0; i < 2; i++) {
		struct stage *s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1", backgrounds[i]));
		struct relay_exec *exec = stage_exec(s, "touch '%s/up%zu'; sleep 2.5; echo ok", s->folder, i);
		pid_t warden = process_child(s->worker.pid, "warden"), next;
		char up[FOLDER_PATH_MAX + 8];

		snprintf(up, sizeof up, "%s/up%zu", s->folder, i);
		stage_wait_file(s, up, 0);
		cr_assert_gt(warden, 1);
		process_kill(warden, SIGKILL);
		cr_assert(worker_wait_said(&s->worker, "msg=\"warden died\"", STAGE_WAIT_MS));
		while ((next = process_child(s->worker.pid, "warden")) == 0 || next == warden)
			relay_run(s->relay, 10);
		cr_assert_eq(exec->terminal_count, 0);
		stage_expect_end(exec, 0);
		stage_expect_out(exec, "ok\n");
		stage_expect_end(stage_exec(s, "exit 5"), 5);
		stage_close(s);
	}
}

/* row 20. The bomb limits itself first, as an unprivileged user, whom RLIMIT_NPROC binds. */
Test(field_world, row_20_a_fork_bomb_ends_by_its_timeout, .init = space_need_own)
{
	static const char *const as_started[] = {NULL};
	struct relay_exec *exec;
	size_t before;
	struct stage *s;

	s = stage_open(geteuid() == 0 ? WORKER_SETTINGS("SANDBOX_USER=65532:65532") : as_started);
	stage_expect_end(stage_exec(s, "true"), 0);
	before = family(s);
	exec =
	    stage_send(s, &(struct relay_request){.command = "ulimit -u 200 || exit 9; b() { b | b & }; b; "
							     "exec 2>/dev/null; wait; sleep 60",
						  .timeout_s = 3,
						  .streaming = true});
	exec->count_only = true;
	stage_expect_error(exec, "timeout:3");
	exec = stage_exec(s, "echo ok");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "ok\n");
	relay_run(s->relay, 500);
	cr_assert_eq(family(s), before);
	stage_close(s);
}

/* Zombies whose parent is the worker or one of its own. */
static unsigned zombies(const struct stage *s)
{
	pid_t pids[512];
	size_t n = process_descendants(s->worker.pid, pids, 511);
	DIR *proc = opendir("/proc");
	unsigned count = 0;

	cr_assert(proc);
	pids[n++] = s->worker.pid;
	for (struct dirent *d; (d = readdir(proc));) {
		char path[300], stat[512], state;
		const char *after;
		int parent;

		snprintf(path, sizeof path, "/proc/%s/stat", d->d_name);
		if (!isdigit((unsigned char)d->d_name[0]) || folder_read(path, stat, sizeof stat) < 0)
			continue;
		after = strrchr(stat, ')');
		if (!after || sscanf(after + 1, " %c %d", &state, &parent) != 2 || state != 'Z')
			continue;
		for (size_t i = 0; i < n; i++)
			count += pids[i] == parent;
	}
	closedir(proc);
	return count;
}

/* As many execs as the row says; each has a code of its own. */
static void leave_orphans(struct stage *s)
{
	enum { COUNT = 200, WINDOW = 60 };
	struct relay_exec *exec[COUNT];

	for (unsigned i = 0; i < COUNT; i++) {
		if (i >= WINDOW)
			relay_wait_end(exec[i - WINDOW], STAGE_WAIT_MS);
		exec[i] = stage_exec(s, "(sleep .1 &); (setsid true &); exit %u", i);
	}
	for (unsigned i = 0; i < COUNT; i++)
		stage_expect_end(exec[i], (int32_t)i);
	relay_run(s->relay, 1000);
	cr_assert_eq(zombies(s), 0);
}

/* row 21 */
Test(field_world, row_21_orphans_leave_no_zombie)
{
	static const char *const backgrounds[] = {"SANDBOX_BACKGROUND=keep", "SANDBOX_BACKGROUND=kill"};

	for (size_t i = 0; i < 2; i++) {
		struct stage *s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=16", backgrounds[i]));

		leave_orphans(s);
		stage_close(s);
	}
}

Test(field_world, row_21_orphans_of_pid_1_leave_no_zombie)
{
	struct stage *s;

	/* The next child is PID 1 of the new namespace. */
	if (geteuid() != 0 || unshare(CLONE_NEWPID) < 0)
		cr_skip_test("a PID namespace needs root");
	s = stage_prepare();
	worker_start_prepared(&s->worker, s->relay, WORKER_SETTINGS("WORKER_MAX_CONCURRENT=16"),
			      space_own_proc);
	stage_reattach(s);
	leave_orphans(s);
	stage_close(s);
}

/* Shows a folder that the new /tmp hides, when the programs were built in one below it. */
static void show_again(const char *folder, int fd)
{
	char path[PATH_MAX + 2], hidden[32];

	snprintf(path, sizeof path, "%s/", folder);
	for (char *slash = strchr(path + strlen("/tmp/"), '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	snprintf(hidden, sizeof hidden, "/proc/self/fd/%d", fd);
	if (mount(hidden, folder, NULL, MS_BIND, NULL) < 0)
		_exit(125);
}

/* /tmp is 64 KiB and full, the log's disk is full. */
static void full_disks(void)
{
	static const char zeros[4096];
	char programs[PATH_MAX];
	int fd, built;

	if (!realpath(program_built("execd"), programs))
		_exit(124);
	*strrchr(programs, '/') = '\0';
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(126);
	built = open(programs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (mount("tmpfs", "/tmp", "tmpfs", 0, "size=64k,mode=1777") < 0)
		_exit(126);
	if (strncmp(programs, "/tmp/", 5) == 0)
		show_again(programs, built);
	fd = open("/tmp/fill", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, zeros, sizeof zeros) > 0)
		;
	close(fd);
	fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(126);
}

/* row 22 */
Test(field_world, row_22_full_disks_stop_nothing)
{
	struct relay_exec *exec;
	struct stage *s;

	if (geteuid() != 0)
		cr_skip_test("a mount namespace needs root");
	s = stage_prepare();
	worker_start_prepared(&s->worker, s->relay, WORKER_SETTINGS("STATUS_FILE=/tmp/status"), full_disks);
	stage_reattach(s);
	exec = stage_exec(s, "echo x 2>/dev/null >/tmp/more && sync && [ -s /tmp/more ]");
	cr_assert_neq(relay_wait_end(exec, STAGE_WAIT_MS)->exit_code, 0, "the disk is not full");
	relay_run(s->relay, 1500); /* the status is written again once a second */
	exec = stage_exec(s, "echo ok");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "ok\n");
	relay_cut(s->attached, RELAY_CUT_CLOSE);
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 4"), 4);
	stage_close(s);
}
