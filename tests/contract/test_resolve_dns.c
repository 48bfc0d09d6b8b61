/* The resolver against a small name server on loopback. */
#include "netd/resolve.h"

#include "common/fd.h"
#include "common/loop.h"
#include "tests/lib/dns.h"
#include "tests/lib/peer.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *server_of(const struct dns_entry *entries)
{
	static char text[32];

	snprintf(text, sizeof text, "127.0.0.1:%u", dns_start(entries, 0));
	return text;
}

struct asked {
	struct loop loop;
	struct resolver *resolver;
	unsigned calls;
	bool complete;
	char text[1024];
	const char *why;
};

static void found(void *owner, const struct address *list, size_t count, bool complete, const char *why)
{
	struct asked *a = owner;
	char one[ADDRESS_TEXT];

	cr_assert_not(a->complete, "called after the last call");
	a->calls++;
	a->complete = complete;
	a->why = why;
	for (size_t i = 0; i < count; i++) {
		strcat(a->text, address_format(&list[i], one));
		strcat(a->text, " ");
	}
}

static void ask(struct asked *a, const char *host, const char *servers)
{
	*a = (struct asked){0};
	cr_assert_eq(loop_init(&a->loop), 0);
	cr_assert_eq(resolve_prepare_from(host, "/nonexistent", servers, &a->resolver), 0);
	resolve_start(a->resolver, &a->loop, found, a);
}

static void finish(struct asked *a)
{
	resolve_free(a->resolver);
	cr_assert_null(a->loop.timers);
	loop_close(&a->loop);
}

static void resolve(struct asked *a, const char *host, const char *servers)
{
	ask(a, host, servers);
	while (!a->complete)
		cr_assert_eq(loop_pass(&a->loop, 20000), 0);
	finish(a);
}

/* The machine's own search list must not matter. */
static void no_search(void)
{
	setenv("LOCALDOMAIN", "search.invalid", 1);
	setenv("RES_OPTIONS", "ndots:1", 1);
}

TestSuite(resolve_dns, .init = no_search, .timeout = 60);

Test(resolve_dns, both_families)
{
	static const struct dns_entry entries[] = {
	    {"relay.test", DNS_A, {"192.0.2.1", "192.0.2.2"}, 0, false, false},
	    {"relay.test", DNS_AAAA, {"2001:db8::1"}, 0, false, false},
	    {0},
	};
	struct asked a;

	resolve(&a, "relay.test", server_of(entries));
	cr_assert(strstr(a.text, "[2001:db8::1]:0 ") && strstr(a.text, "192.0.2.1:0 192.0.2.2:0 "), "%s",
		  a.text);
	cr_assert_null(a.why);
}

Test(resolve_dns, one_family_alone)
{
	static const struct dns_entry entries[] = {
	    {"four.test", DNS_A, {"192.0.2.1"}, 0, false, false},
	    {"four.test", DNS_AAAA, {NULL}, 0, false, false},
	    {"six.test", DNS_A, {NULL}, 0, false, false},
	    {"six.test", DNS_AAAA, {"2001:db8::1"}, 0, false, false},
	    {0},
	};
	const char *servers = server_of(entries);
	struct asked a;

	resolve(&a, "four.test", servers);
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
	resolve(&a, "six.test.", servers);
	cr_assert_str_eq(a.text, "[2001:db8::1]:0 ");
}

/* Some servers never answer AAAA: the A record must not wait for their timeout. */
Test(resolve_dns, a_silent_family_does_not_hold_up_the_other)
{
	static const struct dns_entry entries[] = {
	    {"relay.test", DNS_A, {"192.0.2.1"}, 0, false, false},
	    {"relay.test", DNS_AAAA, {NULL}, 0, true, false},
	    {0},
	};
	struct asked a;

	ask(&a, "relay.test", server_of(entries));
	while (a.calls == 0)
		cr_assert_eq(loop_pass(&a.loop, 20000), 0);
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
	cr_assert_not(a.complete);
	finish(&a);
}

/* A firewall that drops the answers to AAAA must not hide the second domain. */
Test(resolve_dns, no_such_name_of_one_family_ends_a_candidate)
{
	static const struct dns_entry entries[] = {
	    {"relay.one.test", DNS_AAAA, {NULL}, 0, true, false},
	    {"relay.two.test", DNS_AAAA, {NULL}, 0, true, false},
	    {"relay.two.test", DNS_A, {"192.0.2.1"}, 0, false, false},
	    {"box.one.test", DNS_A, {NULL}, 0, true, false},
	    {"box.two.test", DNS_A, {NULL}, 0, true, false},
	    {"none.one.test", DNS_AAAA, {NULL}, 0, true, false},
	    {"none.two.test", DNS_AAAA, {NULL}, 0, true, false},
	    {"none", DNS_A, {NULL}, 0, true, false},
	    {"box.two.test", DNS_AAAA, {"2001:db8::1"}, 0, false, false},
	    {0},
	};
	const char *servers = server_of(entries);
	struct asked a;

	setenv("LOCALDOMAIN", "one.test two.test", 1);
	ask(&a, "relay", servers);
	while (a.calls == 0)
		cr_assert_eq(loop_pass(&a.loop, 20000), 0);
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
	finish(&a);
	ask(&a, "box", servers);
	while (a.calls == 0)
		cr_assert_eq(loop_pass(&a.loop, 20000), 0);
	cr_assert_str_eq(a.text, "[2001:db8::1]:0 ");
	finish(&a);
	resolve(&a, "none", servers);
	cr_assert_str_eq(a.why, "no such name");
}

/* RFC 4074 4.2: such servers are about, and the A may be the later answer. */
Test(resolve_dns, no_such_name_of_one_family_does_not_hide_the_other)
{
	static const struct dns_entry entries[] = {
	    {"relay.test", DNS_A, {"192.0.2.1"}, 0, false, false},
	    {"relay.test", DNS_AAAA, {NULL}, DNS_NXDOMAIN, false, false},
	    {0},
	};
	struct asked a;

	resolve(&a, "relay.test", server_of(entries));
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
}

Test(resolve_dns, more_addresses_than_fit_are_left_out)
{
	static const struct dns_entry entries[] = {
	    {"relay.test",
	     DNS_A,
	     {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5", "192.0.2.6", "192.0.2.7",
	      "192.0.2.8", "192.0.2.9"},
	     0,
	     false,
	     false},
	    {0},
	};
	struct asked a;

	resolve(&a, "relay.test", server_of(entries));
	cr_assert_not_null(strstr(a.text, "192.0.2.8:0 "));
	cr_assert_null(strstr(a.text, "192.0.2.9"));
}

Test(resolve_dns, truncated_answer_is_asked_for_over_tcp)
{
	static const struct dns_entry entries[] = {{"relay.test", DNS_A, {"192.0.2.1"}, 0, false, true}, {0}};
	struct asked a;

	resolve(&a, "relay.test", server_of(entries));
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
}

Test(resolve_dns, reasons_of_failure)
{
	static const struct dns_entry entries[] = {
	    {"empty.test", DNS_A, {NULL}, 0, false, false},
	    {"empty.test", DNS_AAAA, {NULL}, 0, false, false},
	    {"broken.test", DNS_A, {NULL}, DNS_SERVFAIL, false, false},
	    {"broken.test", DNS_AAAA, {NULL}, DNS_SERVFAIL, false, false},
	    {0},
	};
	const char *servers = server_of(entries);
	struct asked a;

	resolve(&a, "nowhere.test", servers);
	cr_assert_str_eq(a.why, "no such name");
	cr_assert_eq(a.calls, 1);
	resolve(&a, "empty.test", servers);
	cr_assert_str_eq(a.why, "the name has no address");
	resolve(&a, "broken.test", servers);
	cr_assert_str_eq(a.why, "the name servers cannot be reached, or fail");
	resolve(&a, "bad..name", servers);
	cr_assert_str_eq(a.why, "not a valid name");
}

Test(resolve_dns, dead_first_server_is_passed_over)
{
	static const struct dns_entry entries[] = {{"relay.test", DNS_A, {"192.0.2.1"}, 0, false, false},
						   {0}};
	char servers[64];
	uint16_t port = 0;
	int closed = peer_listen(&port);
	struct asked a;

	close(closed);
	snprintf(servers, sizeof servers, "127.0.0.1:%u,%s", port, server_of(entries));
	resolve(&a, "relay.test", servers);
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
}

Test(resolve_dns, no_server_at_all)
{
	char servers[32];
	uint16_t port = 0;
	int closed = peer_listen(&port);
	struct asked a;

	close(closed);
	snprintf(servers, sizeof servers, "127.0.0.1:%u", port);
	resolve(&a, "relay.test", servers);
	/* c-ares takes the refusal for an answer to one query, and the other runs into its timeout. */
	cr_assert(a.why && strncmp(a.why, "the name servers ", 17) == 0, "%s", a.why);
}

Test(resolve_dns, search_list_is_followed_family_by_family)
{
	/* AAAA of a later name must not be mixed with A of an earlier one. */
	static const struct dns_entry entries[] = {
	    {"relay.one.test", DNS_A, {"192.0.2.1"}, 0, false, false},
	    {"relay.one.test", DNS_AAAA, {NULL}, 0, false, false},
	    {"relay.two.test", DNS_AAAA, {"2001:db8::2"}, 0, false, false},
	    {"deep.relay.two.test", DNS_A, {"192.0.2.2"}, 0, false, false},
	    {"sick.zero.test", DNS_A, {NULL}, DNS_SERVFAIL, false, false},
	    {"sick.one.test", DNS_A, {"192.0.2.4"}, 0, false, false},
	    {"deep.relay", DNS_A, {"192.0.2.3"}, 0, false, false},
	    {0},
	};
	const char *servers = server_of(entries);
	struct asked a;

	setenv("LOCALDOMAIN", "zero.test one.test two.test", 1);
	resolve(&a, "relay", servers);
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
	resolve(&a, "deep.relay", servers);
	cr_assert_str_eq(a.text, "192.0.2.3:0 ");
	resolve(&a, "sick", servers);
	cr_assert_str_eq(a.text, "192.0.2.4:0 ");
	setenv("RES_OPTIONS", "ndots:2", 1);
	resolve(&a, "deep.relay", servers);
	cr_assert_str_eq(a.text, "192.0.2.2:0 ");
}

Test(resolve_dns, freeing_it_half_way_leaves_nothing_behind)
{
	static const struct dns_entry entries[] = {{"relay.test", DNS_A, {NULL}, 0, true, false}, {0}};
	struct asked a;

	ask(&a, "relay.test", server_of(entries));
	cr_assert_eq(loop_pass(&a.loop, 1000), 0);
	cr_assert_eq(loop_pass(&a.loop, 1000), 0);
	finish(&a);
	cr_assert_eq(a.calls, 0);
}

Test(resolve_dns, hosts_file_spares_the_question)
{
	char path[] = "/tmp/netd-hosts-XXXXXX";
	FD_CLOSE int fd = mkstemp(path);
	struct asked a = {0};

	cr_assert_eq(fd_write_full(fd, "192.0.2.5 relay.test\n", 21), 0);
	cr_assert_eq(loop_init(&a.loop), 0);
	cr_assert_eq(resolve_prepare_from("relay.test", path, "127.0.0.1:1", &a.resolver), 0);
	unlink(path);
	resolve_start(a.resolver, &a.loop, found, &a);
	cr_assert_eq(loop_pass(&a.loop, 1000), 0);
	cr_assert(a.complete);
	cr_assert_str_eq(a.text, "192.0.2.5:0 ");
	finish(&a);
}
