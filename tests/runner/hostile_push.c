#include "tests/runner/hostile_talk.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_S 60

/* An ABORT with something beside it: control of the given kind and bytes. */
static int send_beside(int kind, const void *bytes, size_t size)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int[256]))];
	} control = {0};
	uint8_t header[CHANNEL_HEADER];
	struct iovec iov = {header, sizeof header};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = CMSG_SPACE(size)};

	channel_encode_header(
	    header, &(struct channel_header){.type = CHANNEL_ABORT, .req_id = 77, .seq = talk.seq_out});
	control.align =
	    (struct cmsghdr){.cmsg_len = CMSG_LEN(size), .cmsg_level = SOL_SOCKET, .cmsg_type = kind};
	memcpy(CMSG_DATA(&control.align), bytes, size);
	if (sendmsg(CHANNEL_FD, &m, MSG_NOSIGNAL) < 0)
		return -1;
	talk.seq_out++;
	return 0;
}

/* COUNT descriptors. Where the kernel lets none through, another violation ends it. */
static void push(const int *fds, size_t count)
{
	if (send_beside(SCM_RIGHTS, fds, count * sizeof *fds) == 0)
		return;
	if (errno != EPERM)
		talk_fail("push");
	talk_tell("nothing can be pushed");
	hostile_violate(NULL);
}

void hostile_push(const char *arguments)
{
	int fds[253] = {0}, ends[2], count = atoi(arguments);

	if (pipe(ends) < 0 || count < 1 || count > 253)
		talk_fail("order");
	for (int i = 0; i < count; i++)
		fds[i] = ends[i % 2];
	push(fds, (size_t)count);
}

/* A connection with bytes that nobody takes and a minute's time for them: whoever closes it last waits that
 * long. */
void hostile_linger(const char *unused)
{
	static const char bytes[65536];
	const struct linger patience = {1, LINGER_S};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_STREAM, 0);

	(void)unused;
	if (bind(listener, (struct sockaddr *)&at, size) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &size) < 0 ||
	    connect(s, (struct sockaddr *)&at, size) < 0 ||
	    setsockopt(s, SOL_SOCKET, SO_LINGER, &patience, sizeof patience) < 0)
		talk_fail("linger");
	while (send(s, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		continue;
	push(&s, 1);
}

/* Who we are; nobody asked. */
void hostile_credentials(const char *unused)
{
	struct ucred we = {getpid(), getuid(), getgid()};

	if (send_beside(SCM_CREDENTIALS, &we, sizeof we) < 0)
		talk_fail("credentials");
	talk_exec(1, 1, 0, "true");
	talk_expect(CHANNEL_REPLAY);
	talk_tell("served all the same");
	hostile_violate(unused);
}
