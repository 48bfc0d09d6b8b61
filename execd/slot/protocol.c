#include "execd/slot/protocol.h"

#include "common/buf.h"
#include "common/fd.h"
#include "common/outcome.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

#define SOCKET_BUFFER (512 * 1024)
#define ERRNO_MAX     4095 /* the largest that Linux returns */

union rights {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int[SLOT_RUN_FDS]))];
};

int slot_pair(int *ret_execd, int *ret_other)
{
	int size = SOCKET_BUFFER, off = 0;
	int s[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) < 0)
		return -errno;
	setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	/* Older kernels say ENOPROTOOPT. */
	setsockopt(s[0], SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
	*ret_execd = s[0];
	*ret_other = s[1];
	return 0;
}

int slot_order_send(int fd, const struct slot_order *order)
{
	uint8_t header[SLOT_ORDER_HEADER] = {(uint8_t)order->type};
	union rights rights = {0};
	struct iovec iov[2] = {{header, sizeof header}, {(void *)(uintptr_t)order->bytes, order->size}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

	if (order->fd_count > SLOT_RUN_FDS || order->size > SLOT_ORDER_MAX - SLOT_ORDER_HEADER)
		return -EINVAL;
	buf_put_u32(header + 4, order->value);
	if (order->fd_count > 0) {
		struct cmsghdr *h;

		m.msg_control = rights.bytes;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * order->fd_count);
		h = &rights.align; /* CMSG_FIRSTHDR(&m) */
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int) * order->fd_count);
		memcpy(CMSG_DATA(h), order->fds, sizeof(int) * order->fd_count);
	}
	while (sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno != EINTR)
			return errno == ENOBUFS ? -EAGAIN : -errno;
	}
	return 0;
}

static void take_rights(struct msghdr *m, struct slot_order *order)
{
	struct cmsghdr *h = CMSG_FIRSTHDR(m);

	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
		return;
	order->fd_count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(order->fds, CMSG_DATA(h), order->fd_count * sizeof(int));
}

static int order_check(const struct slot_order *order, const struct msghdr *m, const uint8_t *buf,
		       size_t size)
{
	size_t fds = 0;

	if (size < SLOT_ORDER_HEADER || (m->msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return -EPROTO;
	if (buf[0] < SLOT_ORDER_RUN || buf[0] > SLOT_ORDER_LAST || buf[1] || buf[2] || buf[3])
		return -EPROTO;
	if (buf[0] == SLOT_ORDER_RUN)
		fds = SLOT_RUN_FDS;
	else if (buf[0] == SLOT_ORDER_CLONE)
		fds = 1;
	return order->fd_count == fds ? 0 : -EPROTO;
}

int slot_order_receive(int fd, uint8_t *buf, bool no_wait, struct slot_order *ret)
{
	union rights rights;
	struct slot_order order = {.fds = {-1, -1, -1, -1, -1}};
	struct iovec iov = {buf, SLOT_ORDER_MAX};
	struct msghdr m = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = rights.bytes,
	    .msg_controllen = sizeof rights.bytes,
	};
	ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | (no_wait ? MSG_DONTWAIT : 0));

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return 0;
	take_rights(&m, &order);
	if (order_check(&order, &m, buf, (size_t)n) < 0) {
		for (size_t i = 0; i < order.fd_count; i++)
			fd_close(&order.fds[i]);
		return -EPROTO;
	}
	order.type = (enum slot_order_type)buf[0];
	order.value = buf_get_u32(buf + 4);
	order.bytes = buf + SLOT_ORDER_HEADER;
	order.size = (size_t)n - SLOT_ORDER_HEADER;
	*ret = order;
	return 1;
}

void slot_report_encode(uint8_t out[SLOT_REPORT_SIZE], const struct slot_report *report)
{
	out[0] = (uint8_t)report->type;
	out[1] = report->by_kill;
	out[2] = out[3] = 0;
	buf_put_u32(out + 4, report->value);
	buf_put_u32(out + 8, (uint32_t)report->pid);
}

/* As waitpid(2) tells the end of a process; nothing else. */
static bool is_end(uint32_t status)
{
	if (status > 0xffff)
		return false;
	return WIFEXITED((int)status) ||
	       (WIFSIGNALED((int)status) && WTERMSIG((int)status) < NSIG && status < 0x100);
}

static bool is_start_failure(uint32_t value)
{
	return outcome_valid(&(struct outcome){OUTCOME_START_FAILED, value}) &&
	       OUTCOME_START_ERRNO(value) <= ERRNO_MAX;
}

/* What the fields may say, by type: a slot lives among the commands, and one that they have is no slot. */
static bool report_valid(const struct slot_report *r)
{
	if (r->by_kill && r->type != SLOT_REPORT_EXITED)
		return false;
	if (r->pid != 0 && r->type != SLOT_REPORT_CLONED)
		return false;
	switch (r->type) {
	case SLOT_REPORT_READY:
		return r->value <= 1;
	case SLOT_REPORT_START_FAILED:
		return is_start_failure(r->value);
	case SLOT_REPORT_EXITED:
		return is_end(r->value);
	case SLOT_REPORT_WARDEN:
		return r->value == 0 || is_start_failure(r->value);
	case SLOT_REPORT_CLONED:
		return r->pid > 0 || (r->pid < 0 && r->pid >= -ERRNO_MAX);
	case SLOT_REPORT_STILL_ALIVE:
	case SLOT_REPORT_MINDING:
	case SLOT_REPORT_CLEARED:
		return r->value <= INT32_MAX;
	case SLOT_REPORT_STARTED:
		return r->value <= ERRNO_MAX;
	case SLOT_REPORT_TOOK:
	case SLOT_REPORT_EMPTY:
	case SLOT_REPORT_PONG:
		return r->value == 0;
	}
	return false;
}

int slot_report_decode(const uint8_t *bytes, size_t size, struct slot_report *ret)
{
	struct slot_report report;

	if (size != SLOT_REPORT_SIZE || bytes[1] > 1 || bytes[2] || bytes[3])
		return -EPROTO;
	report = (struct slot_report){
	    .type = (enum slot_report_type)bytes[0],
	    .by_kill = bytes[1],
	    .value = buf_get_u32(bytes + 4),
	    .pid = (int32_t)buf_get_u32(bytes + 8),
	};
	if (!report_valid(&report))
		return -EPROTO;
	*ret = report;
	return 0;
}

int slot_report_send(int fd, const struct slot_report *report, bool must)
{
	uint8_t bytes[SLOT_REPORT_SIZE];

	slot_report_encode(bytes, report);
	while (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL | (must ? 0 : MSG_DONTWAIT)) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* A peer that dies with orders unread leaves an error to be read once, before what it had reported: the
 * kernel sets it when the last reference to its socket goes and something is left in its queue
 * (unix_release_sock). */
static ssize_t receive_past_reset(int fd, struct msghdr *m, bool *ret_unread)
{
	ssize_t n = recvmsg(fd, m, MSG_DONTWAIT);

	if (n >= 0 || errno != ECONNRESET)
		return n;
	if (ret_unread)
		*ret_unread = true;
	return recvmsg(fd, m, MSG_DONTWAIT);
}

int slot_report_receive(int fd, struct slot_report *ret, bool *ret_unread)
{
	uint8_t bytes[SLOT_REPORT_SIZE];
	struct iovec iov = {bytes, sizeof bytes};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = receive_past_reset(fd, &m, ret_unread);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EPROTO;
	if (n == 0)
		return 0;
	return slot_report_decode(bytes, (size_t)n, ret) < 0 ? -EPROTO : 1;
}
