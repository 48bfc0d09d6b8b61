/* execd's side of the slots: N processes that each run one exec at a time and prove its death (execd/slot/).
 * execd decides, a slot does. Nothing here blocks; nothing is allocated after slots_start.
 *
 * A slot is, for its owner, in one of: idle → (slots_take) taken → (slots_run) running → leader gone →
 * empty (slots_release: idle again) or minding (slots_mind: the pool forgets it and starts another in its
 * place). Events come through the callback given to slots_start, never from inside a call into this module.
 */
#ifndef EXECD_SLOTS_H
#define EXECD_SLOTS_H

#include "common/loop.h"
#include "common/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct seccomp_program;

/* How this machine lets us protect and kill, decided before anything starts; for the log, the status and
 * --check. */
struct slots_plan {
	int landlock_abi;     /* 0: none, and commands get no ptrace */
	bool landlock_kill;   /* kill(-1) from within a scoped domain; else the sweep of descendants */
	bool weak;            /* sweep, and commands run as uid 0, which RLIMIT_NPROC does not bind */
	bool commands_scoped; /* commands cannot signal execd, netd or anything else outside their world */
	const char *killer;   /* "landlock", "sweep" */
};

void slots_plan(const struct config *config, struct slots_plan *ret);

/* A count of processes that could not be made: not none. */
#define SLOT_COUNT_UNKNOWN UINT32_MAX

enum slot_event_kind {
	SLOT_TOOK,          /* the piece of the command given last is taken; more is wanted (slots_command) */
	SLOT_STARTED,       /* bash was executed */
	SLOT_START_FAILED,  /* value: OUTCOME_START_VALUE; the slot is idle again after slots_release */
	SLOT_LEADER_EXITED, /* wait_status, by_kill */
	SLOT_EMPTY,         /* proven by ECHILD: nothing below the slot lives */
	SLOT_STILL_ALIVE,   /* after a kill, no proof yet: count; repeated each second */
	SLOT_MINDING,       /* the leader is gone, count processes live on */
	SLOT_DIED,   /* the slot process died, was stopped or fell silent, its exec with it. What it left is
			swept; a SLOT_EMPTY (or SLOT_STILL_ALIVE) for the same number follows */
	SLOT_UNREAD, /* the slot process died and has, for certain, not read the whole command: nothing of it
			ran. The last event; slots_release */
	SLOT_READY, /* there is an idle slot more, but for those that slots_release made idle: a new one, or a
		       replacement. Of no exec; slots_idle() has risen already */
};

struct slot_event {
	enum slot_event_kind kind;
	unsigned slot;
	uint32_t value;
	int wait_status; /* waitpid(2) */
	bool by_kill; /* the leader was alive when slots_kill reached it: the outcome is ours, not its own */
	bool oom; /* the kernel's out-of-memory killer is known to have ended the leader, or what it ran last
		   */
	uint32_t count;
};

/* What to run. command may be given whole (given == command_len) or in part; the rest follows by
 * slots_command, one piece after each SLOT_TOOK. */
struct slot_run {
	uint64_t req_id;
	uint32_t command_len;
	const uint8_t *given;
	uint32_t given_len;
};

/* Replaces the built-in policy of the commands (SANDBOX_SECCOMP_BPF); before slots_start. The program lives
 * as long as the process. Slots may not be able to live under it, so each command loads it. */
void slots_use_seccomp(const struct seccomp_program *program);

/* Starts the warden and config->max_concurrent slots. event is called from the loop. 0 or -errno. */
int slots_start(struct loop *loop, const struct config *config,
		void (*event)(void *owner, const struct slot_event *event), void *owner);

/* Kills everything at once: shutdown. Slots and minders answer by SLOT_EMPTY as ever; see slots_all_gone. */
void slots_kill_all(void);

/* True when no slot, minder, orphan or warden is left after slots_kill_all. */
bool slots_all_gone(void);

/* Slots that can still be used (idle, or with an exec), or soon. Below 1 for LIMIT_NO_SLOT_MS: execd's turn
 * to exit 1. */
unsigned slots_capacity(void);
unsigned slots_idle(void);
unsigned slots_minders(void);

/* Where processes for a slot or for bash cannot be had: the oldest minder is killed for them, and logged.
 * False where there is none. */
bool slots_give_up_minder(void);

/* An idle slot's number, below 2 * LIMIT_CONCURRENT + LIMIT_MINDERS; it is the caller's until slots_release
 * or slots_mind. -EAGAIN: none is idle now. */
int slots_take(void);

/* Makes the command's three pipes, owned by the commands' uid. ours: stdin write end (O_NONBLOCK), stdout and
 * stderr read ends (O_NONBLOCK), theirs: the other ends, blocking. All CLOEXEC and the caller's. 0 or -errno.
 */
int slots_pipes(int ours[3], int theirs[3]);

/* Runs. The slot gets duplicates of theirs and of ours[1], ours[2] (for minding); the caller closes theirs at
 * once. 0 or -errno (the slot is then given back by slots_release); -EPIPE: the slot is gone. */
int slots_run(unsigned slot, const struct slot_run *run, const int ours[3], const int theirs[3]);

/* The next piece of the command, at most CHANNEL_PIECE_MAX bytes; only after SLOT_TOOK. As slots_run: after
 * -EPIPE no event of this exec comes. */
int slots_command(unsigned slot, const uint8_t *piece, size_t size);

/* Kills all that the exec started: looks at the leader first (one that has exited keeps its status), then the
 * leader, then the rest. Before SLOT_STARTED: it does not start, and SLOT_EMPTY comes. Answers:
 * SLOT_LEADER_EXITED if it has not come yet, then SLOT_EMPTY, SLOT_STILL_ALIVE every second until then.
 * Calling it twice is harmless. */
void slots_kill(unsigned slot);

/* After SLOT_EMPTY (of an abandoned slot, too) or SLOT_START_FAILED, and for a slot that was taken but never
 * run: idle again, or (used up, dead) replaced. No event of its last exec comes after this. */
void slots_release(unsigned slot);

/* After SLOT_MINDING, once netd no longer reads the pipes: what still lives keeps a reader. The number is
 * free at once and a new slot takes the place. At most LIMIT_MINDERS: beyond it the oldest minder is killed,
 * and logged. */
void slots_mind(unsigned slot);

/* No proof in LIMIT_KILL_PROOF_MS: never used again, the number is not reused until its death is proven,
 * capacity shrinks until then, or until all that is left only dies (slots_replaced): then another takes its
 * place. */
void slots_abandon(unsigned slot);
bool slots_replaced(unsigned slot);

/* For the one place that waits for execd's children (waitid with WEXITED | WSTOPPED | WNOHANG; wait_status as
 * waitpid gives it): every child but netd is a slot, the warden, or an orphan of a dead slot, and belongs
 * here. A slot that stopped counts as dead. Returns "slot", "warden" or "orphan", for the log. Emits events.
 */
const char *slots_reap(pid_t pid, int wait_status);

/* A child of execd that is no slot and must be spared by the sweep of orphans: netd. 0: none. */
void slots_spare(pid_t pid);

/* Kills the children of execd that nobody knows: what a netd left that broke the rules. */
void slots_sweep(void);

#endif
