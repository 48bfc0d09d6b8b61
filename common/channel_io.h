/* Records on a SOCK_SEQPACKET socket: one packet each, never blocking. */
#ifndef COMMON_CHANNEL_IO_H
#define COMMON_CHANNEL_IO_H

#include "common/channel.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define CHANNEL_FD 3 /* netd's end */

struct channel {
	int fd;
	enum channel_direction receives; /* what comes in here */
	enum channel_phase phase;        /* kept by the owner */
	uint32_t seq_in;
	uint32_t seq_out;
};

struct channel_record {
	struct channel_header h;
	const uint8_t *body; /* into the caller's buffer */
	int fds[3];          /* netd's side: owned by the caller from then on; -1 where none */
};

/* Sends one record whose body is block then bytes (either may be of size 0). One writev, so netd needs no
 * sendmsg. 0, -EAGAIN (full: nothing was sent, the sequence has not moved), or -errno (the peer is gone:
 * -EPIPE, -ECONNRESET). SIGPIPE must be ignored. */
int channel_send(struct channel *c, enum channel_type type, uint8_t flags, uint64_t req_id, const void *block,
		 size_t block_size, const void *bytes, size_t size);

/* The same with descriptors, which stay the caller's. Only execd's side sends any. -ETOOMANYREFS when the
 * user already has too many descriptors in flight. */
int channel_send_fds(struct channel *c, enum channel_type type, uint8_t flags, uint64_t req_id,
		     const void *block, size_t block_size, const int *fds, size_t count);

/* Receives and checks one record into buf (LIMIT_RECORD bytes). 1: a record; 0: end of file; -EAGAIN: nothing
 * there; -EPROTO: a violation, *ret_why says which (static); else -errno. execd's side takes no descriptors:
 * any that come are a violation. */
int channel_receive(struct channel *c, uint8_t *buf, struct channel_record *ret, const char **ret_why);

/* socketpair for a new netd. ret_ours is execd's end: O_NONBLOCK, SO_PASSRIGHTS off where the kernel has it,
 * so that nothing can be pushed into execd. Both CLOEXEC. 0 or -errno. */
int channel_pair(int *ret_ours, int *ret_theirs);

#endif
