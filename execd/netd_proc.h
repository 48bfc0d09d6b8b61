/* The life of netd: one process for one connection attempt, the backoff between two of them. Whatever ends a
 * netd (a cut, a crash, a violation, our SIGKILL) ends the channel, and the end of the channel is the loss of
 * the stream. */
#ifndef EXECD_NETD_PROC_H
#define EXECD_NETD_PROC_H

#include "common/channel.h"
#include "common/loop.h"
#include "execd/config.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct netd_image;

enum netd_proc_state {
	NETD_PROC_WAITING,  /* for the next attempt, or for nothing any more */
	NETD_PROC_STARTING, /* until it is jailed */
	NETD_PROC_DIALLING, /* until Hello has left */
	NETD_PROC_ATTACHED,
	NETD_PROC_LEAVING, /* the stream is lost or left; the process has yet to end */
};

/* For the status file. */
struct netd_proc_view {
	enum netd_proc_state state;
	uint64_t attempts;
	uint64_t attached_since_ms; /* CLOCK_MONOTONIC; 0: not attached */
	uint64_t violations;
	struct channel_alive alive; /* of the latest netd */
	const char *last_close;     /* channel_close_name, "eof", "violation"; "none" before the first */
};

/* changed is called, from the loop, after each change of state. seed: of the backoff. Finds netd and makes
 * the copy of it. 0 or -errno. */
int netd_proc_init(struct loop *loop, const struct config *config, struct config_secrets *secrets,
		   uint64_t seed, void (*changed)(void *owner), void *owner);

/* Where netd is run from. */
const struct netd_image *netd_proc_image(void);

/* The first attempt, now. */
void netd_proc_dial(void);

/* For whoever waits for children. True when pid was netd. */
bool netd_proc_reap(pid_t pid, int wait_status);

/* No attempt after this one. */
void netd_proc_stop_dialling(void);

/* Leave: in good order where a stream stands, else by SIGKILL. */
void netd_proc_leave(void);

void netd_proc_kill(void);

/* No process, and no stream. */
bool netd_proc_gone(void);

const struct netd_proc_view *netd_proc_view(void);
const char *netd_proc_state_name(enum netd_proc_state state);

#endif
