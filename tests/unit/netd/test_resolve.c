#include "netd/resolve.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const char *hosts_say(const char *file, const char *host)
{
	static char text[1024];
	char one[ADDRESS_TEXT];
	struct address list[2 * RESOLVE_PER_FAMILY];
	FILE *f = fmemopen((void *)(uintptr_t)file, strlen(file), "r");
	size_t n = resolve_hosts(f, host, list, RESOLVE_PER_FAMILY);

	fclose(f);
	text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		strcat(text, address_format(&list[i], one));
		strcat(text, " ");
	}
	return text;
}

Test(resolve, hosts_file_gives_all_addresses_of_a_name)
{
	static const char file[] = "# comment relay\n"
				   "192.0.2.1\trelay relay.example # other\n"
				   "  2001:db8::1 Relay.Example.\n"
				   "192.0.2.2 other\n"
				   "not-an-address relay\n"
				   "192.0.2.3\n"
				   "192.0.2.4 x y relay";

	cr_assert_str_eq(hosts_say(file, "relay"), "192.0.2.1:0 192.0.2.4:0 ");
	cr_assert_str_eq(hosts_say(file, "relay.example"), "192.0.2.1:0 [2001:db8::1]:0 ");
	cr_assert_str_eq(hosts_say(file, "RELAY."), "192.0.2.1:0 192.0.2.4:0 ");
	cr_assert_str_eq(hosts_say(file, "elay"), "");
	cr_assert_str_eq(hosts_say(file, "192.0.2.3"), "");
}

Test(resolve, hosts_file_with_more_than_fit)
{
	char file[4096] = "";
	char line[64];
	struct address list[2 * RESOLVE_PER_FAMILY];
	FILE *f;

	for (unsigned i = 1; i <= RESOLVE_PER_FAMILY + 1; i++) {
		snprintf(line, sizeof line, "192.0.2.%u relay\n2001:db8::%u relay\n", i, i);
		strcat(file, line);
	}
	f = fmemopen(file, strlen(file), "r");
	cr_assert_eq(resolve_hosts(f, "relay", list, RESOLVE_PER_FAMILY), 2 * RESOLVE_PER_FAMILY);
	fclose(f);
}

static const char *candidates(const char *host, unsigned ndots)
{
	static char domain1[] = "a.example", domain2[] = "example";
	static char *const domains[] = {domain1, domain2};
	static char text[1024];
	char name[256];

	text[0] = '\0';
	for (unsigned n = 0; resolve_candidate(host, ndots, domains, 2, n, name); n++) {
		strcat(text, name);
		strcat(text, " ");
	}
	return text;
}

Test(resolve, search_list_follows_ndots)
{
	cr_assert_str_eq(candidates("relay", 1), "relay.a.example relay.example relay ");
	cr_assert_str_eq(candidates("relay.ns", 1), "relay.ns relay.ns.a.example relay.ns.example ");
	cr_assert_str_eq(candidates("relay.ns.svc", 5),
			 "relay.ns.svc.a.example relay.ns.svc.example relay.ns.svc ");
	cr_assert_str_eq(candidates("relay.ns.", 5), "relay.ns. ");
	cr_assert_str_eq(candidates("relay", 0), "relay relay.a.example relay.example ");
}

Test(resolve, a_candidate_that_would_be_too_long_is_empty)
{
	static char domain[] = "example";
	char *domains[] = {domain};
	char host[260], name[256];

	memset(host, 'a', sizeof host);
	host[247] = '\0'; /* 247 + 1 + 7 = 255 */
	cr_assert(resolve_candidate(host, 1, domains, 1, 0, name));
	cr_assert_eq(strlen(name), 255);
	host[247] = 'a';
	host[248] = '\0';
	cr_assert(resolve_candidate(host, 1, domains, 1, 0, name));
	cr_assert_str_eq(name, "");
	cr_assert(resolve_candidate(host, 1, domains, 1, 1, name));
	cr_assert_str_eq(name, host);
	memset(host, 'a', sizeof host);
	host[256] = '\0';
	cr_assert_not(resolve_candidate(host, 1, domains, 1, 0, name));
}

struct told {
	unsigned calls;
	char text[512];
	bool complete;
	const char *why;
};

static void found(void *owner, const struct address *list, size_t count, bool complete, const char *why)
{
	struct told *t = owner;
	char one[ADDRESS_TEXT];

	t->calls++;
	t->complete = complete;
	t->why = why;
	for (size_t i = 0; i < count; i++) {
		strcat(t->text, address_format(&list[i], one));
		strcat(t->text, " ");
	}
}

static struct told resolve(const char *host)
{
	struct told t = {0};
	struct resolver *r;
	struct loop loop;

	cr_assert_eq(resolve_prepare_from(host, "/nonexistent", "127.0.0.1:1", &r), 0);
	cr_assert_eq(loop_init(&loop), 0);
	resolve_start(r, &loop, found, &t);
	cr_assert_eq(t.calls, 0);
	cr_assert_eq(loop_pass(&loop, 1000), 0);
	resolve_free(r);
	cr_assert_null(loop.timers);
	loop_close(&loop);
	return t;
}

Test(resolve, literals_and_localhost_need_no_dns)
{
	static const struct {
		const char *host, *addresses;
	} cases[] = {
	    {"192.0.2.7", "192.0.2.7:0 "},
	    {"[2001:db8::7]", "[2001:db8::7]:0 "},
	    {"2001:db8::7", "[2001:db8::7]:0 "},
	    {"localhost", "[::1]:0 127.0.0.1:0 "},
	    {"x.localhost.", "[::1]:0 127.0.0.1:0 "},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct told t = resolve(cases[i].host);

		cr_assert_eq(t.calls, 1);
		cr_assert(t.complete);
		cr_assert_null(t.why);
		cr_assert_str_eq(t.text, cases[i].addresses);
	}
}

Test(resolve, a_name_that_is_too_long_is_told_so)
{
	char host[300];
	struct told t;

	memset(host, 'a', sizeof host);
	host[256] = '\0';
	t = resolve(host);
	cr_assert_eq(t.calls, 1);
	cr_assert(t.complete);
	cr_assert_str_eq(t.why, "the name is too long");
}
