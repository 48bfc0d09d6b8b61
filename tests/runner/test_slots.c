/* What an exec gets and what comes back, with real processes. suite-timeout: 120 */
#include "tests/lib/slot_rig.h"

#include "common/channel.h"
#include "common/clock.h"
#include "common/outcome.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(slots, .timeout = 60);

#define ARGUMENT 131071u

static struct rig_exec x;

static void start(void)
{
	rig_prepare();
	rig_start();
}

Test(slots, report_exit_codes_and_signals)
{
	start();
	cr_assert(WEXITSTATUS(rig_do("exit 0", NULL, &x)) == 0);
	cr_assert_str_eq(x.order, "sxE");
	cr_assert(WEXITSTATUS(rig_do("exit 7", NULL, NULL)) == 7);
	cr_assert(WEXITSTATUS(rig_do("exit 255", NULL, NULL)) == 255);
	cr_assert(WEXITSTATUS(rig_do("nosuchcommand_x", NULL, NULL)) == 127);
	cr_assert(WEXITSTATUS(rig_do("", NULL, NULL)) == 0);
	cr_assert(WTERMSIG(rig_do("kill -9 $$", NULL, &x)) == SIGKILL);
	cr_assert(!x.by_kill);
	cr_assert(WTERMSIG(rig_do("kill -TERM $$", NULL, NULL)) == SIGTERM);
	cr_assert(WTERMSIG(rig_do("kill -SEGV $$", NULL, NULL)) == SIGSEGV);
	rig_stop();
}

Test(slots, carry_stdin_to_its_end_and_both_outputs)
{
	start();
	rig_do("cat; echo done; echo other >&2", "some input\n", &x);
	cr_assert_str_eq(x.out, "some input\ndone\n");
	cr_assert_str_eq(x.err, "other\n");
	rig_do("wc -c", NULL, &x);
	cr_assert_str_eq(x.out, "0\n");
	rig_stop();
}

Test(slots, carry_more_output_than_a_pipe_holds)
{
	start();
	rig_do("head -c 200000 /dev/zero | tr '\\0' x", NULL, &x);
	cr_assert_eq(x.out_size, 200000);
	rig_stop();
}

/* A child's status must not be taken for the leader's, nor the leader's be lost to a stray wait. */
Test(slots, report_the_leaders_status_and_no_other)
{
	start();
	for (int i = 0; i < 20; i++) {
		rig_do("for i in 1 2 3 4 5; do (exit 9) & done; (setsid sh -c 'exit 8' &); exit 5", NULL, &x);
		cr_assert(WIFEXITED(x.wait_status) && WEXITSTATUS(x.wait_status) == 5);
	}
	rig_stop();
}

Test(slots, give_a_command_three_descriptors)
{
	start();
	rig_do("echo /proc/self/fd/*; exec ls -l /proc/self/fd", NULL, &x);
	cr_assert(strstr(x.out, "0 -> pipe:") && strstr(x.out, "1 -> pipe:") && strstr(x.out, "2 -> pipe:"));
	/* 3 is what ls reads the folder with. */
	cr_assert(!strstr(x.out, " 4 ->"), "%s", x.out);
	rig_stop();
}

Test(slots, give_a_command_pipes_that_block)
{
	start();
	rig_do("for i in 0 1 2; do grep flags /proc/$$/fdinfo/$i; done", NULL, &x);
	cr_assert_str_eq(x.out, "flags:\t00\nflags:\t01\nflags:\t01\n");
	rig_stop();
}

Test(slots, start_commands_with_signals_as_by_default)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	start();
	rig_do("exec cat /proc/self/status", NULL, &x);
	cr_assert(
	    strstr(x.out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000000000"),
	    "%s", x.out);
	rig_stop();
}

Test(slots, make_the_leader_head_of_its_own_session)
{
	start();
	rig_do("echo $$; exec cut -d' ' -f1,5,6 /proc/self/stat", NULL, &x);
	int pid, self, group, session;
	cr_assert_eq(sscanf(x.out, "%d %d %d %d", &pid, &self, &group, &session), 4);
	cr_assert_eq(pid, self);
	cr_assert_eq(pid, group);
	cr_assert_eq(pid, session);
	rig_stop();
}

static char *repeat(char *to, char c, size_t n)
{
	memset(to, c, n);
	return to + n;
}

/* echo $#, then a comment of the wanted length, then a line that shows its number. */
static char *long_command(size_t length)
{
	static const char head[] = "echo $# $0 $LINENO; echo \"$@\" > /dev/null\n: ",
			  tail[] = "\necho $LINENO end\n";
	char *text = malloc(length + 1), *at = text;

	cr_assert(text);
	at = stpcpy(at, head);
	at = repeat(at, 'x', length - strlen(head) - strlen(tail));
	at = stpcpy(at, tail);
	cr_assert_eq((size_t)(at - text), length);
	return text;
}

static void run_long(size_t length, uint32_t piece)
{
	char *text = long_command(length);
	unsigned slot = rig_run_pieces(text, length, piece);

	rig_until(slot, SLOT_EMPTY);
	rig_for(10);
	cr_assert(WIFEXITED(rig_execs[slot].wait_status) && WEXITSTATUS(rig_execs[slot].wait_status) == 0,
		  "%zu: %s", length, rig_execs[slot].err);
	cr_assert_str_eq(rig_execs[slot].out, "0 bash 1\n3 end\n", "%zu: %s", length, rig_execs[slot].out);
	rig_release(slot);
	free(text);
}

Test(slots, run_commands_around_the_length_of_one_argument)
{
	start();
	for (size_t d = 0; d < 4; d++)
		run_long(ARGUMENT - 2 + d, CHANNEL_PIECE_MAX);
	for (size_t d = 0; d < 3; d++)
		run_long(2 * ARGUMENT - 1 + d, 50000);
	rig_stop();
}

Test(slots, run_commands_up_to_the_limit)
{
	start();
	run_long(LIMIT_COMMAND - 1, CHANNEL_PIECE_MAX);
	run_long(LIMIT_COMMAND, CHANNEL_PIECE_MAX);
	run_long(LIMIT_COMMAND, 4096);
	rig_stop();
}

/* execd refuses those before; a slot that is told to would not be the slot we know. */
Test(slots, die_of_a_command_above_the_limit)
{
	char *text = long_command(LIMIT_COMMAND + 1);
	unsigned slot;

	start();
	slot = rig_run_pieces(text, LIMIT_COMMAND + 1, 60000);
	rig_until(slot, SLOT_UNREAD);
	cr_assert_str_eq(rig_execs[slot].order, "U");
	rig_release(slot);
	run_long(1000, 60000);
	rig_stop();
	free(text);
}

Test(slots, kill_what_runs)
{
	unsigned slot;

	start();
	slot = rig_run("sleep 1000 & sleep 1000", NULL);
	rig_until(slot, SLOT_STARTED);
	slots_kill(slot);
	slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	cr_assert(rig_execs[slot].by_kill);
	cr_assert(WIFSIGNALED(rig_execs[slot].wait_status));
	cr_assert_str_eq(rig_execs[slot].order, "sxE");
	rig_release(slot);
	rig_stop();
}

/* Killing a child before bash would make bash exit 137 "by itself". */
Test(slots, kill_the_leader_before_its_children)
{
	unsigned slot;

	start();
	for (int i = 0; i < 20; i++) {
		slot = rig_run("sleep 1000; exit 3", NULL);
		rig_until(slot, SLOT_STARTED);
		rig_for(5);
		slots_kill(slot);
		rig_until(slot, SLOT_EMPTY);
		cr_assert(WIFSIGNALED(rig_execs[slot].wait_status));
		rig_release(slot);
	}
	rig_stop();
}

/* The kill that comes late finds an exit, whenever exactly it comes. */
Test(slots, leave_the_status_of_a_leader_that_has_exited)
{
	unsigned slot;

	start();
	for (int i = 0; i < 30; i++) {
		slot = rig_run("exit 4", NULL);
		rig_until(slot, SLOT_STARTED);
		usleep((useconds_t)(i * 100));
		slots_kill(slot);
		rig_until(slot, SLOT_EMPTY);
		if (!rig_execs[slot].by_kill)
			cr_assert(WIFEXITED(rig_execs[slot].wait_status) &&
				  WEXITSTATUS(rig_execs[slot].wait_status) == 4);
		rig_release(slot);
	}
	rig_stop();
}

Test(slots, do_not_start_what_is_killed_while_its_command_comes)
{
	unsigned slot = 0;
	struct slot_run run = {.command_len = 6, .given = (const uint8_t *)"exit", .given_len = 4};
	int ours[3], theirs[3];

	start();
	slot = rig_take();
	cr_assert_eq(slots_pipes(ours, theirs), 0);
	memset(&rig_execs[slot], 0, sizeof rig_execs[slot]);
	rig_execs[slot].command_len = 4; /* nothing more is given */
	cr_assert_eq(slots_run(slot, &run, ours, theirs), 0);
	slots_kill(slot);
	rig_until(slot, SLOT_EMPTY);
	cr_assert(!rig_has(slot, SLOT_STARTED) && !rig_has(slot, SLOT_LEADER_EXITED));
	for (int i = 0; i < 3; i++) {
		close(ours[i]);
		close(theirs[i]);
	}
	slots_release(slot);
	rig_stop();
}

Test(slots, say_which_step_of_a_start_failed)
{
	rig_prepare();
	strcpy(rig_config.bash, "/nonexistent/bash");
	rig_start();
	for (int i = 0; i < 3; i++) {
		unsigned slot = rig_run("exit 0", NULL);

		rig_until(slot, SLOT_START_FAILED);
		cr_assert_eq(OUTCOME_START_STEP(rig_execs[slot].failed), START_EXEC);
		cr_assert_eq(OUTCOME_START_ERRNO(rig_execs[slot].failed), ENOENT);
		cr_assert_str_eq(rig_execs[slot].order, "F");
		rig_release(slot);
	}
	rig_stop();
}

Test(slots, run_in_the_root_where_the_folder_cannot_be_entered)
{
	rig_prepare();
	memcpy(rig_config.cwd, "/dev/null", 10);
	rig_start();
	rig_do("pwd", NULL, &x);
	cr_assert_str_eq(x.out, "/\n");
	cr_assert_str_eq(x.order, "sxE");
	rig_stop();
}

static unsigned count_entries(const char *path)
{
	unsigned count = 0;
	DIR *d = opendir(path);

	cr_assert(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

static unsigned count_children(void)
{
	char path[64];
	unsigned count = 0;
	FILE *f;
	int pid;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	cr_assert(f);
	while (fscanf(f, "%d", &pid) == 1)
		count++;
	fclose(f);
	return count;
}

Test(slots, grow_nothing_in_300_runs)
{
	unsigned fds, children;

	start();
	rig_do("true", NULL, NULL);
	rig_do("true", NULL, NULL);
	fds = count_entries("/proc/self/fd");
	children = count_children();
	for (int i = 0; i < 300; i++)
		cr_assert(WEXITSTATUS(rig_do("exit 3", NULL, NULL)) == 3);
	cr_assert_eq(count_entries("/proc/self/fd"), fds);
	cr_assert_eq(count_children(), children, "slots are used again");
	cr_assert_eq(rig_ready, 2, "no slot was replaced");
	rig_stop();
}

Test(slots, run_side_by_side)
{
	unsigned slots[8];

	rig_prepare();
	rig_config.max_concurrent = 8;
	rig_start();
	for (int i = 0; i < 8; i++)
		slots[i] = rig_run("read x; echo got $x", "1\n");
	cr_assert_eq(slots_take(), -EAGAIN);
	cr_assert_eq(slots_idle(), 0);
	cr_assert_eq(slots_capacity(), 8);
	for (int i = 0; i < 8; i++) {
		rig_until(slots[i], SLOT_EMPTY);
		rig_until_output(slots[i], "got 1");
		rig_release(slots[i]);
	}
	cr_assert_eq(slots_idle(), 8);
	rig_stop();
}
