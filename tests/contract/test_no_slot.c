/* No process can be had for a slot: the limit of the commands' user is used up, by others or by what an
 * earlier command left behind. */
#include "tests/lib/stage.h"

#include "common/clock.h"
#include "common/limits.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 30

/* A user that nobody else is, also not another run of this: the kernel counts over all of the machine. */
static uid_t other;

TestSuite(no_slot, .timeout = 120, .fini = stage_fini);

static void few_processes(void)
{
	setrlimit(RLIMIT_NPROC, &(struct rlimit){PROCESSES, PROCESSES});
}

static struct stage *open_with_few(const char *concurrent)
{
	char user[64];
	struct stage *s;

	if (geteuid() != 0)
		cr_skip_test("another user needs root");
	other = 1000000 + (uid_t)(clock_now_us() % 1000000);
	snprintf(user, sizeof user, "SANDBOX_USER=%u", other);
	s = stage_prepare();
	worker_start_prepared(&s->worker, s->relay, WORKER_SETTINGS(user, concurrent), few_processes);
	stage_reattach(s);
	return s;
}

/* Each is the user's own before this returns. */
static void use_up(pid_t pids[PROCESSES])
{
	int ready[2];
	char byte;

	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	for (int i = 0; i < PROCESSES; i++) {
		const pid_t test = getpid();

		pids[i] = fork();
		cr_assert_geq(pids[i], 0);
		if (pids[i] == 0) {
			if (setresgid(other, other, other) < 0 || setresuid(other, other, other) < 0)
				_exit(1);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != test || write(ready[1], "", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		cr_assert_eq(read(ready[0], &byte, 1), 1);
	}
	close(ready[0]);
	close(ready[1]);
}

static void give_back(const pid_t pids[PROCESSES])
{
	for (int i = 0; i < PROCESSES; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

Test(no_slot, ends_the_wait_by_an_error_and_the_worker_goes_on)
{
	struct stage *s = open_with_few("WORKER_MAX_CONCURRENT=1");
	struct relay_exec *waiting;
	pid_t pids[PROCESSES], slot;
	uint64_t start;

	stage_expect_end(stage_exec(s, "exit 3"), 3);
	use_up(pids);
	slot = process_child(s->worker.pid, "slot");
	process_kill(slot, SIGKILL);
	cr_assert(worker_wait_said(&s->worker, "slot not cloned", STAGE_WAIT_MS));
	start = clock_now_ms();
	waiting = stage_exec(s, "exit 4");
	while (waiting->terminal_count == 0 && clock_now_ms() - start < LIMIT_SLOT_WAIT_MS + 5000)
		relay_run(s->relay, 100);
	stage_expect_error(waiting, "could not start: a slot for it: Resource temporarily unavailable");
	give_back(pids);
	stage_expect_end(stage_exec(s, "exit 5"), 5);
	stage_close(s);
}

/* It fills up again what is given back, also what the leader gives back, in the quiet time that follows. */
static void fill_and_run(const char *concurrent)
{
	struct stage *s = open_with_few(concurrent);
	struct relay_exec *filler, *next;

	cr_assert_eq(chmod(s->folder, 0777), 0);
	filler = stage_exec(s,
			    "python3 -c '\n"
			    "import os, time\n"
			    "while True:\n"
			    "  try:\n"
			    "    if os.fork() == 0: time.sleep(1000)\n"
			    "  except OSError: open(\"%s/full\", \"w\"); time.sleep(0.001)\n"
			    "' & until [ -e '%s/full' ]; do :; done; exit 6",
			    s->folder, s->folder);
	stage_expect_end(filler, 6);
	next = stage_exec(s, "exit 7");
	while (next->terminal_count == 0 && clock_now_ms() - next->sent_ms < LIMIT_SLOT_WAIT_MS)
		relay_run(s->relay, 100);
	stage_expect_end(next, 7);
	cr_assert(worker_said(&s->worker, "why=\"no process to be had\""));
	stage_close(s);
}

Test(no_slot, is_had_from_what_was_left_behind)
{
	fill_and_run("WORKER_MAX_CONCURRENT=1");
}

/* Slots are there, but no process for bash. */
Test(no_slot, nor_is_a_process_for_bash_refused_before_what_was_left_behind_is_given_up)
{
	fill_and_run("WORKER_MAX_CONCURRENT=3");
}
