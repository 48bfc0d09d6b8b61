/* The table behind slots.h: the slots' processes and the warden that clones them. For execd/slots*.c only. */
#ifndef EXECD_SLOTS_POOL_H
#define EXECD_SLOTS_POOL_H

#include "common/limits.h"
#include "common/loop.h"
#include "execd/slot/protocol.h"
#include "execd/slot/world.h"
#include "execd/slots.h"

#define POOL_SIZE (2u * LIMIT_CONCURRENT + LIMIT_MINDERS)

enum pool_place {
	POOL_FREE,
	POOL_STARTING, /* asked for */
	POOL_IDLE,
	POOL_TAKEN,   /* the owner's, from slots_take to slots_release or slots_mind */
	POOL_MINDER,  /* no longer the owner's */
	POOL_LEAVING, /* its socket is closed: it ends once nothing is left below it */
};

/* What a slot has said of the exec that it was given last. */
enum pool_said {
	POOL_SAID_NOTHING,
	POOL_SAID_STARTED,
	POOL_SAID_EXITED,
	POOL_SAID_EMPTY, /* or that the start failed; also before the first exec */
};

struct pool_slot {
	enum pool_place place;
	struct loop_source source; /* fd: our end of the socket, -1 when closed */
	pid_t pid;                 /* 0: not known yet, or reaped */
	int pidfd;
	pid_t warden; /* that cloned it: its witness, where it kills by landlock */
	bool ready;
	enum pool_said said;
	bool running;     /* an exec whose last event is still to come */
	bool killed;      /* slots_kill was passed on */
	bool loading;     /* the last order is a part of the command, and has no answer yet */
	bool unread;      /* it died without having read the last order */
	uint32_t missing; /* bytes of the command that it was not given yet */
	bool dead;        /* reaped under its exec; its orphans are being swept */
	bool abandoned;
	bool replaced;       /* abandoned, but what is left below it only dies: it is not counted */
	bool ranked;         /* above what it kills */
	unsigned unanswered; /* pings in a row */
	uint64_t minded_at;  /* order among the minders */
	uint64_t oom_kills;  /* the counter at the start of the exec */
};

struct pool {
	struct loop *loop;
	const struct config *config;
	void (*event)(void *owner, const struct slot_event *event);
	void *owner;
	struct slot_world world;
	bool closing;  /* slots_kill_all: nothing new */
	bool unclear;  /* kill: an exec has run since System V IPC was cleared */
	bool clearing; /* the warden is at it: nothing starts, for what would start must keep its own */
	uint64_t minders_made;
	pid_t spared; /* netd */
	struct pool_slot slots[POOL_SIZE];
};

extern struct pool pool;

static inline unsigned pool_number(const struct pool_slot *s)
{
	return (unsigned)(s - pool.slots);
}

/* slots_pool.c */
void pool_emit(struct pool_slot *s, struct slot_event event);
unsigned pool_count(enum pool_place place);
/* Slots that the warden was asked for and has not told the pid of: children of ours that pool_find may miss.
 */
unsigned pool_asked(void);
struct pool_slot *pool_find(pid_t pid);
/* Asks the warden for as many as are missing. */
void pool_fill(void);
/* Slots that an exec can have now or soon, or has. */
unsigned pool_usable(void);
/* An abandoned slot whose rest only dies. */
void pool_replace(struct pool_slot *s);
/* Closes our end: the slot ends by itself. The entry is free once it is reaped. */
void pool_leave(struct pool_slot *s);
/* The slot is beyond use (stopped, silent, broke the protocol): SIGKILL. All else follows when it is reaped.
 */
void pool_destroy(struct pool_slot *s, const char *why);
/* Sends. 0 or -errno: it was not sent. */
int pool_send(struct pool_slot *s, const struct slot_order *order);
/* Reads what the slot has said. */
void pool_drain(struct pool_slot *s);
void pool_free(struct pool_slot *s);
/* The pings, and the help for slots that cannot kill by themselves; each LIMIT_SLOT_PING_MS. */
void pool_start(void); /* before the warden */
/* No slot was there to run anything at any ping for LIMIT_NO_SLOT_MS. */
bool pool_is_barren(void);
/* An idle slot whose warden has gone can only sweep: replaced, where that is less than it could do. */
void pool_renew(struct pool_slot *s);
void pool_renew_all(void);
void pool_on_cloned(unsigned number, pid_t pid);

/* slots_clear.c */
/* When nothing runs any more: has the warden remove what was left in System V IPC. */
void clear_look(void);
/* It has (count), or cannot (it is gone). */
void clear_done(uint32_t count);
void clear_failed(void);
void clear_tick(void); /* each LIMIT_SLOT_PING_MS */

/* slots_warden.c */
int warden_clear(void);
int warden_start(void); /* at start: waits for its report */
bool warden_is_up(void);
pid_t warden_pid(void);
/* How long there has been none that can clone: 0 while there is one. */
uint64_t warden_down_ms(void);
void warden_tick(void); /* each LIMIT_SLOT_PING_MS */
int warden_clone(unsigned number, int other_end);
void warden_reaped(int wait_status);
void warden_stop(void);
void warden_kill(void); /* stopped: as good as dead */

/* slots_orphans.c */
void orphans_look(void); /* a slot died, or a child nobody knows was reaped: sweep until there is none */
bool orphans_left(void);
bool orphans_only_die(void); /* see help_only_dying */
bool orphans_wait(void);     /* a sweep is due, and waits until no slot is asked for */

/* slots_help.c */
/* The slot's own killer had a second: a pass of execd's over what is below it, which may have another uid and
 * may have hidden where it gets no processor. */
void help_kill(struct pool_slot *s);
/* Lets what the last walk found, and has SIGKILL, run before all else. */
void help_what_dies(void);
/* Lets a slot run before what it kills, and no longer. */
void help_rank(struct pool_slot *s, bool kills);
/* Whether all below it only dies, as far as it can be seen. */
bool help_only_dying(const struct pool_slot *s);

/* slots_oom.c */
void oom_open(void);
uint64_t oom_kills(void); /* 0 when the counter cannot be read */

#endif
