#include "execd/slot/warden.h"

#include "common/dispositions.h"
#include "common/drop.h"
#include "common/fd.h"
#include "common/landlock.h"
#include "common/limits.h"
#include "common/outcome.h"
#include "execd/config.h"
#include "execd/slot/keyed.h"
#include "execd/slot/proc.h"
#include "execd/slot/protocol.h"
#include "execd/slot/slot.h"
#include "execd/slot/sysv.h"
#include "execd/slot/world.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COMMAND_NOFILE    1024u /* soft; programs that select(2) or close all rely on it being small */
#define COMMAND_OOM_SCORE "500"

#define FAILED(step) OUTCOME_START_VALUE(step, errno)

static int compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int world_close_all_but(const int *keep, size_t count)
{
	int sorted[8];
	unsigned from = 3;

	if (count > sizeof sorted / sizeof *sorted)
		return -EINVAL;
	memcpy(sorted, keep, count * sizeof *keep);
	qsort(sorted, count, sizeof *sorted, compare_fds);
	for (size_t i = 0; i < count; i++) {
		if (sorted[i] < (int)from)
			continue;
		fd_close_between(from, (unsigned)sorted[i] - 1);
		from = (unsigned)sorted[i] + 1;
	}
	fd_close_between(from, ~0u);
	return 0;
}

static uint32_t set_files(int fd)
{
	const int keep[] = {fd, proc_fd()};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return FAILED(START_FILES);
	for (int i = 0; i < 3; i++) {
		if (dup2(null, i) < 0)
			return FAILED(START_FILES);
	}
	return world_close_all_but(keep, 2) < 0 ? FAILED(START_FILES) : 0;
}

static uint32_t set_limits(void)
{
	struct rlimit core, files;

	if (getrlimit(RLIMIT_CORE, &core) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
		return FAILED(START_LIMITS);
	/* A command that wants a core has only its own memory to put into it. */
	core.rlim_cur = 0;
	if (setrlimit(RLIMIT_CORE, &core) < 0)
		return FAILED(START_LIMITS);
	/* A command's descriptors in flight count against its user, which may be ours: half leaves us the
	 * rest. */
	files.rlim_max /= 2;
	files.rlim_cur = files.rlim_max < COMMAND_NOFILE ? files.rlim_max : COMMAND_NOFILE;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? FAILED(START_LIMITS) : 0;
}

static uint32_t drop(const struct config *config)
{
	struct drop d = config_drop(&config->command_user, config->keep_caps);
	const char *step;
	int err;

	d.bounding = config->keep_caps;
	err = drop_privileges(&d, &step);
	return err < 0 ? OUTCOME_START_VALUE(START_PRIVILEGES, -err) : 0;
}

/* keep: one domain for all that is started from here, so that a later command finds, signals and traces what
 * an earlier one left; slots and warden are kept from that by not being dumpable. kill: a scoped domain for
 * each slot, another below it for each command. */
static uint32_t enter_world(struct slot_world *world)
{
	const struct landlock_world scoped = {.scoped = LANDLOCK_SCOPED_ABSTRACT | LANDLOCK_SCOPED_SIGNAL};
	int abi = world->plan.landlock_abi, ruleset, err;

	world->ruleset = -1;
	if (abi < LANDLOCK_ABI_REFER)
		return 0;
	ruleset = landlock_create(abi, &scoped, true);
	if (ruleset < 0)
		return OUTCOME_START_VALUE(START_LANDLOCK, -ruleset);
	if (world->config->background_kill) {
		world->ruleset = ruleset;
		return 0;
	}
	err = landlock_enter(ruleset, abi, true);
	close(ruleset);
	return err < 0 ? OUTCOME_START_VALUE(START_LANDLOCK, -err) : 0;
}

/* Once for all: a long filter costs 200 us to load. */
static uint32_t load_policy(const struct slot_world *world)
{
	int err = world->inherited ? keyed_load(world->inherited) : 0;

	return err < 0 ? OUTCOME_START_VALUE(START_SECCOMP, -err) : 0;
}

static bool write_oom_score(void)
{
	FD_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, COMMAND_OOM_SCORE, strlen(COMMAND_OOM_SCORE)) > 0;
}

/* The file is root's while we are not dumpable. By now the domain keeps the commands' ptrace away. Advisory:
 * a higher value that we were started with may not be lowered, and is as good. */
static uint32_t set_oom_score_dumpable(void)
{
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return FAILED(START_LIMITS);
	write_oom_score();
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return FAILED(START_PRIVILEGES);
	return 0;
}

static uint32_t prepare(int fd, struct slot_world *world)
{
	/* Before the drop: written with CAP_SYS_RESOURCE it is the least that a command can have. */
	bool scored = write_oom_score();
	uint32_t failed;

	world->warden = getpid();
	/* A command of the same uid cannot end us by anything but SIGKILL and SIGSTOP, and bash inherits what
	 * is usual. */
	dispositions_block();
	failed = set_files(fd);
	if (!failed)
		failed = set_limits();
	if (!failed)
		failed = drop(world->config);
	if (!failed)
		failed = enter_world(world);
	if (!failed && !scored)
		failed = set_oom_score_dumpable();
	return failed ? failed : load_policy(world);
}

static void clone_slot(int fd, struct slot_order *order, const struct slot_world *world)
{
	struct slot_report report = {.type = SLOT_REPORT_CLONED, .value = order->value};
	/* As fork(2), but the parent is execd. Not clone3: containers answer it with ENOSYS. */
	long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		slot_main(order->fds[0], world);
	report.pid = pid < 0 ? -errno : (int32_t)pid;
	close(order->fds[0]);
	slot_report_send(fd, &report, true);
}

static void clear(int fd, const struct slot_world *world)
{
	struct slot_report report = {.type = SLOT_REPORT_CLEARED};

	report.value = sysv_clear(world->since, getppid());
	slot_report_send(fd, &report, true);
}

_Noreturn void warden_main(int fd, struct slot_world *world)
{
	static uint8_t buf[SLOT_ORDER_MAX];
	uint32_t failed = prepare(fd, world);
	struct slot_order order;
	int n;

	prctl(PR_SET_NAME, "warden", 0, 0, 0);
	slot_report_send(fd, &(struct slot_report){.type = SLOT_REPORT_WARDEN, .value = failed}, true);
	if (failed)
		_exit(1);
	while ((n = slot_order_receive(fd, buf, false, &order)) > 0 || n == -EAGAIN) {
		if (n > 0 && order.type == SLOT_ORDER_CLONE)
			clone_slot(fd, &order, world);
		else if (n > 0 && order.type == SLOT_ORDER_CLEAR)
			clear(fd, world);
	}
	_exit(0);
}
