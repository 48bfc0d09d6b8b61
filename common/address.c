#include "common/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct address address_from_bytes(int family, const void *bytes)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *b = bytes;
	struct address a = {0};

	if (family == AF_INET6 && memcmp(b, mapped, sizeof mapped) == 0) {
		family = AF_INET;
		b += sizeof mapped;
	}
	a.any.sa_family = (sa_family_t)family;
	if (family == AF_INET)
		memcpy(&a.in4.sin_addr, b, 4);
	else
		memcpy(&a.in6.sin6_addr, b, 16);
	return a;
}

int address_parse(const char *text, struct address *ret)
{
	char inner[INET6_ADDRSTRLEN];
	size_t n = strlen(text);
	bool brackets = n >= 2 && text[0] == '[' && text[n - 1] == ']';
	uint8_t bytes[16];

	if (brackets) {
		text++;
		n -= 2;
	}
	if (n >= sizeof inner)
		return -EINVAL;
	memcpy(inner, text, n);
	inner[n] = '\0';
	if (inet_pton(AF_INET6, inner, bytes) == 1)
		*ret = address_from_bytes(AF_INET6, bytes);
	else if (!brackets && inet_pton(AF_INET, inner, bytes) == 1)
		*ret = address_from_bytes(AF_INET, bytes);
	else
		return -EINVAL;
	return 0;
}

socklen_t address_size(const struct address *a)
{
	return a->any.sa_family == AF_INET ? sizeof a->in4 : sizeof a->in6;
}

void address_set_port(struct address *a, uint16_t port)
{
	if (a->any.sa_family == AF_INET)
		a->in4.sin_port = htons(port);
	else
		a->in6.sin6_port = htons(port);
}

static const uint8_t *bytes_of(const struct address *a)
{
	return a->any.sa_family == AF_INET ? (const uint8_t *)&a->in4.sin_addr : a->in6.sin6_addr.s6_addr;
}

bool address_is_loopback(const struct address *a)
{
	static const uint8_t one[16] = {[15] = 1};
	const uint8_t *b = bytes_of(a);

	return a->any.sa_family == AF_INET ? b[0] == 127 : memcmp(b, one, sizeof one) == 0;
}

bool address_is_localhost(const char *host)
{
	size_t n = strlen(host);

	if (n > 0 && host[n - 1] == '.')
		n--;
	return n >= 9 && strncasecmp(host + n - 9, "localhost", 9) == 0 && (n == 9 || host[n - 10] == '.');
}

bool address_is_this_host(const char *host)
{
	struct address literal;

	if (address_parse(host, &literal) == 0)
		return address_is_loopback(&literal);
	return address_is_localhost(host);
}

bool address_in_network(const struct address *a, const struct address *network, unsigned bits)
{
	const uint8_t *x = bytes_of(a), *y = bytes_of(network);
	unsigned whole = bits / 8;
	uint8_t mask = (uint8_t)(0xff00u >> bits % 8);

	if (a->any.sa_family != network->any.sa_family || bits > (a->any.sa_family == AF_INET ? 32u : 128u))
		return false;
	return memcmp(x, y, whole) == 0 && (mask == 0 || ((x[whole] ^ y[whole]) & mask) == 0);
}

bool address_same(const struct address *a, const struct address *b)
{
	return address_in_network(a, b, b->any.sa_family == AF_INET ? 32 : 128);
}

void address_to_bytes(const struct address *a, uint8_t ret[ADDRESS_BYTES])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool v4 = a->any.sa_family == AF_INET;

	if (v4)
		memcpy(ret, mapped, sizeof mapped);
	memcpy(ret + (v4 ? sizeof mapped : 0), bytes_of(a), v4 ? 4 : ADDRESS_BYTES);
}

const char *address_format(const struct address *a, char out[ADDRESS_TEXT])
{
	char ip[INET6_ADDRSTRLEN];

	if (!inet_ntop(a->any.sa_family, bytes_of(a), ip, sizeof ip))
		ip[0] = '\0';
	if (a->any.sa_family == AF_INET)
		snprintf(out, ADDRESS_TEXT, "%s:%u", ip, ntohs(a->in4.sin_port));
	else
		snprintf(out, ADDRESS_TEXT, "[%s]:%u", ip, ntohs(a->in6.sin6_port));
	return out;
}
