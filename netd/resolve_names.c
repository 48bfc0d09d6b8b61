/* What can be said of a name without asking DNS. */
#include "netd/resolve.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool same_name(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	n -= n > 0 && a[n - 1] == '.';
	m -= m > 0 && b[m - 1] == '.';
	return n == m && strncasecmp(a, b, n) == 0;
}

size_t resolve_hosts(FILE *hosts, const char *host, struct address *list, size_t max_per_family)
{
	char *line = NULL;
	size_t size = 0, count = 0, v4 = 0, v6 = 0;

	while (getline(&line, &size, hosts) >= 0) {
		char *rest = NULL, *word;
		struct address a;
		size_t *of_family;

		line[strcspn(line, "#\r\n")] = '\0';
		word = strtok_r(line, " \t", &rest);
		if (!word || address_parse(word, &a) < 0)
			continue;
		of_family = a.any.sa_family == AF_INET ? &v4 : &v6;
		while ((word = strtok_r(NULL, " \t", &rest)) && !same_name(word, host))
			;
		if (!word || *of_family == max_per_family)
			continue;
		++*of_family;
		list[count++] = a;
	}
	free(line);
	return count;
}

bool resolve_candidate(const char *host, unsigned ndots, char *const *domains, unsigned count, unsigned n,
		       char out[RESOLVE_NAME])
{
	size_t length = strlen(host);
	bool absolute = length > 0 && host[length - 1] == '.';
	unsigned dots = 0;
	bool bare_first;

	for (const char *p = host; *p; p++)
		dots += *p == '.';
	bare_first = absolute || dots >= ndots;
	if (n > (absolute ? 0 : count) || length >= (int)RESOLVE_NAME)
		return false;
	if (n == (bare_first ? 0 : count)) {
		memcpy(out, host, length + 1);
		return true;
	}
	/* One that becomes too long cannot exist: out says so to DNS by being empty, and the next one is
	 * tried. */
	if (snprintf(out, RESOLVE_NAME, "%s.%s", host, domains[n - bare_first]) >= (int)RESOLVE_NAME)
		out[0] = '\0';
	return true;
}
