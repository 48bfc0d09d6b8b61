#include "execd/signals.h"

#include "common/dispositions.h"

#include <errno.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

static struct {
	struct loop_source source;
	const struct signals_events *events;
	void *owner;
} state;

void signals_reset(void)
{
	dispositions_ignore_all_but(DISPOSITIONS_FAULTS | DISPOSITIONS_BIT(SIGTERM) |
				    DISPOSITIONS_BIT(SIGINT) | DISPOSITIONS_BIT(SIGQUIT));
}

static void on_signal(uint32_t number)
{
	switch (number) {
	case SIGCHLD:
		state.events->child(state.owner);
		break;
	case SIGHUP:
		state.events->hang_up(state.owner);
		break;
	case SIGQUIT:
		state.events->quit(state.owner);
		break;
	default:
		state.events->terminate(state.owner);
	}
}

static void on_ready(struct loop_source *source, uint32_t events)
{
	struct signalfd_siginfo info[16];
	ssize_t n = read(source->fd, info, sizeof info);

	(void)events;
	for (ssize_t i = 0; i < n / (ssize_t)sizeof *info; i++)
		on_signal(info[i].ssi_signo);
}

int signals_start(struct loop *loop, const struct signals_events *events, void *owner)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGHUP);
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
