/* A host's addresses: literals, localhost, /etc/hosts, then DNS through c-ares on our loop. Never
 * getaddrinfo.
 *
 * All files (hosts, resolv.conf, /dev/urandom for c-ares's query ids) are read by resolve_prepare, before the
 * jail; afterwards it needs only UDP and TCP sockets to the name servers on port 53: socket, connect, fcntl,
 * setsockopt, sendto, recvfrom, read, write, close. */
#ifndef NETD_RESOLVE_H
#define NETD_RESOLVE_H

#include "common/address.h"
#include "common/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define RESOLVE_NAME       256u /* a name and its NUL */
#define RESOLVE_PER_FAMILY 8u   /* more addresses of one family are left out */

struct resolver;

/* Reads what the host's name asks for. 0, or -ENOMEM: whatever else is wrong is told by resolve_start's
 * found. */
int resolve_prepare(const char *host, struct resolver **ret);

/* The same with other sources, for tests: a hosts file and name servers ("127.0.0.1:5353,…"). */
int resolve_prepare_from(const char *host, const char *hosts_path, const char *servers,
			 struct resolver **ret);

/* found is called from the loop: once for each family that has addresses as soon as it has, the last call
 * with complete (then count may be 0). No address at all: one call with count 0, complete, and why (static).
 */
void resolve_start(struct resolver *r, struct loop *loop,
		   void (*found)(void *owner, const struct address *list, size_t count, bool complete,
				 const char *why),
		   void *owner);

/* Not from within found. NULL is allowed. */
void resolve_free(struct resolver *r);

/* The addresses of host in an open hosts(5) file, at most max of each family. How many. */
size_t resolve_hosts(FILE *hosts, const char *host, struct address *list, size_t max_per_family);

/* The nth name to ask for, as resolv.conf(5) says of ndots and search, into out. False: no more.
 */
bool resolve_candidate(const char *host, unsigned ndots, char *const *domains, unsigned count, unsigned n,
		       char out[RESOLVE_NAME]);

#endif
