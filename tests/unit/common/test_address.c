#include "common/address.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct address parsed(const char *text)
{
	struct address a;

	cr_assert_eq(address_parse(text, &a), 0, "%s", text);
	return a;
}

Test(address, parses_literals_and_prints_them_with_a_port)
{
	static const struct {
		const char *text, *printed;
	} cases[] = {
	    {"192.0.2.1", "192.0.2.1:443"},           {"2001:db8::1", "[2001:db8::1]:443"},
	    {"[2001:DB8:0::1]", "[2001:db8::1]:443"}, {"::", "[::]:443"},
	    {"::ffff:192.0.2.1", "192.0.2.1:443"},
	};
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct address a = parsed(cases[i].text);

		address_set_port(&a, 443);
		cr_assert_str_eq(address_format(&a, text), cases[i].printed);
	}
}

Test(address, refuses_what_is_not_a_literal)
{
	static const char *const cases[] = {
	    "",
	    "localhost",
	    "192.0.2",
	    "192.0.2.256",
	    "0x7f.0.0.1",
	    "[192.0.2.1]",
	    "[::1",
	    "::1]",
	    "[]",
	    "2001:db8::1:443:",
	    "fe80::1%lo",
	    "1.2.3.4:80",
	    "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc",
	};
	struct address a;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		cr_assert_eq(address_parse(cases[i], &a), -EINVAL, "%s", cases[i]);
}

Test(address, knows_loopback)
{
	static const char *const yes[] = {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"};
	static const char *const no[] = {"126.255.255.255", "128.0.0.1", "::", "::2", "0.0.0.0"};
	struct address a;

	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
		a = parsed(yes[i]);
		cr_assert(address_is_loopback(&a), "%s", yes[i]);
	}
	for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
		a = parsed(no[i]);
		cr_assert_not(address_is_loopback(&a), "%s", no[i]);
	}
}

Test(address, knows_localhost_and_what_is_below_it)
{
	static const char *const yes[] = {"localhost", "LocalHost.", "a.localhost", "a.b.localhost."};
	static const char *const no[] = {"",         ".",       "localhost.example", "notlocalhost",
					 "localhos", "ocalhost"};

	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
		cr_assert(address_is_localhost(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		cr_assert_not(address_is_localhost(no[i]), "%s", no[i]);
}

Test(address, knows_this_host_by_name_and_by_literal)
{
	cr_assert(address_is_this_host("localhost"));
	cr_assert(address_is_this_host("127.0.0.1"));
	cr_assert(address_is_this_host("[::1]"));
	cr_assert_not(address_is_this_host("127.0.0.1.example"));
	cr_assert_not(address_is_this_host("192.0.2.1"));
}

Test(address, compares_any_number_of_leading_bits)
{
	static const struct {
		const char *address, *network;
		unsigned bits;
		bool in;
	} cases[] = {
	    {"10.1.2.3", "10.0.0.0", 8, true},          {"11.1.2.3", "10.0.0.0", 8, false},
	    {"10.1.2.3", "10.1.2.2", 31, true},         {"10.1.2.3", "10.1.2.2", 32, false},
	    {"10.1.2.3", "0.0.0.0", 0, true},           {"10.1.2.3", "10.1.2.3", 33, false},
	    {"2001:db8::1", "2001:db8::", 32, true},    {"2001:db9::1", "2001:db8::", 32, false},
	    {"2001:db9::1", "2001:db8::", 31, true},    {"2001:db8::1", "2001:db8::1", 128, true},
	    {"2001:db8::1", "2001:db8::1", 129, false}, {"10.1.2.3", "::", 0, false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct address a = parsed(cases[i].address), n = parsed(cases[i].network);

		cr_assert_eq(address_in_network(&a, &n, cases[i].bits), cases[i].in, "%s in %s/%u",
			     cases[i].address, cases[i].network, cases[i].bits);
	}
}
