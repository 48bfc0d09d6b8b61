/* execd's side of the channel: reads and checks netd's records, hands them on, and sends what is owed. Sends
 * never block and nothing is queued: what cannot be sent now stays a state bit in its exec (execs.h), or, for
 * the answer to an EXEC that has no entry, one pending answer during which the channel is not read. */
#ifndef EXECD_RECORDS_H
#define EXECD_RECORDS_H

#include "common/channel_io.h"
#include "common/loop.h"

#include <stdbool.h>
#include <stdint.h>

/* What the life of a netd hangs on; called from the loop. After lost() the channel is closed already. */
struct records_events {
	void (*jailed)(void *owner);
	void (*attached)(void *owner);
	void (*alive)(void *owner, const struct channel_alive *alive);
	void (*goaway)(void *owner);
	void (*closed)(void *owner, const struct channel_closed *closed);
	/* The channel is over: end of file (violation NULL) or a violation (what it was, static). Not called
	 * by records_close. The owner then calls execs_stream_lost(). */
	void (*lost)(void *owner, const char *violation);
};

/* Takes over fd, execd's end of channel_pair(). One channel at a time. 0 or -errno. */
int records_open(struct loop *loop, int fd, const struct records_events *events, void *owner);

/* Closes the channel, silently. execs_stream_lost() is the caller's duty. Harmless when there is none. */
void records_close(void);

bool records_is_open(void);
int records_fd(void); /* to poll only; -1: closed */

/* ServerFrames (EXEC and ABORT records) since the last records_open; kept after the channel is closed. A
 * connection that brought one resets the backoff (contract.md 10). */
uint64_t records_frames(void);
enum channel_phase records_phase(void);

/* The start of a netd, while the channel is empty: settings, JAIL, credentials, DIAL. 0 or -errno; -EAGAIN
 * means a netd that does not read, which is treated as lost. */
int records_set(enum channel_key key, const void *value, size_t size);
int records_set_u32(enum channel_key key, uint32_t value);
int records_set_fd(enum channel_key key, int fd); /* fd stays the caller's */
int records_jail(void);
int records_dial(void);

/* Leave in good order. Remembered and sent when the channel has room. */
void records_drain(void);

/* For execs.c. 0, or -EAGAIN (owed: execs_channel_writable() comes when there is room, and only then), or
 * -EPIPE (there is no channel, or its peer is gone: lost() comes from the loop). records_started also gives
 * what sendmsg(2) says of the descriptors themselves (-ETOOMANYREFS): then nothing was sent and the channel
 * lives. */
int records_fetch(uint64_t req_id, uint32_t offset);
int records_started(uint64_t req_id, const int fds[3]); /* fds stay the caller's */
int records_left(uint64_t req_id);
int records_ended(uint64_t req_id, const struct channel_ended *ended, bool truncated);

/* The answers to an EXEC, one each, in order. Never fail: what does not fit now is the one pending answer. */
void records_admitted(uint64_t req_id);
void records_duplicate(uint64_t req_id);
void records_replay(uint64_t req_id, const struct outcome *outcome, bool truncated);
void records_refused(uint64_t req_id, const struct outcome *outcome);

#endif
