#include "common/no_proxy.h"

#include "common/address.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct entry {
	char host[256];
	uint16_t port; /* 0: any */
	unsigned bits; /* of a network; 0: none */
};

static bool parse_number(const char *s, unsigned most, unsigned *ret)
{
	char *end;
	unsigned long n;

	if (*s < '0' || *s > '9')
		return false;
	n = strtoul(s, &end, 10);
	if (*end != '\0' || n > most)
		return false;
	*ret = (unsigned)n;
	return true;
}

/* name, name:port, address, [v6]:port, address/bits. A colon that is not the only one belongs to a v6
 * address. */
static bool split(const char *text, size_t size, struct entry *ret)
{
	struct entry e = {0};
	char *slash, *colon;
	unsigned number;

	if (size == 0 || size >= sizeof e.host)
		return false;
	memcpy(e.host, text, size);
	slash = strchr(e.host, '/');
	if (slash) {
		*slash = '\0';
		if (!parse_number(slash + 1, 128, &e.bits))
			return false;
		*ret = e;
		return true;
	}
	colon = strrchr(e.host, ':');
	if (colon && (colon == strchr(e.host, ':') || (colon > e.host && colon[-1] == ']'))) {
		if (!parse_number(colon + 1, 65535, &number))
			return false;
		*colon = '\0';
		e.port = (uint16_t)number;
	}
	*ret = e;
	return true;
}

static size_t name_length(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && name[n - 1] == '.' ? n - 1 : n;
}

static bool name_matches(const char *pattern, const char *host)
{
	bool below_only = pattern[0] == '.' || strncmp(pattern, "*.", 2) == 0;
	size_t n, h = name_length(host);

	if (below_only)
		pattern += pattern[0] == '.' ? 1 : 2;
	n = name_length(pattern);
	if (n == 0 || n > h || strncasecmp(host + h - n, pattern, n) != 0)
		return false;
	return h == n ? !below_only : host[h - n - 1] == '.';
}

static bool entry_matches(const struct entry *e, bool network, const char *host,
			  const struct address *address, uint16_t port)
{
	struct address other;

	if (e->port != 0 && e->port != port)
		return false;
	if (strcmp(e->host, "*") == 0)
		return true;
	if (address_parse(e->host, &other) == 0) {
		unsigned whole = other.any.sa_family == AF_INET ? 32 : 128;

		return address && address_in_network(address, &other, network ? e->bits : whole);
	}
	return !network && !address && name_matches(e->host, host);
}

bool no_proxy_lists(const char *list, const char *host, uint16_t port)
{
	struct address literal;
	const struct address *address = address_parse(host, &literal) == 0 ? &literal : NULL;
	const char *p = list;

	while (*p) {
		size_t n;
		struct entry e;

		p += strspn(p, ", \t");
		n = strcspn(p, ", \t");
		if (split(p, n, &e) && entry_matches(&e, memchr(p, '/', n) != NULL, host, address, port))
			return true;
		p += n;
	}
	return false;
}

bool no_proxy_covers(const char *list, const char *host, uint16_t port)
{
	return address_is_this_host(host) || no_proxy_lists(list, host, port);
}
