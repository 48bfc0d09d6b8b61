#include "execd/signals.h"

#include <errno.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

static struct {
	struct loop_source source;
	const struct signals_events *events;
	void *owner;
} state;

void signals_reset_in_child(void)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int s = 1; s <= SIGRTMAX; s++)
		sigaction(s, &usual, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void signals_reset(void)
{
	struct sigaction hup, ignore = {.sa_handler = SIG_IGN};
	bool keep = sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler == SIG_IGN;

	signals_reset_in_child();
	if (keep)
		sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
}

static void on_ready(struct loop_source *source, uint32_t events)
{
	struct signalfd_siginfo info[16];
	ssize_t n = read(source->fd, info, sizeof info);

	(void)events;
	for (ssize_t i = 0; i < n / (ssize_t)sizeof *info; i++) {
		if (info[i].ssi_signo == SIGCHLD)
			state.events->child(state.owner);
		else
			state.events->terminate(state.owner);
	}
}

int signals_start(struct loop *loop, const struct signals_events *events, void *owner)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	state.events = events;
	state.owner = owner;
	state.source =
	    (struct loop_source){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = on_ready};
	if (state.source.fd < 0)
		return -errno;
	return loop_add(loop, &state.source, EPOLLIN);
}
