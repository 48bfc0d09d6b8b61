/* A slot that dies with its command: what execd is told of it is true. UNREAD means that nothing ran,
 * whenever and by whomever the slot was ended; a command that ran is never called unread. */
#include "tests/lib/process.h"
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include "common/clock.h"
#include "execd/slots_pool.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(slots_unread, .timeout = 120, .init = space_need_own);

#define ROUNDS 300

static char path[64];

static void start(void)
{
	strcpy(path, "/tmp/unread.XXXXXX");
	close(mkstemp(path));
	cr_assert_eq(chmod(path, 0666), 0);
	rig_prepare();
	rig_start();
}

static void stop(void)
{
	rig_stop();
	unlink(path);
}

static off_t marks(void)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	return st.st_size;
}

static pid_t idle_slot(void)
{
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; slots_idle() < 2; rig_pass())
		cr_assert(clock_now_ms() < end, "no idle slots");
	for (unsigned i = 0; i < POOL_SIZE; i++) {
		if (pool.slots[i].place == POOL_IDLE)
			return pool.slots[i].pid; /* slots_take takes the same */
	}
	return 0;
}

static void until_over(unsigned slot)
{
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS;
	     !rig_has(slot, SLOT_UNREAD) && !rig_has(slot, SLOT_EMPTY); rig_pass())
		cr_assert(clock_now_ms() < end, "so far %s", rig_execs[slot].order);
}

static void until_reaped(pid_t pid)
{
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; pool_find(pid); rig_pass())
		cr_assert(clock_now_ms() < end, "it does not end");
}

static void run_marking(unsigned *ret_slot, pid_t *ret_pid, char *command, size_t size)
{
	*ret_pid = idle_slot();
	snprintf(command, size, "echo x >>%s", path);
	*ret_slot = rig_run(command, NULL);
	cr_assert_eq(pool.slots[*ret_slot].pid, *ret_pid);
}

Test(slots_unread, is_told_of_a_slot_that_was_stopped_before)
{
	char command[128];
	unsigned slot;
	pid_t pid;

	start();
	process_kill(idle_slot(), SIGSTOP);
	run_marking(&slot, &pid, command, sizeof command);
	until_over(slot);
	cr_assert_str_eq(rig_execs[slot].order, "U");
	rig_release(slot);
	cr_assert_eq(marks(), 0);
	stop();
}

Test(slots_unread, a_slot_that_is_gone_takes_nothing)
{
	struct slot_run run = {.command_len = 4, .given = (const uint8_t *)"true", .given_len = 4};
	int ours[3], theirs[3], slot;
	pid_t pid;

	start();
	pid = idle_slot();
	process_kill(pid, SIGKILL);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; process_lives(pid); usleep(100))
		cr_assert(clock_now_ms() < end);
	slot = slots_take();
	cr_assert_geq(slot, 0);
	cr_assert_eq(slots_pipes(ours, theirs), 0);
	cr_assert_eq(slots_run((unsigned)slot, &run, ours, theirs), -EPIPE);
	slots_release((unsigned)slot);
	cr_assert_neq(slots_take(), slot, "it is dead, and nobody has reaped it");
	for (int i = 0; i < 3; i++) {
		close(ours[i]);
		close(theirs[i]);
	}
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; slots_capacity() < 2; rig_pass())
		cr_assert(clock_now_ms() < end);
	for (unsigned i = 0; i < POOL_SIZE; i++)
		slots_release(i);
	stop();
}

Test(slots_unread, a_slot_that_is_gone_takes_no_second_piece)
{
	struct slot_run run = {.command_len = 4, .given = (const uint8_t *)"tr", .given_len = 2};
	int ours[3], theirs[3], slot;
	pid_t pid;

	start();
	pid = idle_slot();
	slot = slots_take();
	cr_assert_geq(slot, 0);
	cr_assert_eq(slots_pipes(ours, theirs), 0);
	cr_assert_eq(slots_run((unsigned)slot, &run, ours, theirs), 0);
	process_kill(pid, SIGKILL);
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; process_lives(pid); usleep(100))
		cr_assert(clock_now_ms() < end);
	cr_assert_eq(slots_command((unsigned)slot, (const uint8_t *)"ue", 2), -EPIPE);
	slots_release((unsigned)slot);
	cr_assert_neq(slots_take(), slot, "it is dead, and nobody has reaped it");
	for (int i = 0; i < 3; i++) {
		close(ours[i]);
		close(theirs[i]);
	}
	for (uint64_t end = clock_now_ms() + RIG_WAIT_MS; slots_capacity() < 2; rig_pass())
		cr_assert(clock_now_ms() < end);
	cr_assert_str_eq(rig_execs[slot].order, "");
	for (unsigned i = 0; i < POOL_SIZE; i++)
		slots_release(i);
	stop();
}

/* From before it reads to after bash has run. */
Test(slots_unread, is_never_told_of_a_command_that_ran)
{
	unsigned unread = 0, died = 0, ended = 0;
	char command[128];

	start();
	for (unsigned i = 0; i < ROUNDS; i++) {
		off_t before = marks();
		unsigned slot;
		pid_t pid;

		run_marking(&slot, &pid, command, sizeof command);
		for (uint64_t at = clock_now_us() + i * 7 % 1000; clock_now_us() < at;)
			continue;
		process_kill(pid, SIGKILL);
		until_over(slot);
		until_reaped(pid); /* it may have ended the exec before, and is no slot for the next round */
		unread += rig_has(slot, SLOT_UNREAD);
		died += rig_has(slot, SLOT_DIED);
		ended += rig_has(slot, SLOT_LEADER_EXITED);
		if (rig_has(slot, SLOT_UNREAD)) {
			cr_assert_str_eq(rig_execs[slot].order, "U");
			cr_assert_eq(marks(), before, "it ran, %s", rig_execs[slot].order);
		}
		rig_release(slot);
	}
	cr_log_info("%u unread, %u died, %u ended", unread, died, ended);
	cr_assert_gt(unread, 0);
	cr_assert_gt(died, 0);
	stop();
}

/* bash, as soon as it runs. */
Test(slots_unread, is_never_told_when_the_command_ends_its_slot)
{
	char command[128];

	start();
	snprintf(command, sizeof command, "kill -KILL $PPID; echo x >>%s", path);
	for (unsigned i = 0; i < 100; i++) {
		unsigned slot;

		idle_slot();
		slot = rig_run(command, NULL);
		until_over(slot);
		cr_assert(rig_has(slot, SLOT_DIED), "%s", rig_execs[slot].order);
		rig_release(slot);
	}
	stop();
}
