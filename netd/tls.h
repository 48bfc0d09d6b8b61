/* A TLS client on a connected socket: TLS 1.2 or newer, ALPN h2, the peer's name verified. On OpenSSL, which
 * never reads its configuration file, loads an engine, keeps a session or asks for a pass phrase. */
#ifndef NETD_TLS_H
#define NETD_TLS_H

#include "common/buf.h"
#include "netd/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct tls_setup;
struct tls;

/* Before the jail: starts OpenSSL and its random numbers, and reads the PEM files of ca_dirs, folders
 * separated by colons (empty: none), without looking into them. 0 or -ENOMEM; what cannot be used is told by
 * tls_new. */
int tls_setup_new(const char *ca_dirs, struct tls_setup **ret);
void tls_setup_free(struct tls_setup *setup);

/* The roots and the certificate of settings, whose descriptors are read but not closed. What is wrong with
 * them is said in why, which names the variable: -EINVAL, that is CHANNEL_CLOSE_CREDENTIALS. */
int tls_setup_load(struct tls_setup *setup, const struct settings *settings, struct buf_text *why);

/* A client on a connected socket, which stays the caller's, with what was loaded. 0 or -ENOMEM. */
int tls_open(struct tls_setup *setup, const struct settings *settings, int fd, struct tls **ret);
void tls_free(struct tls *tls); /* NULL is allowed; the socket stays open */

/* One step. 1: the connection is up, verified, and speaks h2; it holds no private key and no roots any more.
 * 0: wait for *ret_events (EPOLLIN or EPOLLOUT). -EPROTO: *ret_class is CHANNEL_CLOSE_TLS or
 * CHANNEL_CLOSE_NOT_HTTP2, and why says what went wrong. */
int tls_handshake(struct tls *tls, uint32_t *ret_events, struct buf_text *why, uint8_t *ret_class);

/* "TLSv1.3". */
const char *tls_version(const struct tls *tls);

/* As transport_read, transport_writev and their like. */
ssize_t tls_read(struct tls *tls, void *buf, size_t size);
ssize_t tls_writev(struct tls *tls, const struct iovec *iov, int count);
bool tls_read_wants_write(const struct tls *tls);
bool tls_write_wants_read(const struct tls *tls);
bool tls_pending(const struct tls *tls);
const char *tls_why(const struct tls *tls);
void tls_forget(struct tls *tls);
void tls_close_notify(struct tls *tls);

#endif
