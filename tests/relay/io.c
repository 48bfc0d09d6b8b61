#include "tests/relay/io.h"

#include "common/fd.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_PIECE (16u * 1024)

static ssize_t tls_result(struct relay_io *io, int n)
{
	switch (SSL_get_error(io->tls, n)) {
	case SSL_ERROR_NONE:
		return n;
	case SSL_ERROR_WANT_READ:
		return -EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		io->want_write = true;
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		return -EPIPE;
	default:
		return -EPROTO;
	}
}

/* The count, 0 at the end, or -errno. */
static ssize_t receive(struct relay_io *io, void *buf, size_t size)
{
	ssize_t n;

	if (io->tls) {
		ERR_clear_error();
		return tls_result(io, SSL_read(io->tls, buf, (int)size));
	}
	n = recv(io->source.fd, buf, size, 0);
	return n < 0 ? -errno : n;
}

static ssize_t transmit(struct relay_io *io, const void *buf, size_t size)
{
	ssize_t n;

	if (io->tls) {
		ERR_clear_error();
		return tls_result(io, SSL_write(io->tls, buf, (int)size));
	}
	n = send(io->source.fd, buf, size, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

int relay_io_read(struct relay_io *io, size_t *budget)
{
	uint8_t piece[READ_PIECE];
	ssize_t n, used;

	while (!io->paused) {
		size_t want = budget && *budget < sizeof piece ? *budget : sizeof piece;

		if (want == 0)
			return 0;
		n = receive(io, piece, want);
		if (n == -EAGAIN || n == -EINTR)
			return 0;
		if (n <= 0)
			return n < 0 ? (int)n : -EPIPE;
		if (budget)
			*budget -= (size_t)n;
		used = nghttp2_session_mem_recv(io->session, piece, (size_t)n);
		if (used < 0)
			return -EPROTO;
		/* One piece a pass is enough for a plain socket: epoll says so again. TLS may hold more
		 * inside. */
		if (!io->tls || SSL_pending(io->tls) == 0)
			return 0;
	}
	return 0;
}

int relay_io_flush(struct relay_io *io)
{
	io->want_write = false;
	while (!io->mute) {
		ssize_t n;

		if (io->unsent_size == 0) {
			n = nghttp2_session_mem_send(io->session, &io->unsent);
			if (n < 0)
				return -EPROTO;
			if (n == 0)
				break;
			io->unsent_size = (size_t)n;
		}
		n = transmit(io, io->unsent, io->unsent_size);
		if (n == -EAGAIN) {
			/* TLS says itself which way it waits: a handshake may have to read first. */
			io->want_write |= !io->tls;
			break;
		}
		if (n <= 0)
			return n < 0 ? (int)n : -EPIPE;
		io->unsent += n;
		io->unsent_size -= (size_t)n;
	}
	relay_io_watch(io);
	return 0;
}

void relay_io_watch(struct relay_io *io)
{
	loop_mod(io->loop, &io->source, (io->paused ? 0u : EPOLLIN) | (io->want_write ? EPOLLOUT : 0u));
}

bool relay_io_idle(const struct relay_io *io)
{
	return io->unsent_size == 0 && !nghttp2_session_want_write(io->session);
}

void relay_io_close(struct relay_io *io, bool reset)
{
	struct linger hard = {.l_onoff = 1};

	if (io->source.fd < 0)
		return;
	loop_del(io->loop, &io->source);
	if (reset)
		setsockopt(io->source.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	SSL_free(io->tls);
	io->tls = NULL;
	nghttp2_session_del(io->session);
	io->session = NULL;
	fd_close(&io->source.fd);
}
