/* The life of an exec as a table: what to do, and where it stands then, for each state and each event. Pure
 * data; the actions are exec_life.c's. Every cell is explicit: an event that must not come is called STRAY,
 * never left out. */
#ifndef EXECD_EXEC_STATE_H
#define EXECD_EXEC_STATE_H

enum exec_state {
	EXEC_FREE,        /* no exec: an unused entry */
	EXEC_WAITING,     /* in the queue */
	EXEC_FETCHING,    /* it has a slot; the first piece of its command is on the way from netd */
	EXEC_LOADING,     /* the slot has it; more pieces, or the word that bash was executed, are to come */
	EXEC_RUNNING,     /* bash was executed */
	EXEC_EXITED,      /* the leader exited; the slot looks for what it left */
	EXEC_LINGERING,   /* kill: the leader exited; what it left may hand over its output first */
	EXEC_KILLING,     /* everything is being killed; the terminal frame waits for the proof */
	EXEC_ENDED,       /* answered; netd hands over what is left. No slot any more */
	EXEC_ENDED_KEEP,  /* answered; what the leader left behind lives on in the slot */
	EXEC_ENDED_DYING, /* answered; what was left behind is being killed */
	EXEC_ENDED_STUCK, /* answered; a kill without proof, the slot is abandoned */
	EXEC_DYING,       /* no answer is owed; being killed */
	EXEC_STUCK,       /* no answer is owed; the slot is abandoned until the proof comes late */
	EXEC_STATES,
};

enum exec_event {
	/* execd's own */
	EXEC_ON_TURN,       /* a place is free; the command must be fetched */
	EXEC_ON_TURN_WHOLE, /* a place is free; the whole command is at hand */
	EXEC_ON_REFUSE,     /* it waits and must not start */
	EXEC_ON_KNOWN,      /* it waits, and what it waited for is remembered as its outcome */
	EXEC_ON_KILL,       /* shutdown, or the end of a GOAWAY's grace */
	EXEC_ON_TIMER, /* its time is up: timeout_s while running, else the time for the proof of a kill */
	EXEC_ON_RUN_FAILED, /* the slot did not get it */
	EXEC_ON_BROKEN,     /* the slot has it, but it cannot be used */
	/* netd's */
	EXEC_ON_PIECE,
	EXEC_ON_ABORT,
	EXEC_ON_DRAINED,
	EXEC_ON_QUIET,
	EXEC_ON_LOST, /* the stream, whatever the cause */
	/* the slot's (enum slot_event_kind) */
	EXEC_ON_TOOK,
	EXEC_ON_STARTED,
	EXEC_ON_START_FAILED,
	EXEC_ON_LEADER_EXITED,
	EXEC_ON_EMPTY,
	EXEC_ON_STILL_ALIVE,
	EXEC_ON_MINDING, /* keep */
	EXEC_ON_LEFT,    /* kill: SLOT_MINDING, too */
	EXEC_ON_DIED,
	EXEC_ON_UNREAD, /* the slot is gone, and nothing of the command ran; may be tried again */
	EXEC_EVENTS,
};

enum exec_action {
	EXEC_DO_NOTHING = 1,   /* may come and needs nothing */
	EXEC_DO_STRAY,         /* must not come: logged, ignored */
	EXEC_DO_VIOLATION,     /* netd answers what it was not asked */
	EXEC_DO_FETCH,         /* ask netd for the next piece */
	EXEC_DO_RUN,           /* make the pipes, give the slot what is at hand */
	EXEC_DO_AGAIN,         /* give its place back; it is the first to have another */
	EXEC_DO_FEED,          /* give the slot the piece */
	EXEC_DO_ANNOUNCE,      /* STARTED to netd, with the pipes; timeout_s counts from here */
	EXEC_DO_ANNOUNCE_LATE, /* the same, under a kill that crossed it: its output is still owed */
	EXEC_DO_ANSWER,        /* it never ran: decide, ENDED */
	EXEC_DO_GIVE_BACK,     /* the same, and the slot is released */
	EXEC_DO_REPLAY,        /* what is remembered is its answer; ENDED */
	EXEC_DO_DECIDE,        /* the leader's status, or the reason of the kill, becomes the outcome */
	EXEC_DO_EXITED,      /* the same by its own exit, and the slot gets its time to prove what is left */
	EXEC_DO_KILL,        /* fix the reason, kill through the slot, start the clock of the proof */
	EXEC_DO_SLOT_LOST,   /* the slot died: fix the reason; the pool sweeps, start the clock */
	EXEC_DO_SLOT_GONE,   /* the slot died under a kill: what it may have run is announced late */
	EXEC_DO_PROVEN,      /* nothing lives: release the slot, ENDED */
	EXEC_DO_LEAVE,       /* keep: ENDED while what was left behind lives on */
	EXEC_DO_LINGER,      /* kill: LEFT to netd, whose QUIET is waited for; timeout_s goes on */
	EXEC_DO_KILL_REST,   /* what was left behind has had its time: kill it */
	EXEC_DO_UNPROVEN,    /* no proof in time: abandon the slot, ENDED all the same */
	EXEC_DO_ABANDON,     /* no proof in time, and no answer waits for it: abandon the slot */
	EXEC_DO_RELEASE,     /* nothing lives: release the slot */
	EXEC_DO_COUNT,       /* remember how many still live */
	EXEC_DO_FINISH,      /* handed over: report, forget */
	EXEC_DO_FINISH_MIND, /* the same, and the slot becomes the minder of what was left behind */
	EXEC_DO_DROP,        /* forget an exec that never ran */
	EXEC_DO_CUT,         /* the stream is gone: what is decided was not all handed over */
	EXEC_DO_CUT_KILL,    /* the same, and kill */
	EXEC_ACTIONS,
};

struct exec_step {
	enum exec_action action;
	enum exec_state next;
};

/* The cell; state is not EXEC_FREE. */
struct exec_step exec_state_step(enum exec_state state, enum exec_event event);

/* For log and tests. */
const char *exec_state_name(enum exec_state state);
const char *exec_event_name(enum exec_event event);

#endif
