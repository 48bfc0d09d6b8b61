/* A connected byte stream to the relay: TCP, or TLS over it, perhaps through a proxy. Non-blocking. */
#ifndef NETD_TRANSPORT_H
#define NETD_TRANSPORT_H

#include "common/address.h"
#include "common/loop.h"
#include "netd/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct transport;
struct tls;

/* Before the jail: reads all files that dialling needs (resolv.conf, hosts, the CA folder), starts OpenSSL,
 * and keeps what it found in settings->dial_files. After it dialling opens no file; it needs sockets of inet
 * and inet6 (stream, and datagram to port 53), connect, getsockopt SO_ERROR, setsockopt, fcntl for O_NONBLOCK
 * and FD_CLOEXEC, sendto, recvfrom, read, write, writev, shutdown, ioctl SIOCOUTQ, getrandom and epoll. The
 * ports are 53 and the relay's or the proxy's. Without this call transport_dial does it. 0 or -ENOMEM:
 * whatever else is wrong is told by the dial. */
int transport_prepare(struct settings *settings);

/* Count, 0 at end of stream, -EAGAIN, or -errno (-EPROTO: TLS is broken). A stream that ends without
 * close_notify is an end of stream like any other. After a write that failed there may still be bytes to
 * read.
 */
ssize_t transport_read(struct transport *t, void *buf, size_t size);

/* Bytes that were taken, -EAGAIN, or -errno. With TLS at most one record of 16 KiB a call, joined from the
 * iovecs; after -EAGAIN the next call must offer the same bytes first. */
ssize_t transport_writev(struct transport *t, const struct iovec *iov, int count);

/* The descriptor to watch, and what for: TLS may want to write before it can read, and the reverse. */
int transport_fd(const struct transport *t);
bool transport_read_wants_write(const struct transport *t);
bool transport_write_wants_read(const struct transport *t);
/* Bytes decrypted and waiting although the socket may have nothing: read again without waiting. */
bool transport_pending(const struct transport *t);
/* What TLS has to say about the end or the error that the last call told, or NULL: with -EPROTO always, else
 * where the peer may have left for want of a client certificate. */
const char *transport_why(const struct transport *t);
/* Bytes in the kernel's send queue that the peer has not acknowledged (SIOCOUTQ). */
size_t transport_unsent(const struct transport *t);

/* Once a secret has left: wipes the copy of what was written last. */
void transport_forget(struct transport *t);

/* close_notify (one try) and FIN. Read until the end of the stream, for a bounded time, before
 * transport_free: bytes that nobody read make the kernel send a reset, which may overtake our last frames at
 * the peer. */
void transport_shutdown(struct transport *t);
void transport_free(struct transport *t);

/* How a dial ended. */
struct transport_end {
	uint8_t close_class; /* enum channel_close_class of a failure */
	bool has_address;
	struct address address; /* of the connection; of a failure: the last that was tried */
};

/* Dials: resolve, then connect, proxy, TLS and greeting (RFC 8305: the addresses race) until the first peer
 * has answered with SETTINGS, with LIMIT_HANDSHAKE_MS over it all. greeting: the connection preface and what
 * follows it, which has been sent then; size 0: a peer need not answer. done is called once, from the loop:
 * with a transport (owned by the caller, nothing pending in loop for it), or NULL; the one log line that says
 * why has been written. 0 or -errno.
 * settings->token is left alone; the proxy's password is wiped there and the descriptors are closed before it
 * returns. Settings and greeting must live until done. SIGPIPE must be ignored. */
int transport_dial(struct loop *loop, struct settings *settings, const void *greeting, size_t size,
		   void (*done)(void *owner, struct transport *t, const struct transport_end *end),
		   void *owner);

/* Bytes that were read and are to be read again first: at most 16, and once. */
void transport_unread(struct transport *t, const void *bytes, size_t size);

/* Takes over a connected, non-blocking stream socket, and the TLS client on it (NULL: plain). NULL: out of
 * memory, and nothing is taken. For transport_dial and for tests. */
struct transport *transport_new(int fd, struct tls *tls);

#endif
