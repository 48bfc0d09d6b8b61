/* The records between execd and a slot, and between execd and the warden: one packet each on a SEQPACKET
 * pair. Both ends are the same program, but a slot lives among the commands, so execd checks what comes as it
 * checks netd's.
 *
 * An order is 8 bytes, little-endian {type u8, zero u8[3], value u32}, then bytes, then perhaps descriptors.
 * A report is SLOT_REPORT_SIZE bytes, of exact size and without descriptors. */
#ifndef EXECD_SLOT_PROTOCOL_H
#define EXECD_SLOT_PROTOCOL_H

#include "common/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum slot_order_type {
	/* execd → slot */
	SLOT_ORDER_RUN = 1, /* value: length of the command; bytes: its start; SLOT_RUN_FDS descriptors */
	SLOT_ORDER_PIECE,   /* bytes: the next ones; only after TOOK */
	SLOT_ORDER_KILL,    /* all that the exec started; nothing when there is none */
	SLOT_ORDER_MIND,    /* keep the readers, throw away what comes, exit once all is gone */
	SLOT_ORDER_PING,
	/* execd → warden */
	SLOT_ORDER_CLONE, /* value: a number, comes back in CLONED; one descriptor: the new slot's end */
	SLOT_ORDER_CLEAR, /* no exec runs: remove what they left in System V IPC */
	SLOT_ORDER_LAST = SLOT_ORDER_CLEAR,
};

enum slot_report_type {
	/* slot → execd */
	SLOT_REPORT_READY = 64,   /* value: 1 when its domain was proven to hold signals back, for kill(-1) */
	SLOT_REPORT_TOOK,         /* more of the command is wanted */
	SLOT_REPORT_STARTED,      /* value: 0, or the errno of the folder, instead of which it runs in / */
	SLOT_REPORT_START_FAILED, /* value: OUTCOME_START_VALUE; nothing runs, the slot is idle */
	SLOT_REPORT_EXITED,       /* value: as waitpid(2); by_kill */
	SLOT_REPORT_EMPTY,        /* ECHILD; the slot is idle */
	SLOT_REPORT_STILL_ALIVE,  /* value: how many */
	SLOT_REPORT_MINDING,      /* value: how many */
	SLOT_REPORT_PONG,
	/* warden → execd */
	SLOT_REPORT_WARDEN,  /* value: 0, or OUTCOME_START_VALUE of what could not be set up (the warden ends)
			      */
	SLOT_REPORT_CLONED,  /* value: the CLONE's; pid, or a negative errno */
	SLOT_REPORT_CLEARED, /* value: how many */
	SLOT_REPORT_LAST = SLOT_REPORT_CLEARED,
};

#define SLOT_ORDER_HEADER 8u
#define SLOT_ORDER_MAX    (LIMIT_RECORD + SLOT_ORDER_HEADER)
#define SLOT_REPORT_SIZE  12u
#define SLOT_RUN_FDS      5u /* the command's stdin, stdout, stderr; duplicates of our two read ends */

struct slot_order {
	enum slot_order_type type;
	uint32_t value;
	const uint8_t *bytes; /* received: into the caller's buffer */
	size_t size;
	int fds[SLOT_RUN_FDS]; /* received: the caller's; -1 where none */
	size_t fd_count;
};

struct slot_report {
	enum slot_report_type type;
	bool by_kill;
	uint32_t value;
	int32_t pid;
};

/* A connected pair, both ends CLOEXEC. execd's end does not block and takes no descriptors. 0 or -errno. */
int slot_pair(int *ret_execd, int *ret_other);

/* execd. Never waits. 0, -EAGAIN (the other side does not read), or -errno: the order was not sent.
 * -ECONNRESET says what ret_unread of slot_report_receive does, of the orders before; it is said once. */
int slot_order_send(int fd, const struct slot_order *order);

/* Slot, warden. Waits unless nothing has come (no_wait). buf: SLOT_ORDER_MAX bytes. 1: an order; 0: end of
 * file; -EAGAIN; -EPROTO; else -errno. */
int slot_order_receive(int fd, uint8_t *buf, bool no_wait, struct slot_order *ret);

/* Slot, warden. Waits for room only when must is true: a repeated report may be lost, no other. 0 or -errno.
 */
int slot_report_send(int fd, const struct slot_report *report, bool must);

/* execd. 1: a report; 0: end of file; -EAGAIN; -EPROTO for what is none; else -errno. *ret_unread (may be
 * NULL) becomes true once: the other side is gone and has not read all orders, at least not the last one. */
int slot_report_receive(int fd, struct slot_report *ret, bool *ret_unread);

/* The codec of a report; decode returns 0, or -EPROTO also where a field says what its type cannot. */
void slot_report_encode(uint8_t out[SLOT_REPORT_SIZE], const struct slot_report *report);
int slot_report_decode(const uint8_t *bytes, size_t size, struct slot_report *ret);

#endif
