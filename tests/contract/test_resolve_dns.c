/* The resolver against a small name server on loopback. */
#include "netd/resolve.h"

#include "common/fd.h"
#include "common/loop.h"
#include "tests/lib/peer.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { TYPE_A = 1, TYPE_AAAA = 28 };
enum { RCODE_SERVFAIL = 2, RCODE_NXDOMAIN = 3 };

/* What the server knows; of everything else it says NXDOMAIN. */
struct entry {
	const char *name;
	int type;
	const char *addresses[12]; /* none: NODATA */
	int rcode;
	bool silent;
	bool only_tcp; /* over UDP the answer says "truncated" */
};

/* The name of a query's question, as text; the offset behind it. */
static size_t question(const uint8_t *q, size_t size, char name[256])
{
	size_t at = 12, used = 0;

	while (at < size && q[at] != 0) {
		memcpy(name + used, q + at + 1, q[at]);
		used += q[at];
		name[used++] = '.';
		at += q[at] + 1u;
	}
	name[used > 0 ? used - 1 : 0] = '\0';
	return at + 1;
}

static size_t put_answer(uint8_t *at, int type, const char *address)
{
	static const uint8_t head[10] = {0xc0, 12, 0, 0, 0, 1, 0, 0, 0, 60};
	size_t size = type == TYPE_A ? 4 : 16;

	memcpy(at, head, sizeof head);
	at[3] = (uint8_t)type;
	at[10] = 0;
	at[11] = (uint8_t)size;
	inet_pton(type == TYPE_A ? AF_INET : AF_INET6, address, at + 12);
	return 12 + size;
}

/* The answer's size, 0: none. */
static size_t answer(const struct entry *entries, const uint8_t *q, size_t size, bool tcp, uint8_t out[2048])
{
	char name[256];
	size_t end = question(q, size, name) + 4, used = end;
	int type = q[end - 3];
	const struct entry *e = entries;

	while (e->name && (strcasecmp(e->name, name) != 0 || e->type != type))
		e++;
	if (e->name && e->silent)
		return 0;
	memcpy(out, q, end);
	memset(out + 4, 0, 8);
	out[2] = 0x81;
	out[3] = (uint8_t)(0x80 | (e->name ? e->rcode : RCODE_NXDOMAIN));
	out[5] = 1;
	if (e->name && e->only_tcp && !tcp) {
		out[2] |= 2;
		return end;
	}
	for (unsigned i = 0; e->name && e->addresses[i]; i++) {
		used += put_answer(out + used, type, e->addresses[i]);
		out[7]++;
	}
	return used;
}

static void serve_udp(int udp, const struct entry *entries)
{
	uint8_t q[512], out[2048];
	struct sockaddr_in from;
	socklen_t from_size = sizeof from;
	ssize_t n = recvfrom(udp, q, sizeof q, 0, (struct sockaddr *)&from, &from_size);
	size_t size = n > 16 ? answer(entries, q, (size_t)n, false, out) : 0;

	if (size > 0)
		sendto(udp, out, size, 0, (struct sockaddr *)&from, from_size);
}

static void serve_tcp(int listener, const struct entry *entries)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);
	uint8_t q[2 + 512], out[2 + 2048];
	size_t size;

	if (fd_read_full(fd, q, 2) != 2 || fd_read_full(fd, q + 2, q[1]) != q[1])
		return;
	size = answer(entries, q + 2, q[1], true, out + 2);
	out[0] = (uint8_t)(size >> 8);
	out[1] = (uint8_t)size;
	fd_write_full(fd, out, size + 2);
	fd_read_full(fd, q, 1);
}

/* A server on UDP and TCP, in a child that dies with the test. "127.0.0.1:port". */
static const char *name_server(const struct entry *entries)
{
	static char text[32];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint16_t port;
	FD_CLOSE int tcp = peer_listen(&port);
	FD_CLOSE int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	a.sin_port = htons(port);
	cr_assert_eq(bind(udp, (struct sockaddr *)&a, sizeof a), 0);
	snprintf(text, sizeof text, "127.0.0.1:%u", port);
	if (fork() == 0) {
		struct pollfd p[2] = {{udp, POLLIN, 0}, {tcp, POLLIN, 0}};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (poll(p, 2, 30000) > 0) {
			if (p[0].revents)
				serve_udp(udp, entries);
			if (p[1].revents)
				serve_tcp(tcp, entries);
		}
		_exit(0);
	}
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
	static const struct entry entries[] = {
	    {"relay.test", TYPE_A, {"192.0.2.1", "192.0.2.2"}, 0, false, false},
	    {"relay.test", TYPE_AAAA, {"2001:db8::1"}, 0, false, false},
	    {0},
	};
	struct asked a;

	resolve(&a, "relay.test", name_server(entries));
	cr_assert(strstr(a.text, "[2001:db8::1]:0 ") && strstr(a.text, "192.0.2.1:0 192.0.2.2:0 "), "%s",
		  a.text);
	cr_assert_null(a.why);
}

Test(resolve_dns, one_family_alone)
{
	static const struct entry entries[] = {
	    {"four.test", TYPE_A, {"192.0.2.1"}, 0, false, false},
	    {"four.test", TYPE_AAAA, {NULL}, 0, false, false},
	    {"six.test", TYPE_A, {NULL}, 0, false, false},
	    {"six.test", TYPE_AAAA, {"2001:db8::1"}, 0, false, false},
	    {0},
	};
	const char *servers = name_server(entries);
	struct asked a;

	resolve(&a, "four.test", servers);
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
	resolve(&a, "six.test.", servers);
	cr_assert_str_eq(a.text, "[2001:db8::1]:0 ");
}

/* Some servers never answer AAAA: the A record must not wait for their timeout. */
Test(resolve_dns, a_silent_family_does_not_hold_up_the_other)
{
	static const struct entry entries[] = {
	    {"relay.test", TYPE_A, {"192.0.2.1"}, 0, false, false},
	    {"relay.test", TYPE_AAAA, {NULL}, 0, true, false},
	    {0},
	};
	struct asked a;

	ask(&a, "relay.test", name_server(entries));
	while (a.calls == 0)
		cr_assert_eq(loop_pass(&a.loop, 20000), 0);
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
	cr_assert_not(a.complete);
	finish(&a);
}

Test(resolve_dns, more_addresses_than_fit_are_left_out)
{
	static const struct entry entries[] = {
	    {"relay.test",
	     TYPE_A,
	     {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5", "192.0.2.6", "192.0.2.7",
	      "192.0.2.8", "192.0.2.9"},
	     0,
	     false,
	     false},
	    {0},
	};
	struct asked a;

	resolve(&a, "relay.test", name_server(entries));
	cr_assert_not_null(strstr(a.text, "192.0.2.8:0 "));
	cr_assert_null(strstr(a.text, "192.0.2.9"));
}

Test(resolve_dns, truncated_answer_is_asked_for_over_tcp)
{
	static const struct entry entries[] = {{"relay.test", TYPE_A, {"192.0.2.1"}, 0, false, true}, {0}};
	struct asked a;

	resolve(&a, "relay.test", name_server(entries));
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
}

Test(resolve_dns, reasons_of_failure)
{
	static const struct entry entries[] = {
	    {"empty.test", TYPE_A, {NULL}, 0, false, false},
	    {"empty.test", TYPE_AAAA, {NULL}, 0, false, false},
	    {"broken.test", TYPE_A, {NULL}, RCODE_SERVFAIL, false, false},
	    {"broken.test", TYPE_AAAA, {NULL}, RCODE_SERVFAIL, false, false},
	    {0},
	};
	const char *servers = name_server(entries);
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
	static const struct entry entries[] = {{"relay.test", TYPE_A, {"192.0.2.1"}, 0, false, false}, {0}};
	char servers[64];
	uint16_t port;
	int closed = peer_listen(&port);
	struct asked a;

	close(closed);
	snprintf(servers, sizeof servers, "127.0.0.1:%u,%s", port, name_server(entries));
	resolve(&a, "relay.test", servers);
	cr_assert_str_eq(a.text, "192.0.2.1:0 ");
}

Test(resolve_dns, no_server_at_all)
{
	char servers[32];
	uint16_t port;
	int closed = peer_listen(&port);
	struct asked a;

	close(closed);
	snprintf(servers, sizeof servers, "127.0.0.1:%u", port);
	resolve(&a, "relay.test", servers);
	cr_assert_str_eq(a.why, "the name servers cannot be reached, or fail");
}

Test(resolve_dns, search_list_is_followed_family_by_family)
{
	/* AAAA of a later name must not be mixed with A of an earlier one. */
	static const struct entry entries[] = {
	    {"relay.one.test", TYPE_A, {"192.0.2.1"}, 0, false, false},
	    {"relay.one.test", TYPE_AAAA, {NULL}, 0, false, false},
	    {"relay.two.test", TYPE_AAAA, {"2001:db8::2"}, 0, false, false},
	    {"deep.relay.two.test", TYPE_A, {"192.0.2.2"}, 0, false, false},
	    {"sick.zero.test", TYPE_A, {NULL}, RCODE_SERVFAIL, false, false},
	    {"sick.one.test", TYPE_A, {"192.0.2.4"}, 0, false, false},
	    {"deep.relay", TYPE_A, {"192.0.2.3"}, 0, false, false},
	    {0},
	};
	const char *servers = name_server(entries);
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
	static const struct entry entries[] = {{"relay.test", TYPE_A, {NULL}, 0, true, false}, {0}};
	struct asked a;

	ask(&a, "relay.test", name_server(entries));
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
