#include "tests/runner/hostile_talk.h"

#include "common/buf.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct channel talk = {.fd = CHANNEL_FD, .receives = CHANNEL_TO_NETD, .phase = CHANNEL_PHASE_CONFIG};
uint8_t talk_buffer[LIMIT_RECORD];

void talk_tell(const char *format, ...)
{
	char line[256] = "hostile ";
	va_list ap;
	size_t n = strlen(line);

	va_start(ap, format);
	vsnprintf(line + n, sizeof line - n - 1, format, ap);
	va_end(ap);
	strcat(line, "\n");
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		_exit(9);
}

_Noreturn void talk_stay(void)
{
	for (;;)
		pause();
}

/* Something here went another way than planned: the siege sees the word. */
_Noreturn void talk_fail(const char *what)
{
	talk_tell("failed: %s: %s", what, strerror(errno));
	talk_stay();
}

static bool wait_for(short events, int ms)
{
	struct pollfd f = {.fd = CHANNEL_FD, .events = events};

	return poll(&f, 1, ms) > 0;
}

/* --- the channel, as it should be used --- */

/* False when it stays full for ms. */
bool talk_say_within(int ms, enum channel_type type, uint8_t flags, uint64_t id, const void *block,
		     size_t size, const char *rest)
{
	int err;

	while ((err = channel_send(&talk, type, flags, id, block, size, rest, rest ? strlen(rest) : 0)) ==
	       -EAGAIN) {
		if (!wait_for(POLLOUT, ms))
			return false;
	}
	errno = -err;
	return err == 0;
}

void talk_say(enum channel_type type, uint8_t flags, uint64_t id, const void *block, size_t size)
{
	if (!talk_say_within(TALK_WAIT_MS, type, flags, id, block, size, NULL))
		talk_fail("send");
}

/* The next record's type; its descriptors are closed. At the end of the channel there is nothing left to do.
 */
enum channel_type talk_hear(struct channel_record *r)
{
	const char *why = "";
	int got;

	while ((got = channel_receive(&talk, talk_buffer, r, &why)) == -EAGAIN) {
		if (!wait_for(POLLIN, TALK_WAIT_MS))
			talk_fail("nothing comes");
	}
	if (got <= 0)
		talk_fail("no more comes");
	for (int i = 0; i < 3; i++) {
		if (r->fds[i] >= 0)
			close(r->fds[i]);
	}
	return r->h.type;
}

void talk_exec(uint64_t id, uint8_t work, uint32_t timeout_s, const char *command)
{
	uint8_t block[CHANNEL_EXEC_BLOCK];
	struct channel_exec e = {.timeout_s = timeout_s,
				 .command_len = command ? (uint32_t)strlen(command) : TALK_FETCH_LEN};

	memset(e.fingerprint, work, sizeof e.fingerprint);
	channel_encode_exec(block, &e);
	if (!talk_say_within(TALK_WAIT_MS, CHANNEL_EXEC, command ? CHANNEL_INLINE : 0, id, block,
			     sizeof block, command))
		talk_fail("exec");
}

void talk_expect(enum channel_type type)
{
	struct channel_record r;

	if (talk_hear(&r) != type)
		talk_fail(channel_type_name(r.h.type));
}

void talk_drained(uint64_t id)
{
	static const uint8_t block[CHANNEL_DRAINED_BLOCK];

	talk_say(CHANNEL_DRAINED, 0, id, block, sizeof block);
}

/* Answers each FETCH of the command of id, until STARTED. */
void talk_serve_start(uint64_t id, const char *command)
{
	uint8_t offset[CHANNEL_COMMAND_BLOCK];
	struct channel_record r;

	while (talk_hear(&r) == CHANNEL_FETCH) {
		memcpy(offset, r.body, sizeof offset);
		if (!talk_say_within(TALK_WAIT_MS, CHANNEL_COMMAND, 0, id, offset, sizeof offset,
				     command + buf_get_u32(offset)))
			talk_fail("command");
	}
	if (r.h.type != CHANNEL_STARTED)
		talk_fail(channel_type_name(r.h.type));
}
