/* What execd does for a slot that kills: it may hold CAP_KILL and CAP_SYS_NICE, which the slot does not. */
#include "execd/slot/dying.h"
#include "execd/slot/kill_sweep.h"
#include "execd/slots_pool.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HELP_MAX  256u  /* processes in one pass of a sweep that execd makes itself */
#define NICE_KILL (-10) /* of a slot that kills: above all that it has to kill */
#define NICE_DIE  (-20) /* of what dies: only the kernel runs in it */

/* A thread's number is given away when it ends. Whoever took it in that very moment is then as any process
 * is. */
static void lift_thread(pid_t tid, void *owner)
{
	static const struct sched_param none = {0};
	const struct descendant *d = owner;

	if (!descendants_has_thread(d, tid))
		return;
	if (sched_getscheduler(tid) != SCHED_OTHER)
		sched_setscheduler(tid, SCHED_OTHER, &none);
	if (setpriority(PRIO_PROCESS, (id_t)tid, NICE_DIE) == 0 && !descendants_has_thread(d, tid))
		setpriority(PRIO_PROCESS, (id_t)tid, 0);
}

/* Only what has SIGKILL for certain: it runs nothing of its own any more. */
static void lift(const struct descendant *d, void *owner)
{
	int err = d->own_child ? kill(d->pid, SIGKILL)
			       : (int)syscall(SYS_pidfd_send_signal, d->pidfd, SIGKILL, NULL, 0);

	(void)owner;
	if (err == 0)
		descendants_threads(d, lift_thread, (void *)(uintptr_t)d);
}

void help_what_dies(void)
{
	descendants_back(lift, NULL);
}

void help_kill(struct pool_slot *s)
{
	struct sweep sweep;

	if (s->pid == 0)
		return;
	sweep_begin(&sweep, s->pid, NULL);
	sweep_pass(&sweep, HELP_MAX);
	help_what_dies();
}

/* The slot is our child, not reaped: the number is its own. Without CAP_SYS_NICE nothing changes. */
void help_rank(struct pool_slot *s, bool kills)
{
	if (s->pid == 0 || kills == s->ranked)
		return;
	if (setpriority(PRIO_PROCESS, (id_t)s->pid, kills ? NICE_KILL : getpriority(PRIO_PROCESS, 0)) == 0)
		s->ranked = kills;
}

bool help_only_dying(const struct pool_slot *s)
{
	if (s->dead)
		return orphans_only_die();
	return s->pid != 0 && dying_count_others(s->pid, NULL, DESCENDANTS_MAX) == 0;
}
