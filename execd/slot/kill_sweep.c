#include "execd/slot/kill_sweep.h"

#include "execd/slot/keyed.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIND_FROM   1u /* passes before that found no fewer */
#define WAIT_MAX_MS 50u

struct pass {
	bool bind;
	cpu_set_t cpu;
};

struct visited {
	const struct pass *pass;
	const struct descendant *d;
};

/* A thread's number is given away when it ends, so this is taken back where it may have met another. */
static void bind_thread(pid_t tid, void *owner)
{
	struct visited *v = owner;
	cpu_set_t before;

	if (sched_getaffinity(tid, sizeof before, &before) < 0 || CPU_EQUAL(&before, &v->pass->cpu))
		return;
	sched_setaffinity(tid, sizeof v->pass->cpu, &v->pass->cpu);
	if (!descendants_has_thread(v->d, tid))
		sched_setaffinity(tid, sizeof before, &before);
}

static void send(const struct descendant *d, int sig)
{
	if (d->own_child)
		kill(d->pid, sig);
	else if (d->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, d->pidfd, sig, NULL, 0);
}

static void hold(const struct descendant *d, void *owner)
{
	static const struct rlimit none = {0, 0};
	struct pass *pass = owner;
	struct visited v = {pass, d};

	if (d->own_child)
		keyed_limit(d->pid, RLIMIT_NPROC, &none);
	send(d, SIGSTOP);
	if (pass->bind)
		descendants_threads(d, bind_thread, &v);
}

static void finish(const struct descendant *d, void *owner)
{
	(void)owner;
	send(d, SIGKILL);
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

/* No rest while it grows. What is killed needs a moment to die, and the CPU, before another look is worth it.
 */
static unsigned next_wait(const struct sweep *sweep, int found)
{
	if (found >= 0 && (sweep->passes == 0 || found > sweep->found))
		return 0;
	if (found >= 0 && found == sweep->found)
		return sweep->again_ms < WAIT_MAX_MS / 10 ? sweep->again_ms + 1 : WAIT_MAX_MS / 10;
	return sweep->again_ms * 2 < WAIT_MAX_MS ? sweep->again_ms * 2 + 1 : WAIT_MAX_MS;
}

int sweep_pass(struct sweep *sweep, unsigned max)
{
	struct pass pass = {.bind = false};
	cpu_set_t before;
	int found;

	if (sweep->stayed >= BIND_FROM)
		bind_self(sweep, &pass, &before);
	found = descendants_walk(sweep->root, sweep->spare, max, hold, &pass);
	descendants_back(finish, NULL);
	if (pass.bind)
		sched_setaffinity(0, sizeof before, &before);
	sweep->again_ms = next_wait(sweep, found);
	if (sweep->passes > 0)
		sweep->stayed += found >= sweep->found;
	sweep->passes++;
	sweep->found = found;
	return found;
}
