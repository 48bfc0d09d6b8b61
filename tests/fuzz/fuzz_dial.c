/* The texts that dialling reads: a proxy's answer, NO_PROXY, a hosts file, addresses. The first byte chooses.
 */
#include "common/address.h"
#include "common/no_proxy.h"
#include "netd/proxy.h"
#include "netd/resolve.h"

#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* However the answer is cut, the verdict and the place where the tunnel begins are the same. */
static void fuzz_reply(const char *bytes, size_t size, size_t cut)
{
	struct proxy_reply whole, pieces;
	struct buf_text why;
	char text[256];
	size_t taken = 0, first = 0, more = 0;
	int verdict, in_pieces;

	buf_text_init(&why, text, sizeof text);
	proxy_reply_init(&whole);
	proxy_reply_init(&pieces);
	verdict = proxy_reply_take(&whole, bytes, size, &taken, &why);
	if (cut > size)
		cut = size;
	in_pieces = proxy_reply_take(&pieces, bytes, cut, &first, &why);
	if (in_pieces == 0) {
		MUST(first == cut);
		in_pieces = proxy_reply_take(&pieces, bytes + cut, size - cut, &more, &why);
	}
	MUST(verdict == in_pieces);
	MUST(verdict < 0 || taken == first + more);
	MUST(verdict != 0 || taken == size);
	MUST(verdict != 1 || (taken > 0 && taken <= size && bytes[taken - 1] == '\n'));
}

static void fuzz_no_proxy(char *text)
{
	char *host = strchr(text, '\n');

	if (!host)
		return;
	*host++ = '\0';
	no_proxy_lists(text, host, 443);
	if (strcmp(text, "*") == 0)
		MUST(no_proxy_lists(text, host, 443));
}

static void fuzz_hosts(char *text, size_t size)
{
	struct address list[2 * RESOLVE_PER_FAMILY];
	FILE *f = size > 0 ? fmemopen(text, size, "r") : NULL;

	if (!f)
		return;
	MUST(resolve_hosts(f, "relay", list, RESOLVE_PER_FAMILY) <= 2 * RESOLVE_PER_FAMILY);
	fclose(f);
}

/* What is printed parses to the same. */
static void fuzz_address(const char *text)
{
	struct address a, again;
	char printed[ADDRESS_TEXT];

	address_is_localhost(text);
	if (address_parse(text, &a) < 0)
		return;
	address_format(&a, printed);
	*strrchr(printed, ':') = '\0';
	MUST(address_parse(printed, &again) == 0);
	MUST(address_in_network(&a, &again, a.any.sa_family == AF_INET ? 32 : 128));
}

static void fuzz_candidates(const char *host, unsigned ndots)
{
	char first[] = "example", second[] = "a.b.c.example";
	char *const domains[] = {first, second};
	char name[256];
	unsigned n = 0;

	while (resolve_candidate(host, ndots, domains, 2, n, name)) {
		MUST(strlen(name) < sizeof name);
		n++;
	}
	MUST(n <= 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 2)
		return 0;
	text = malloc(size - 1);
	if (!text)
		return 0;
	memcpy(text, data + 2, size - 2);
	text[size - 2] = '\0';
	switch (data[0] % 5) {
	case 0:
		fuzz_reply(text, size - 2, data[1]);
		break;
	case 1:
		fuzz_no_proxy(text);
		break;
	case 2:
		fuzz_hosts(text, size - 2);
		break;
	case 3:
		fuzz_address(text);
		break;
	default:
		fuzz_candidates(text, data[1] % 8);
		break;
	}
	free(text);
	return 0;
}
