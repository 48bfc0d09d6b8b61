#include "netd/transport.h"

#include "common/fd.h"
#include "netd/dial.h"
#include "netd/tls.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct transport {
	int fd;
	struct tls *tls; /* NULL: plain */
	uint8_t unread[16];
	uint8_t unread_at;
	uint8_t unread_end;
};

struct transport *transport_new(int fd, struct tls *tls)
{
	struct transport *t = malloc(sizeof *t);

	if (t)
		*t = (struct transport){.fd = fd, .tls = tls};
	return t;
}

static ssize_t result(ssize_t n)
{
	if (n >= 0)
		return n;
	return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
}

void transport_unread(struct transport *t, const void *bytes, size_t size)
{
	memcpy(t->unread, bytes, size);
	t->unread_at = 0;
	t->unread_end = (uint8_t)size;
}

static ssize_t read_again(struct transport *t, void *buf, size_t size)
{
	size_t n = (size_t)(t->unread_end - t->unread_at);

	if (n > size)
		n = size;
	memcpy(buf, t->unread + t->unread_at, n);
	t->unread_at = (uint8_t)(t->unread_at + n);
	return (ssize_t)n;
}

ssize_t transport_read(struct transport *t, void *buf, size_t size)
{
	if (t->unread_at < t->unread_end)
		return read_again(t, buf, size);
	return t->tls ? tls_read(t->tls, buf, size) : result(read(t->fd, buf, size));
}

ssize_t transport_writev(struct transport *t, const struct iovec *iov, int count)
{
	return t->tls ? tls_writev(t->tls, iov, count) : result(writev(t->fd, iov, count));
}

int transport_fd(const struct transport *t)
{
	return t->fd;
}

bool transport_read_wants_write(const struct transport *t)
{
	return t->tls && tls_read_wants_write(t->tls);
}

bool transport_write_wants_read(const struct transport *t)
{
	return t->tls && tls_write_wants_read(t->tls);
}

bool transport_pending(const struct transport *t)
{
	return t->unread_at < t->unread_end || (t->tls && tls_pending(t->tls));
}

const char *transport_why(const struct transport *t)
{
	return t->tls ? tls_why(t->tls) : NULL;
}

size_t transport_unsent(const struct transport *t)
{
	int bytes = 0;

	return ioctl(t->fd, SIOCOUTQ, &bytes) < 0 || bytes < 0 ? 0 : (size_t)bytes;
}

void transport_forget(struct transport *t)
{
	if (t->tls)
		tls_forget(t->tls);
}

void transport_shutdown(struct transport *t)
{
	if (t->tls)
		tls_close_notify(t->tls);
	shutdown(t->fd, SHUT_WR);
}

void transport_free(struct transport *t)
{
	if (!t)
		return;
	tls_free(t->tls);
	fd_close(&t->fd);
	free(t);
}

int transport_prepare(struct settings *settings)
{
	return dial_prepare(settings, &settings->dial_files);
}

int transport_dial(struct loop *loop, struct settings *settings, const void *greeting, size_t size,
		   void (*done)(void *owner, struct transport *t, const struct transport_end *end),
		   void *owner)
{
	return dial_start(loop, settings, greeting, size, LIMIT_HANDSHAKE_MS, done, owner);
}
