#include "execd/slot/mind.h"

#include "common/clock.h"
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/uio.h>
#include <unistd.h>

void mind_begin(struct mind *mind, int readers[2])
{
	mind->readers = readers;
	mind->null = STDOUT_FILENO; /* /dev/null, in a slot */
	mind->again_ms = 0;
}

void mind_poll(const struct mind *mind, struct pollfd p[2])
{
	bool resting = mind->again_ms != CLOCK_NEVER;

	for (int i = 0; i < 2; i++)
		p[i] = (struct pollfd){.fd = resting ? -1 : mind->readers[i], .events = POLLIN};
}

/* The flags of the pipe are shared with netd, so a read would block when netd says so: splice has its own. */
static bool discard(struct mind *mind, int *reader)
{
	ssize_t n;

	if (*reader < 0)
		return false;
	n = splice(*reader, NULL, mind->null, NULL, MIND_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		fd_close(reader);
	return n > 0;
}

void mind_step(struct mind *mind, uint64_t now_ms)
{
	bool any = false;

	if (mind->again_ms != CLOCK_NEVER && mind->again_ms > now_ms)
		return;
	for (int i = 0; i < 2; i++)
		any |= discard(mind, &mind->readers[i]);
	mind->again_ms = any ? now_ms + MIND_REST_MS : CLOCK_NEVER;
}
