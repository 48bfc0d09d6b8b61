#include "execd/children.h"

#include "common/clock.h"
#include "execd/netd_proc.h"
#include "execd/slots.h"

#include <sys/wait.h>

static void reap_more(struct loop_timer *timer, uint64_t now_ms)
{
	(void)now_ms;
	children_reap(timer->owner);
}

/* Every child but netd is the slots'. A stopped one is of interest to both: nothing of ours stops. */
void children_reap(struct loop *loop)
{
	static struct loop_timer more = {.fire = reap_more};
	int status;
	pid_t pid;

	for (unsigned i = 0; i < CHILDREN_MAX; i++) {
		pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
		if (pid <= 0)
			return;
		if (!netd_proc_reap(pid, status))
			slots_reap(pid, status);
	}
	more.owner = loop;
	loop_timer_set(loop, &more, clock_now_ms() + 1);
}
