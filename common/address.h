/* IP addresses with a port: parsing, comparing, printing. No look-ups. */
#ifndef COMMON_ADDRESS_H
#define COMMON_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in in4;
		struct sockaddr_in6 in6;
	};
};

#define ADDRESS_TEXT (INET6_ADDRSTRLEN + sizeof "[]:65535")

/* A literal, v6 with or without brackets; the port becomes 0. A v4-mapped v6 address becomes the v4 one. 0 or
 * -EINVAL for anything else, names included. */
int address_parse(const char *text, struct address *ret);

/* From the 4 or 16 bytes of an A or AAAA record; v4-mapped as above. */
struct address address_from_bytes(int family, const void *bytes);

socklen_t address_size(const struct address *a);
void address_set_port(struct address *a, uint16_t port);

/* 127.0.0.0/8 and ::1. */
bool address_is_loopback(const struct address *a);

/* localhost and what is below it (RFC 6761 6.3): never asked of DNS. */
bool address_is_localhost(const char *host);

/* That, or a loopback literal. */
bool address_is_this_host(const char *host);

/* Whether the first bits bits of both are the same, and the family too. */
bool address_in_network(const struct address *a, const struct address *network, unsigned bits);

/* The same but for the port. */
bool address_same(const struct address *a, const struct address *b);

/* As 16 bytes, v4-mapped where it is v4; address_from_bytes(AF_INET6, …) is the reverse. */
#define ADDRESS_BYTES 16u
void address_to_bytes(const struct address *a, uint8_t ret[ADDRESS_BYTES]);

/* What earlier attempts to reach a host have shown of its addresses. */
struct address_history {
	bool has_good;
	bool has_bad;
	struct address good; /* of the last connection that was of use: tried first */
	struct address bad;  /* of the last attempt that failed: the next one begins after it */
};

/* "192.0.2.1:443", "[2001:db8::1]:443". Returns out. */
const char *address_format(const struct address *a, char out[ADDRESS_TEXT]);

#endif
