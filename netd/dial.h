/* One attempt to reach the relay: resolve, connect, proxy, TLS, under one deadline. Behind transport.h. */
#ifndef NETD_DIAL_H
#define NETD_DIAL_H

#include "common/loop.h"
#include "netd/settings.h"
#include "netd/transport.h"

#include <stdint.h>

struct dial_files;

/* See transport_prepare. */
int dial_prepare(const struct settings *settings, struct dial_files **ret);
void dial_files_free(struct dial_files *files);

/* See transport_dial; limit_ms is what LIMIT_HANDSHAKE_MS is there. */
int dial_start(struct loop *loop, struct settings *settings, const void *greeting, size_t size,
	       unsigned limit_ms,
	       void (*done)(void *owner, struct transport *t, const struct transport_end *end), void *owner);

#endif
