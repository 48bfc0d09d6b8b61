#include "common/no_proxy.h"

#include <criterion/criterion.h>
#include <string.h>

Test(no_proxy, names_names_addresses_and_networks)
{
	static const struct {
		const char *list, *host;
		uint16_t port;
		bool excluded;
	} cases[] = {
	    {"", "relay.example.com", 443, false},
	    {"*", "relay.example.com", 443, true},
	    {"*", "192.0.2.1", 443, true},
	    {" , ,*", "relay.example.com", 443, true},
	    {"example.com", "example.com", 443, true},
	    {"example.com", "relay.example.com", 443, true},
	    {"example.com", "relay.notexample.com", 443, false},
	    {"example.com", "example.com.evil", 443, false},
	    {"EXAMPLE.com", "relay.example.COM.", 443, true},
	    {"example.com.", "relay.example.com", 443, true},
	    {".example.com", "relay.example.com", 443, true},
	    {".example.com", "example.com", 443, false},
	    {"*.example.com", "relay.example.com", 443, true},
	    {"*.example.com", "example.com", 443, false},
	    {"*example.com", "relay.example.com", 443, false},
	    {"example.com:443", "relay.example.com", 443, true},
	    {"example.com:444", "relay.example.com", 443, false},
	    {"example.com:65536", "relay.example.com", 443, false},
	    {"example.com:x", "relay.example.com", 443, false},
	    {"other, example.com ,third", "relay.example.com", 443, true},
	    {"other example.com", "relay.example.com", 443, true},
	    {"192.0.2.1", "192.0.2.1", 443, true},
	    {"192.0.2.1", "192.0.2.10", 443, false},
	    {"192.0.2.1:443", "192.0.2.1", 443, true},
	    {"192.0.2.1:80", "192.0.2.1", 443, false},
	    {"192.0.2.0/24", "192.0.2.77", 443, true},
	    {"192.0.2.0/24", "192.0.3.77", 443, false},
	    {"192.0.2.0/24", "relay.example.com", 443, false},
	    {"192.0.2.0/33", "192.0.2.0", 443, false},
	    {"192.0.2.0/", "192.0.2.0", 443, false},
	    {"0.0.0.0/0", "192.0.2.1", 443, true},
	    {"0.0.0.0/0", "2001:db8::1", 443, false},
	    {"2001:db8::/32", "2001:db8:1::1", 443, true},
	    {"2001:db8::/32", "2001:db9::1", 443, false},
	    {"2001:db8::1", "2001:db8::1", 443, true},
	    {"2001:db8::1", "[2001:db8::1]", 443, true},
	    {"[2001:db8::1]:443", "2001:db8::1", 443, true},
	    {"[2001:db8::1]:444", "2001:db8::1", 443, false},
	    {"2001:0DB8:0::1", "2001:db8::1", 443, true},
	    {"0.2.1", "192.0.2.1", 443, false},
	    {".", "relay.example.com", 443, false},
	    {"example.com/8", "example.com", 443, false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		cr_assert_eq(no_proxy_lists(cases[i].list, cases[i].host, cases[i].port), cases[i].excluded,
			     "NO_PROXY=%s %s:%u", cases[i].list, cases[i].host, cases[i].port);
}

Test(no_proxy, an_entry_longer_than_any_name_is_ignored)
{
	char list[600];

	memset(list, 'a', sizeof list);
	strcpy(list + 300, ",example.com");
	cr_assert(no_proxy_lists(list, "example.com", 443));
}

Test(no_proxy, covers_this_host_without_being_asked)
{
	static const char *const local[] = {"localhost", "a.localhost", "127.9.9.9", "::1", "[::1]"};

	for (size_t i = 0; i < sizeof local / sizeof *local; i++)
		cr_assert(no_proxy_covers("", local[i], 443), "%s", local[i]);
	cr_assert_not(no_proxy_covers("", "relay.example.com", 443));
	cr_assert_not(no_proxy_covers("other", "192.0.2.1", 443));
	cr_assert(no_proxy_covers("192.0.2.0/24", "192.0.2.1", 443));
}
