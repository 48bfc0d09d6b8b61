/* Commands and stdin that netd holds for execd: the message they came in, counted against LIMIT_HELD until
 * the stdin is written or the exec is over. Also the fingerprint, and writing stdin to the command. */
#ifndef NETD_INPUT_H
#define NETD_INPUT_H

#include "common/channel.h"
#include "common/loop.h"
#include "netd/frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUT_WRITE (256u * LIMIT_KIB) /* bytes of stdin in one turn */
#define INPUT_SLACK 4096u              /* bytes beside command and stdin that a held message may have */

struct input {
	uint8_t *message; /* owned; command and stdin lie in it; NULL: nothing is held */
	const uint8_t *command;
	size_t command_len;
	const uint8_t *bytes; /* stdin that is not written yet */
	size_t left;
	size_t held; /* what it counts for */
	struct loop *loop;
	struct loop_source source; /* fd: the write end of the command's stdin, or -1 */
};

/* Bytes held by all. */
size_t input_held(void);

/* Whether exec can be run as it is, or why not (enum refusal; 0: it can). LIMIT_HELD is looked at last. */
uint8_t input_check(const struct frames_server *exec);

/* SHA-256 over le64(command length) command le64(stdin length) stdin le32(timeout_s) u8(streaming). 0 or
 * -errno. */
int input_fingerprint(const struct frames_server *exec, uint8_t ret[CHANNEL_FINGERPRINT]);

/* Takes over message (of size bytes, from malloc), into which exec points. It is packed when much of it is
 * something else: what is counted is what is held. */
void input_hold(struct input *in, uint8_t *message, size_t size, const struct frames_server *exec);

/* The command has started: writes stdin to fd (taken over, O_NONBLOCK) as it is read, then closes it. A
 * command that does not read its stdin is no error. 0 or -errno. */
int input_begin(struct input *in, struct loop *loop, int fd);

/* Forgets everything. */
void input_drop(struct input *in);

#endif
