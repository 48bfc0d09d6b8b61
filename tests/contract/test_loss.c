/* contract.md 9, 10; design.md: the end of the stream, however it comes, and the end of our own processes.
 * valgrind: pipes are open at the end */
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(loss, .timeout = 60, .fini = stage_fini);

/* Kills what runs, drops what waits; a finished id is replayed; the killed one runs again. */
static void lose(struct stage *s, uint64_t base, void (*how)(struct stage *s))
{
	struct relay_request done = {.req_id = base, .streaming = true};
	struct relay_request killed = {.req_id = base + 1, .streaming = true};
	struct relay_request waits = {.req_id = base + 2};
	char done_ran[FOLDER_PATH_MAX], killed_ran[FOLDER_PATH_MAX], command[3][1024], name[32];
	struct relay_exec *exec;

	snprintf(name, sizeof name, "done%u", (unsigned)base);
	folder_join(done_ran, s->folder, name);
	snprintf(name, sizeof name, "killed%u", (unsigned)base);
	folder_join(killed_ran, s->folder, name);
	snprintf(command[0], sizeof command[0], "echo >> '%s'; exit 7", done_ran);
	snprintf(command[1], sizeof command[1], "echo >> '%s'; echo up; setsid sleep %s & sleep %s",
		 killed_ran, s->mark, s->mark);
	snprintf(command[2], sizeof command[2], "echo >> '%s'", killed_ran);
	done.command = command[0], killed.command = command[1], waits.command = command[2];
	stage_expect_end(relay_exec(s->attached, &done), 7);
	exec = relay_exec(s->attached, &killed);
	stage_wait_out(exec, "up\n");
	relay_exec(s->attached, &waits);

	how(s);
	cr_assert(process_wait_count(s->relay, s->mark, 0, 5000), "the loss of the stream kills");
	stage_reattach(s);
	exec = relay_exec(s->attached, &done);
	stage_expect_end(exec, 7);
	cr_assert_eq(folder_size(done_ran), 1, "what was done ran again");
	cr_assert_eq(folder_size(killed_ran), 1, "what waited has run");
	exec = relay_exec(s->attached, &killed);
	stage_wait_out(exec, "up\n");
	cr_assert_eq(folder_size(killed_ran), 2);
	relay_abort(s->attached, killed.req_id);
	stage_expect_end(exec, -1);
}

static void by_close(struct stage *s)
{
	relay_cut(s->attached, RELAY_CUT_CLOSE);
}

static void by_reset(struct stage *s)
{
	relay_cut(s->attached, RELAY_CUT_RESET);
}

static void in_a_message(struct stage *s)
{
	relay_cut(s->attached, RELAY_CUT_MIDDLE);
}

static void by_trailers(struct stage *s)
{
	relay_end_stream(s->attached, 0, NULL);
}

static void by_rst_stream(struct stage *s)
{
	relay_reset_stream(s->attached, 8);
}

static void of_netd(struct stage *s)
{
	pid_t netd = worker_netd(&s->worker);

	cr_assert(netd > 0, "no netd");
	process_kill(netd, SIGKILL);
}

Test(loss, of_the_connection_kills_and_the_id_runs_again)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	lose(s, 10, by_close);
	lose(s, 20, by_reset);
	lose(s, 30, in_a_message);
	stage_close(s);
}

Test(loss, of_the_stream_kills_and_the_id_runs_again)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	lose(s, 10, by_trailers);
	lose(s, 20, by_rst_stream);
	stage_close(s);
}

Test(loss, of_netd_kills_and_the_id_runs_again)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	lose(s, 10, of_netd);
	stage_close(s);
}

/* It says nothing for 20 s: killed like a lost stream. */
Test(loss, of_a_stopped_netd_is_noticed)
{
	struct relay_request done = {.req_id = 3};
	char ran[FOLDER_PATH_MAX], command[512];
	struct stage *s;
	pid_t netd;

	s = stage_open(WORKER_SETTINGS());
	folder_join(ran, s->folder, "ran");
	snprintf(command, sizeof command, "echo >> '%s'; exit 7", ran);
	done.command = command;
	stage_expect_end(relay_exec(s->attached, &done), 7);
	stage_wait_out(stage_exec(s, "echo up; exec sleep %s", s->mark), "up\n");
	netd = worker_netd(&s->worker);
	process_kill(netd, SIGSTOP);
	cr_assert(process_wait_count(s->relay, s->mark, 0, 30000));
	cr_assert(process_wait_dead(s->relay, netd, 5000));
	stage_reattach(s);
	stage_expect_end(relay_exec(s->attached, &done), 7);
	cr_assert_eq(folder_size(ran), 1);
	stage_close(s);
}

/* The output that was under way when the stream was lost cannot be had again: the replay says so. */
Test(loss, of_output_is_told_by_the_replay)
{
	struct relay_request request = {.req_id = 4, .streaming = true};
	char command[512], ran[FOLDER_PATH_MAX];
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	folder_join(ran, s->folder, "ran");
	/* Fits into the pipe, but not into the window: the command ends by itself. */
	relay_hold_window(s->attached, true);
	exec = stage_exec(s, "head -c 60000 /dev/zero");
	cr_assert(relay_wait_bytes(exec, 60000, STAGE_WAIT_MS));
	snprintf(command, sizeof command, "head -c 60000 /dev/zero; echo >> '%s'; exit 7", ran);
	request.command = command;
	exec = relay_exec(s->attached, &request);
	stage_wait_file(s, ran, 1);
	cr_assert_eq(exec->terminal_count, 0);
	/* Its exit is known to the worker before the cut. */
	relay_run(s->relay, 200);
	relay_cut(s->attached, RELAY_CUT_CLOSE);
	stage_reattach(s);
	exec = relay_exec(s->attached, &request);
	stage_expect_end(exec, 7);
	cr_assert(exec->terminal[0].truncated);
	cr_assert_eq(exec->chunk_count, 0);
	cr_assert_eq(folder_size(ran), 1);
	stage_close(s);
}

static bool write_text(const char *folder, const char *file, const char *text)
{
	char path[128];
	int fd, n;

	snprintf(path, sizeof path, "%s/%s", folder, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : (int)write(fd, text, strlen(text));
	if (fd >= 0)
		close(fd);
	return n == (int)strlen(text);
}

/* In the freezer of cgroups, version 1, not even SIGKILL is taken before the thaw. Nothing is asserted while
 * one is frozen. */
Test(loss, of_an_aborted_exec_is_replayed_once_it_is_proven_dead)
{
	struct relay_request request = {.req_id = 5, .streaming = true};
	char freezer[64], command[512], ran[FOLDER_PATH_MAX], pid[32];
	unsigned early;
	struct relay_exec *exec;
	struct stage *s;
	bool frozen;

	snprintf(freezer, sizeof freezer, "/sys/fs/cgroup/freezer/worker-test-%d", getpid());
	if (mkdir(freezer, 0755) < 0)
		cr_skip_test("no freezer of our own: %s", strerror(errno));
	s = stage_open(WORKER_SETTINGS());
	folder_join(ran, s->folder, "ran");
	snprintf(command, sizeof command, "sleep %s & echo $!; echo >> '%s'; wait", s->mark, ran);
	request.command = command;
	exec = relay_exec(s->attached, &request);
	stage_wait_file(s, ran, 1);
	cr_assert(relay_wait_bytes(exec, 2, STAGE_WAIT_MS));
	snprintf(pid, sizeof pid, "%.*s", (int)(exec->out.size - 1), (const char *)exec->out.at);
	frozen = write_text(freezer, "cgroup.procs", pid) && write_text(freezer, "freezer.state", "FROZEN");
	relay_abort(s->attached, exec->req_id);
	relay_run(s->relay, 200);
	relay_cut(s->attached, RELAY_CUT_CLOSE);
	stage_reattach(s);
	exec = relay_exec(s->attached, &request);
	relay_run(s->relay, 1000);
	early = exec->terminal_count;
	write_text(freezer, "freezer.state", "THAWED");
	cr_assert(frozen);
	cr_assert_eq(early, 0, "answered with a process alive");
	stage_expect_end(exec, -1);
	cr_assert_eq(process_count(s->mark), 0);
	cr_assert_eq(folder_size(ran), 1, "it ran again");
	stage_close(s);
	rmdir(freezer);
}

/* Nothing lives longer than execd by more than it takes to kill: 5 to 30 ms, 220 with ASan among 20 that fork
 * all the time. What is not killed would live for more than an hour. */
Test(loss, of_execd_takes_everything_along)
{
	pid_t below[64];
	struct stage *s;
	size_t count;

	s = stage_open(WORKER_SETTINGS());
	stage_expect_end(stage_exec(s, "setsid sleep %s >/dev/null 2>&1 &", s->mark), 0);
	stage_wait_out(stage_exec(s, "echo up; setsid sleep %s & sleep %s", s->mark, s->mark), "up\n");
	count = process_descendants(s->worker.pid, below, 64);
	cr_assert_geq(count, 6, "netd, slots and commands");
	process_kill(s->worker.pid, SIGKILL);
	cr_assert(worker_wait_exit(&s->worker, STAGE_WAIT_MS));
	cr_assert(process_wait_no_children(s->relay, STAGE_WAIT_MS));
	for (size_t i = 0; i < count; i++)
		cr_assert(!process_lives(below[i]), "%d", (int)below[i]);
	stage_leave(s);
}
