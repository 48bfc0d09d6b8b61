/* Every signal to every process of the worker (execd(8), SIGNALS). */
#include "common/dispositions.h"
#include "tests/lib/space.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIGNALS 64

TestSuite(signals, .timeout = 60, .fini = stage_fini);

static struct stage *open_as_process_1(const char *const *settings)
{
	struct stage *s = stage_prepare();

	if (geteuid() != 0 || unshare(CLONE_NEWPID) < 0)
		cr_skip_test("a PID namespace needs root");
	worker_start_prepared(&s->worker, s->relay, settings, space_own_proc);
	stage_reattach(s);
	return s;
}

static bool leaves_alone(int number, uint64_t ending)
{
	return number != SIGKILL && number != SIGSTOP && !(ending & DISPOSITIONS_BIT(number));
}

/* All but those in ending; what runs goes on, and so does the stream. */
static void expect_unmoved(struct stage *s, pid_t pid, uint64_t ending)
{
	pid_t netd = worker_netd(&s->worker);
	struct relay_exec *exec;
	char fifo[FOLDER_PATH_MAX];
	int fd;

	folder_join(fifo, s->folder, "fifo");
	cr_assert(mkfifo(fifo, 0600) == 0 || errno == EEXIST);
	cr_assert_eq(chmod(fifo, 0666), 0);
	exec = stage_exec(s, "echo up; read -r line <'%s/fifo'; exit 3", s->folder);
	stage_wait_out(exec, "up\n");
	for (int number = 1; number <= SIGNALS; number++) {
		if (leaves_alone(number, ending))
			process_kill(pid, number);
	}
	fd = open(fifo, O_RDWR | O_CLOEXEC);
	cr_assert_eq(write(fd, "\n", 1), 1);
	stage_expect_end(exec, 3);
	close(fd);
	cr_assert(process_lives(pid), "it was ended");
	cr_assert_eq(worker_netd(&s->worker), netd, "the stream was lost");
}

/* What makes execd leave is for the tests below. */
static const uint64_t leave =
    DISPOSITIONS_FAULTS | DISPOSITIONS_BIT(SIGTERM) | DISPOSITIONS_BIT(SIGINT) | DISPOSITIONS_BIT(SIGQUIT);

Test(signals, leave_execd_alone)
{
	struct stage *s = stage_open(WORKER_SETTINGS());

	expect_unmoved(s, s->worker.pid, leave);
	stage_close(s);
}

Test(signals, leave_process_1_and_its_execd_alone)
{
	struct stage *s = open_as_process_1(WORKER_SETTINGS());

	expect_unmoved(s, s->worker.pid, leave);
	expect_unmoved(s, process_child(s->worker.pid, "execd"), leave);
	stage_close(s);
}

Test(signals, leave_netd_alone)
{
	struct stage *s = stage_open(WORKER_SETTINGS());

	expect_unmoved(s, worker_netd(&s->worker), DISPOSITIONS_FAULTS);
	stage_close(s);
}

/* Faults too: they are blocked, and come from elsewhere here. */
Test(signals, leave_the_warden_and_slots_alone)
{
	struct stage *s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	pid_t slot;

	stage_expect_end(stage_exec(s, "true"), 0); /* the slot has its name */
	slot = process_child(s->worker.pid, "slot");
	expect_unmoved(s, slot, 0);
	cr_assert_eq(process_child(s->worker.pid, "slot"), slot, "another slot");
	expect_unmoved(s, process_child(s->worker.pid, "warden"), 0);
	cr_assert_not(worker_said(&s->worker, "warden died"));
	stage_close(s);
}

/* SIGQUIT does not wait for what runs. */
static void expect_quit(struct stage *s)
{
	struct relay_exec *exec = stage_exec(s, "echo up; exec sleep %s", s->mark);

	stage_wait_out(exec, "up\n");
	process_kill(s->worker.pid, SIGQUIT);
	stage_expect_end(exec, -1);
	cr_assert(worker_wait_exit(&s->worker, 5000));
	cr_assert_eq(s->worker.wait_status, 0);
	stage_leave(s);
}

Test(signals, quit_leaves_without_a_drain)
{
	expect_quit(stage_open(WORKER_SETTINGS("WORKER_DRAIN_S=3600")));
}

Test(signals, quit_leaves_without_a_drain_as_process_1)
{
	expect_quit(open_as_process_1(WORKER_SETTINGS("WORKER_DRAIN_S=3600")));
}

Test(signals, quit_ends_a_drain)
{
	struct stage *s = stage_open(WORKER_SETTINGS("WORKER_DRAIN_S=3600"));
	struct relay_exec *exec = stage_exec(s, "echo up; exec sleep %s", s->mark);

	stage_wait_out(exec, "up\n");
	process_kill(s->worker.pid, SIGTERM);
	cr_assert(worker_wait_said(&s->worker, "msg=\"shutting down\"", STAGE_WAIT_MS));
	process_kill(s->worker.pid, SIGQUIT);
	stage_expect_end(exec, -1);
	stage_close(s);
}

static void setting_of(char ret[FOLDER_PATH_MAX + 16], const char *name, const char *folder, const char *file)
{
	char path[FOLDER_PATH_MAX];

	folder_join(path, folder, file);
	snprintf(ret, FOLDER_PATH_MAX + 16, "%s=%s", name, path);
}

static void rotate(struct stage *s, const char *from, const char *to)
{
	char old[FOLDER_PATH_MAX], new[FOLDER_PATH_MAX];

	folder_join(old, s->folder, from);
	folder_join(new, s->folder, to);
	cr_assert_eq(rename(old, new), 0);
}

Test(signals, hang_up_opens_files_again)
{
	char audit[FOLDER_PATH_MAX + 16], status[FOLDER_PATH_MAX + 16];
	struct stage *s = stage_prepare();

	setting_of(audit, "SANDBOX_AUDIT", s->folder, "audit");
	setting_of(status, "STATUS_FILE", s->folder, "status");
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(audit, status));
	stage_reattach(s);
	rotate(s, "audit", "audit.1");
	rotate(s, "status", "status.1");
	process_kill(s->worker.pid, SIGHUP);
	cr_assert(worker_wait_said(&s->worker, "files are opened again", STAGE_WAIT_MS));
	stage_expect_end(stage_exec(s, "true"), 0);
	stage_wait_file(s, strchr(audit, '=') + 1, 1);
	stage_wait_file(s, strchr(status, '=') + 1, 1);
	/* What cannot be opened costs nothing. */
	rotate(s, "audit", "audit.2");
	cr_assert_eq(symlink("audit.2", strchr(audit, '=') + 1), 0);
	process_kill(s->worker.pid, SIGHUP);
	cr_assert(worker_wait_said(&s->worker, "setting=SANDBOX_AUDIT", STAGE_WAIT_MS));
	stage_expect_end(stage_exec(s, "true"), 0);
	stage_close(s);
}

static void small_files(void)
{
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0});
}

/* SIGXFSZ. */
Test(signals, of_a_file_size_limit_end_nothing)
{
	char audit[FOLDER_PATH_MAX + 16], status[FOLDER_PATH_MAX + 16];
	struct stage *s = stage_prepare();

	setting_of(audit, "SANDBOX_AUDIT", s->folder, "audit");
	setting_of(status, "STATUS_FILE", s->folder, "status");
	worker_start_prepared(&s->worker, s->relay, WORKER_SETTINGS(audit, status), small_files);
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 3"), 3);
	stage_expect_end(stage_exec(s, "exit 4"), 4);
	stage_close(s);
}
