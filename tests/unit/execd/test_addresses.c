#include "execd/addresses.h"

#include <criterion/criterion.h>
#include <string.h>

static void note(struct address_history *h, const char *text, bool of_use)
{
	uint8_t bytes[ADDRESS_BYTES] = {0};
	struct address a;

	if (address_parse(text, &a) == 0)
		address_to_bytes(&a, bytes);
	addresses_note(h, bytes, of_use);
}

static const char *text_of(bool has, const struct address *a)
{
	static char text[ADDRESS_TEXT];

	return has ? address_format(a, text) : "none";
}

static void expect(const struct address_history *h, const char *good, const char *bad)
{
	cr_assert_str_eq(text_of(h->has_good, &h->good), good);
	cr_assert_str_eq(text_of(h->has_bad, &h->bad), bad);
}

Test(addresses, one_that_was_of_use_is_good_until_it_fails)
{
	struct address_history h = {0};

	note(&h, "::1", false);
	expect(&h, "none", "[::1]:0");
	note(&h, "127.0.0.1", true);
	expect(&h, "127.0.0.1:0", "none");
	note(&h, "::1", false);
	expect(&h, "127.0.0.1:0", "[::1]:0");
	note(&h, "127.0.0.1", false);
	expect(&h, "none", "127.0.0.1:0");
}

Test(addresses, an_attempt_at_none_says_nothing)
{
	struct address_history h = {0};

	note(&h, "", false);
	expect(&h, "none", "none");
	note(&h, "2001:db8::1", true);
	note(&h, "", false);
	note(&h, "", true);
	expect(&h, "[2001:db8::1]:0", "none");
}
