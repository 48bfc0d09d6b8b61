/* Every limit of the project, by name. Each has a test at, below and above it and
 * a line in sandbox-worker(7). Sizes in bytes, times in the unit of the name. */
#ifndef COMMON_LIMITS_H
#define COMMON_LIMITS_H

#define LIMIT_KIB 1024u
#define LIMIT_MIB (1024u * LIMIT_KIB)

/* What the relay may send. */
#define LIMIT_COMMAND (1u * LIMIT_MIB)
#define LIMIT_STDIN   (16u * LIMIT_MIB)
#define LIMIT_MESSAGE (LIMIT_STDIN + LIMIT_COMMAND + 64u * LIMIT_KIB) /* one ServerFrame that is taken */
#define LIMIT_MESSAGE_SKIP                                                                                   \
	(64u * LIMIT_MIB) /* longer than LIMIT_MESSAGE and up to this: read through, refused */
/* Commands and stdin held, in all: the largest for each of the four that run by default. */
#define LIMIT_HELD (4u * (LIMIT_STDIN + LIMIT_COMMAND))

/* What is sent to the relay. */
#define LIMIT_CHUNK_DATA     (32u * LIMIT_KIB) /* contract.md 3: data of one Chunk at most */
#define LIMIT_BUFFERED       (8u * LIMIT_MIB)  /* contract.md 6: one stream of a non-streaming exec */
#define LIMIT_CONTROL_FRAMES 1024u             /* terminal frames and refusals waiting for the window */
#define LIMIT_CONTROL_BYTES  (256u * LIMIT_KIB)

/* How many. */
#define LIMIT_CONCURRENT 256u /* WORKER_MAX_CONCURRENT at most */
#define LIMIT_WAITING    64u
#define LIMIT_CACHED     256u
#define LIMIT_MINDERS    16u

/* The channel. */
#define LIMIT_RECORD (64u * LIMIT_KIB) /* header and body */

/* Settings. */
#define LIMIT_TOKEN   (8u * LIMIT_KIB)
#define LIMIT_SETTING 4096u /* any other value */
#define LIMIT_DRAIN_S 3600u /* WORKER_DRAIN_S at most */
#define LIMIT_PEM     (4u * LIMIT_MIB)

/* Times. */
#define LIMIT_KILL_PROOF_MS      10000u /* a kill without proof: the terminal frame goes all the same */
#define LIMIT_SLOT_PING_MS       2000u
#define LIMIT_SLOT_SILENT_MS     10000u /* a slot that answers no ping for so long counts as dead */
#define LIMIT_SLOT_TRIES         8u     /* slots that an exec may lose before they have read its command */
#define LIMIT_SLOT_SHORT_MS      4000u  /* no slot for what waits: from then on what was left behind goes */
#define LIMIT_SLOT_WAIT_MS       20000u /* and from then on what waits is refused */
#define LIMIT_NO_SLOT_MS         30000u /* without any slot: execd ends */
#define LIMIT_WARDEN_SILENT_MS   2000u  /* a warden that owes a slot while a sweep waits for it */
#define LIMIT_WARDEN_DOWN_MS     30000u /* without anything that can make slots: they no longer count */
#define LIMIT_SHUTDOWN_PROOF_MS  3000u
#define LIMIT_SHUTDOWN_ANSWER_MS 500u /* for the last answers, after that proof */
#define LIMIT_SHUTDOWN_MS        5000u
#define LIMIT_TRIAL_MS           5000u /* of the first command, where it is tried at the start */
#define LIMIT_QUIET_MS           500u  /* keep: silence after which the End goes */
#define LIMIT_LINGER_MS          5000u /* keep: open-window time after which it goes in any case */
#define LIMIT_AFTER_KILL_MS      2000u /* open-window time for what a killed command left in its pipes */
#define LIMIT_ALIVE_MS           5000u
#define LIMIT_ALIVE_LOST_MS      20000u
#define LIMIT_BACKOFF_MIN_MS     500u
#define LIMIT_BACKOFF_MAX_MS     30000u
#define LIMIT_STEADY_MS          30000u /* a connection that lasted this long resets the backoff */
#define LIMIT_HANDSHAKE_MS       20000u
#define LIMIT_PING_MS            30000u  /* a PING after this long without a byte from the peer */
#define LIMIT_PING_CALM_MS       300000u /* after too_many_pings */
#define LIMIT_PING_ACK_MS        10000u
#define LIMIT_GOAWAY_MS          30000u
#define LIMIT_HEARTBEAT_MS       15000u

#endif
