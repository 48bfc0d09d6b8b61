/* A slot that neither dies nor stops, but says nothing any more. suite-timeout: 120 */
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include "common/clock.h"
#include "common/limits.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(slots_silent, .init = space_need_own, .timeout = 90);

static bool write_number(const char *folder, const char *file, const char *text)
{
	char path[128];
	bool good;
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return good;
}

static bool kill_is_pending(pid_t pid)
{
	char path[64], line[128];
	unsigned long long set = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "re");
	cr_assert(f);
	while (fgets(line, sizeof line, f)) {
		unsigned long long pending;

		if (sscanf(line, "SigPnd: %llx", &pending) == 1 ||
		    sscanf(line, "ShdPnd: %llx", &pending) == 1)
			set |= pending;
	}
	fclose(f);
	return set >> (SIGKILL - 1) & 1;
}

/* In the freezer of cgroups, version 1, not even SIGKILL is taken before the thaw. */
Test(slots_silent, a_silent_slot_is_killed_and_its_exec_swept)
{
	char folder[64], number[16];
	uint64_t frozen;
	unsigned slot;
	pid_t pid;

	snprintf(folder, sizeof folder, "/sys/fs/cgroup/freezer/worker-test-%d", getpid());
	if (mkdir(folder, 0755) < 0)
		cr_skip_test("no freezer of our own: %s", strerror(errno));
	rig_prepare();
	rig_start();
	slot = rig_run("setsid sleep 1000 & echo $PPID; sleep 1000", NULL);
	rig_until_output(slot, "\n");
	pid = atoi(rig_execs[slot].out);
	snprintf(number, sizeof number, "%d", pid);
	cr_assert(write_number(folder, "cgroup.procs", number));
	cr_assert(write_number(folder, "freezer.state", "FROZEN"));
	frozen = clock_now_ms();
	while (!kill_is_pending(pid)) {
		cr_assert(clock_now_ms() < frozen + 3 * LIMIT_SLOT_SILENT_MS, "it is not killed");
		rig_pass();
	}
	cr_assert_geq(clock_now_ms() - frozen, LIMIT_SLOT_SILENT_MS - LIMIT_SLOT_PING_MS);
	cr_assert(!rig_has(slot, SLOT_DIED), "it is not dead before it is reaped");
	cr_assert(write_number(folder, "freezer.state", "THAWED"));
	rig_until(slot, SLOT_EMPTY);
	cr_assert_str_eq(rig_execs[slot].order, "sdE");
	rig_release(slot);
	rig_stop();
	cr_assert_eq(rmdir(folder), 0);
}
