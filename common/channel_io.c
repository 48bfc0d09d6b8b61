#include "common/channel_io.h"

#include "common/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

#define CHANNEL_SOCKET_BUFFER (1024 * 1024)

static int finish_send(struct channel *c, ssize_t n)
{
	if (n < 0)
		return errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS ? -EAGAIN : -errno;
	c->seq_out++;
	return 0;
}

int channel_send(struct channel *c, enum channel_type type, uint8_t flags, uint64_t req_id, const void *block,
		 size_t block_size, const void *bytes, size_t size)
{
	uint8_t header[CHANNEL_HEADER];
	struct iovec iov[3] = {
	    {header, sizeof header},
	    {(void *)(uintptr_t)block, block_size},
	    {(void *)(uintptr_t)bytes, size},
	};

	if (block_size + size > CHANNEL_BODY_MAX)
		return -EMSGSIZE;
	channel_encode_header(header, &(struct channel_header){.type = type,
							       .flags = flags,
							       .len = (uint32_t)(block_size + size),
							       .req_id = req_id,
							       .seq = c->seq_out});
	return finish_send(c, writev(c->fd, iov, 3));
}

int channel_send_fds(struct channel *c, enum channel_type type, uint8_t flags, uint64_t req_id,
		     const void *block, size_t block_size, const int *fds, size_t count)
{
	uint8_t header[CHANNEL_HEADER];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int[3]))];
	} control = {0};
	struct iovec iov[2] = {{header, sizeof header}, {(void *)(uintptr_t)block, block_size}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
	struct cmsghdr *h;

	if (count > 3)
		return -EINVAL;
	m.msg_control = control.bytes;
	m.msg_controllen = CMSG_SPACE(sizeof(int) * count);
	h = CMSG_FIRSTHDR(&m);
	if (!h)
		return -EINVAL;
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int) * count);
	memcpy(CMSG_DATA(h), fds, sizeof(int) * count);
	channel_encode_header(header, &(struct channel_header){.type = type,
							       .flags = flags,
							       .len = (uint32_t)block_size,
							       .req_id = req_id,
							       .seq = c->seq_out});
	return finish_send(c, sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT));
}

/* Takes the descriptors of a message; more than there is place for are closed. Their count. */
static size_t take_fds(struct msghdr *m, int fds[3])
{
	size_t count = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (h->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof fd);
			if (count < 3)
				fds[count++] = fd;
			else
				close(fd);
		}
	}
	return count;
}

int channel_receive(struct channel *c, uint8_t *buf, struct channel_record *ret, const char **ret_why)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int[3]))];
	} control;
	bool takes_fds = c->receives == CHANNEL_TO_NETD;
	struct iovec iov = {buf, LIMIT_RECORD};
	struct msghdr m = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = takes_fds ? control.bytes : NULL,
	    .msg_controllen = takes_fds ? sizeof control.bytes : 0,
	};
	struct channel_record r = {.fds = {-1, -1, -1}};
	ssize_t n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	size_t count;
	int err;

	if (n < 0)
		return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
	count = takes_fds ? take_fds(&m, r.fds) : 0;
	if (n == 0 && count == 0 && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 0;
	err = -EPROTO;
	if (m.msg_flags & MSG_TRUNC)
		*ret_why = "record too long";
	else if (m.msg_flags & MSG_CTRUNC)
		*ret_why = "descriptors where none belong";
	else
		err =
		    channel_decode(buf, (size_t)n, c->receives, c->phase, c->seq_in, &r.h, &r.body, ret_why);
	if (err == 0 && count != channel_fd_count(&r.h)) {
		*ret_why = "wrong number of descriptors";
		err = -EPROTO;
	}
	if (err < 0) {
		for (size_t i = 0; i < count; i++)
			fd_close(&r.fds[i]);
		return err;
	}
	c->seq_in++;
	*ret = r;
	return 1;
}

int channel_pair(int *ret_ours, int *ret_theirs)
{
	int size = CHANNEL_SOCKET_BUFFER, off = 0;
	int s[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		setsockopt(s[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	/* Older kernels say ENOPROTOOPT; there netd's filter, which has no sendmsg, is what keeps descriptors
	 * out. */
	setsockopt(s[0], SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
	*ret_ours = s[0];
	*ret_theirs = s[1];
	return 0;
}
