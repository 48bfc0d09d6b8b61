/* NO_PROXY: which relay is dialled without the proxy of HTTPS_PROXY. */
#ifndef COMMON_NO_PROXY_H
#define COMMON_NO_PROXY_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the list names the host. Entries, separated by commas: * (all), name (it and what is below it),
 * .name and *.name (only what is below it), an address, a network in CIDR; name and address may have :port.
 */
bool no_proxy_lists(const char *list, const char *host, uint16_t port);

/* The same, or the host is this one (localhost, loopback). */
bool no_proxy_covers(const char *list, const char *host, uint16_t port);

#endif
