/* The way through an HTTP proxy: whether to take it (NO_PROXY), and CONNECT (RFC 9110 9.3.6) with Basic
 * authentication (RFC 7617). No I/O here. */
#ifndef NETD_PROXY_H
#define NETD_PROXY_H

#include "common/buf.h"
#include "netd/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROXY_REPLY_MAX   16384u /* all header blocks of the answer together */
#define PROXY_REQUEST_MAX 4096u

/* Whether this relay is reached through settings' proxy: there is one, and NO_PROXY does not cover the relay.
 */
bool proxy_wanted(const struct settings *settings);

/* The CONNECT request, with the credentials where settings has a user, into out. Its length; wipe it after
 * use. */
size_t proxy_request(const struct settings *settings, char out[PROXY_REQUEST_MAX]);

/* The answer, taken byte by byte as it comes. */
struct proxy_reply {
	uint32_t seen; /* bytes in all */
	uint16_t status;
	bool in_status_line;
	bool line_empty;
	char line[128]; /* the final status line, cut */
	size_t line_used;
};

void proxy_reply_init(struct proxy_reply *reply);

/* Takes bytes up to the end of the final header block, 1xx ones being skipped, and says how many in
 * *ret_taken: what comes after them belongs to the tunnel. 1: the tunnel is open; 0: more is needed; -EPROTO:
 * refused or not HTTP, see why. */
int proxy_reply_take(struct proxy_reply *reply, const char *bytes, size_t size, size_t *ret_taken,
		     struct buf_text *why);

#endif
