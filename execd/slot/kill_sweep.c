#include "execd/slot/kill_sweep.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIND_FROM 1u /* stubborn passes before */
#define IDLE_FROM 8u

struct pass {
	bool idle;
	bool bind;
	bool kill;
	cpu_set_t cpu;
};

static void lower_thread(pid_t tid, void *owner)
{
	struct pass *pass = owner;
	struct sched_param param = {0};

	if (pass->bind)
		sched_setaffinity(tid, sizeof pass->cpu, &pass->cpu);
	if (pass->idle)
		sched_setscheduler(tid, SCHED_IDLE, &param);
}

static void visit(const struct descendant *d, void *owner)
{
	static const struct rlimit none = {0, 0};
	struct pass *pass = owner;

	prlimit(d->pid, RLIMIT_NPROC, &none, NULL);
	if (pass->bind || pass->idle)
		descendants_threads(d->pid, lower_thread, pass);
	if (!pass->kill)
		return;
	if (d->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, d->pidfd, SIGKILL, NULL, 0);
	else if (d->own_child)
		kill(d->pid, SIGKILL);
}

void sweep_begin(struct sweep *sweep, pid_t root, bool (*spare)(pid_t child))
{
	*sweep = (struct sweep){.root = root, .spare = spare, .cpu = -1};
}

static void bind_self(struct sweep *sweep, struct pass *pass, cpu_set_t *ret_before)
{
	if (sched_getaffinity(0, sizeof *ret_before, ret_before) < 0)
		return;
	if (sweep->cpu < 0)
		sweep->cpu = sched_getcpu();
	if (sweep->cpu < 0 || sweep->cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&pass->cpu);
	CPU_SET((size_t)sweep->cpu, &pass->cpu);
	pass->bind = sched_setaffinity(0, sizeof pass->cpu, &pass->cpu) == 0;
}

int sweep_pass(struct sweep *sweep, unsigned max)
{
	struct pass pass = {.idle = sweep->stubborn_passes >= IDLE_FROM};
	cpu_set_t before;
	int found;

	if (sweep->stubborn_passes >= BIND_FROM)
		bind_self(sweep, &pass, &before);
	/* Those that fork when their parent dies must not be able to before the first one dies. */
	found = descendants_walk(sweep->root, sweep->spare, max, visit, &pass);
	pass.kill = true;
	if (found > 0)
		found = descendants_walk(sweep->root, sweep->spare, max, visit, &pass);
	if (pass.bind)
		sched_setaffinity(0, sizeof before, &before);
	sweep->stubborn = sweep->passes > 0 && found >= sweep->found;
	sweep->stubborn_passes += sweep->stubborn;
	sweep->passes++;
	sweep->found = found;
	return found;
}
