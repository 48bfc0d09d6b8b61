#include "execd/addresses.h"

#include <string.h>

void addresses_note(struct address_history *h, const uint8_t tried[ADDRESS_BYTES], bool of_use)
{
	static const uint8_t none[ADDRESS_BYTES] = {0};
	struct address a = address_from_bytes(AF_INET6, tried);

	if (memcmp(tried, none, sizeof none) == 0)
		return;
	if (of_use) {
		*h = (struct address_history){.has_good = true, .good = a};
		return;
	}
	if (h->has_good && address_same(&h->good, &a))
		h->has_good = false;
	h->has_bad = true;
	h->bad = a;
}
