#include "netd/resolve.h"

#include "common/clock.h"

#define CARES_NO_DEPRECATED
#include <ares.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_PATH       "/etc/hosts"
#define SOCKETS          32
#define DOMAINS          8u
#define QUERY_TIMEOUT_MS 2000 /* the first round; c-ares doubles it each round */
#define QUERY_TRIES      3
#define OTHER_FAMILY_MS  1000u /* once one family says that there is no such name */

struct query {
	struct resolver *resolver;
	int family;
	bool pending;
	int status; /* ARES_* */
	struct address list[RESOLVE_PER_FAMILY];
	unsigned count;
};

struct resolver {
	struct loop *loop;
	char host[RESOLVE_NAME];
	struct address known[2 * RESOLVE_PER_FAMILY]; /* found without DNS */
	size_t known_count;
	const char *failed; /* why DNS cannot be asked */
	ares_channel ares;
	bool ares_up;
	char *domains[DOMAINS];
	unsigned domain_count;
	unsigned ndots;
	unsigned next_candidate;
	bool answered;
	int worst; /* ARES_*, by weight() */
	struct query queries[2];
	struct loop_source sockets[SOCKETS];
	struct loop_timer timeout;
	struct loop_timer other_family;
	struct loop_timer first;
	void (*found)(void *owner, const struct address *list, size_t count, bool complete, const char *why);
	void *owner;
};

static void socket_changed(void *data, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = data;
	uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
	struct loop_source *unused = NULL;

	for (unsigned i = 0; i < SOCKETS; i++) {
		struct loop_source *s = &r->sockets[i];

		if (s->fd < 0)
			unused = s;
		if (s->fd != fd)
			continue;
		if (events != 0) {
			loop_mod(r->loop, s, events);
			return;
		}
		loop_del(r->loop, s);
		s->fd = -1;
		return;
	}
	/* One that finds no place is not watched: its query runs into its timeout. */
	if (events == 0 || !unused)
		return;
	unused->fd = fd;
	if (loop_add(r->loop, unused, events) < 0)
		unused->fd = -1;
}

/* resolv.conf's search list and ndots: we ask for each name ourselves, A and AAAA apart. */
static void take_search(struct resolver *r)
{
	struct ares_options o = {0};
	int mask = 0;

	r->ndots = 1;
	if (ares_save_options(r->ares, &o, &mask) != ARES_SUCCESS)
		return;
	if (o.ndots >= 0 && (mask & ARES_OPT_NDOTS))
		r->ndots = (unsigned)o.ndots;
	for (int i = 0; i < o.ndomains && r->domain_count < DOMAINS; i++) {
		char *copy = strdup(o.domains[i]);

		if (copy)
			r->domains[r->domain_count++] = copy;
	}
	ares_destroy_options(&o);
}

static void prepare_dns(struct resolver *r, const char *servers)
{
	char lookups[] = "b";
	struct ares_options o = {
	    .timeout = QUERY_TIMEOUT_MS,
	    .tries = QUERY_TRIES,
	    .lookups = lookups,
	    .sock_state_cb = socket_changed,
	    .sock_state_cb_data = r,
	};
	int status = ares_library_init(ARES_LIB_INIT_ALL);

	if (status == ARES_SUCCESS)
		status = ares_init_options(&r->ares, &o,
					   ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
					       ARES_OPT_SOCK_STATE_CB);
	r->ares_up = status == ARES_SUCCESS;
	if (r->ares_up && servers)
		status = ares_set_servers_ports_csv(r->ares, servers);
	if (status != ARES_SUCCESS)
		r->failed = ares_strerror(status);
	else
		take_search(r);
}

static void prepare_localhost(struct resolver *r)
{
	address_parse("::1", &r->known[0]);
	address_parse("127.0.0.1", &r->known[1]);
	r->known_count = 2;
}

static void read_hosts(struct resolver *r, const char *path)
{
	FILE *f = fopen(path, "re");

	if (!f)
		return;
	r->known_count = resolve_hosts(f, r->host, r->known, RESOLVE_PER_FAMILY);
	fclose(f);
}

int resolve_prepare_from(const char *host, const char *hosts_path, const char *servers, struct resolver **ret)
{
	struct resolver *r = calloc(1, sizeof *r);

	if (!r)
		return -ENOMEM;
	*ret = r;
	for (unsigned i = 0; i < SOCKETS; i++)
		r->sockets[i].fd = -1;
	if (strlen(host) >= sizeof r->host) {
		r->failed = "the name is too long";
		return 0;
	}
	strcpy(r->host, host);
	if (address_parse(host, &r->known[0]) == 0)
		r->known_count = 1;
	else if (address_is_localhost(host))
		prepare_localhost(r);
	else
		read_hosts(r, hosts_path);
	if (r->known_count == 0)
		prepare_dns(r, servers);
	return 0;
}

int resolve_prepare(const char *host, struct resolver **ret)
{
	return resolve_prepare_from(host, HOSTS_PATH, NULL, ret);
}

static void query_done(void *arg, int status, int timeouts, unsigned char *answer, int size)
{
	struct query *q = arg;
	struct ares_addrttl a[RESOLVE_PER_FAMILY];
	struct ares_addr6ttl aaaa[RESOLVE_PER_FAMILY];
	int count = RESOLVE_PER_FAMILY;

	(void)timeouts;
	q->pending = false;
	q->status = status;
	if (status != ARES_SUCCESS)
		return;
	if (q->family == AF_INET)
		q->status = ares_parse_a_reply(answer, size, NULL, a, &count);
	else
		q->status = ares_parse_aaaa_reply(answer, size, NULL, aaaa, &count);
	if (q->status != ARES_SUCCESS)
		return;
	for (int i = 0; i < count; i++)
		q->list[q->count++] = q->family == AF_INET ? address_from_bytes(AF_INET, &a[i].ipaddr)
							   : address_from_bytes(AF_INET6, &aaaa[i].ip6addr);
	if (count == 0)
		q->status = ARES_ENODATA;
}

/* How much a status says about why nothing was found. */
static int weight(int status)
{
	switch (status) {
	case ARES_SUCCESS:
		return 0;
	case ARES_EBADNAME:
		return 1;
	case ARES_ENOTFOUND:
		return 2;
	case ARES_ENODATA:
		return 3;
	default:
		return 4;
	}
}

static bool is_no_such_name(const struct query *q)
{
	return !q->pending && q->status == ARES_ENOTFOUND;
}

static void note(struct resolver *r, int status)
{
	if (weight(status) > weight(r->worst))
		r->worst = status;
}

/* Asks for the next candidate's AAAA and A; skips one that is answered at once with nothing. False: none is
 * left. */
static bool ask_next(struct resolver *r)
{
	static const int families[2] = {AF_INET6, AF_INET};
	char name[RESOLVE_NAME];

	if (!resolve_candidate(r->host, r->ndots, r->domains, r->domain_count, r->next_candidate, name))
		return false;
	r->next_candidate++;
	for (unsigned i = 0; i < 2; i++) {
		r->queries[i] = (struct query){.resolver = r, .family = families[i], .pending = true};
		ares_query(r->ares, name, 1 /* IN */, families[i] == AF_INET ? 1 /* A */ : 28 /* AAAA */,
			   query_done, &r->queries[i]);
	}
	return true;
}

static void arm_timeout(struct resolver *r)
{
	struct timeval tv;

	if (!ares_timeout(r->ares, NULL, &tv)) {
		loop_timer_stop(r->loop, &r->timeout);
		return;
	}
	loop_timer_set(r->loop, &r->timeout,
		       clock_now_ms() + (uint64_t)tv.tv_sec * 1000u + (uint64_t)tv.tv_usec / 1000u + 1u);
}

/* Both families of a candidate are done, without an address. As the C library does: a name that one family
 * knows to be none is none, whatever the other says (RFC 8020), a failing server does not end the search, a
 * silent one does. c-ares 1.18 says that it could not reach a server also when all of them answered SERVFAIL.
 */
static bool search_goes_on(struct resolver *r)
{
	const struct query *v6 = &r->queries[0], *v4 = &r->queries[1];

	if (is_no_such_name(v6) || is_no_such_name(v4)) {
		note(r, ARES_ENOTFOUND);
		return true;
	}
	note(r, v6->status);
	note(r, v4->status);
	return v6->status != ARES_ETIMEOUT && v4->status != ARES_ETIMEOUT && v6->status != ARES_ENOMEM &&
	       v4->status != ARES_ENOMEM;
}

/* Not at once: some servers say of a name that has only an A that it does not exist when they are asked for
 * AAAA (RFC 4074 4.2), and the A may be on its way. */
static void watch_other_family(struct resolver *r)
{
	const struct query *v6 = &r->queries[0], *v4 = &r->queries[1];
	bool waits =
	    !r->answered && v6->pending != v4->pending && (is_no_such_name(v6) || is_no_such_name(v4));

	if (!waits)
		loop_timer_stop(r->loop, &r->other_family);
	else if (!r->other_family.armed)
		loop_timer_set(r->loop, &r->other_family, clock_now_ms() + OTHER_FAMILY_MS);
}

static const char *words(int status)
{
	switch (status) {
	case ARES_ENOTFOUND:
		return "no such name";
	case ARES_ENODATA:
		return "the name has no address";
	case ARES_EBADNAME:
		return "not a valid name";
	case ARES_ETIMEOUT:
		return "the name servers do not answer";
	case ARES_ECONNREFUSED:
	case ARES_ESERVFAIL:
		return "the name servers cannot be reached, or fail";
	default:
		return ares_strerror(status);
	}
}

static void tell(struct resolver *r, struct query *q)
{
	unsigned count = q->count;

	if (count == 0)
		return;
	q->count = 0;
	r->answered = true;
	r->found(r->owner, q->list, count, false, NULL);
}

/* After c-ares had its turn. Its callbacks only record, because it must not be called from within them. */
static void advance(struct resolver *r)
{
	struct query *v6 = &r->queries[0], *v4 = &r->queries[1];

	while (!r->answered && !v6->pending && !v4->pending && v6->count == 0 && v4->count == 0) {
		loop_timer_stop(r->loop, &r->other_family);
		if (search_goes_on(r) && ask_next(r))
			continue;
		loop_timer_stop(r->loop, &r->timeout);
		r->found(r->owner, NULL, 0, true, words(r->worst));
		return;
	}
	arm_timeout(r);
	tell(r, v6);
	tell(r, v4);
	watch_other_family(r);
	if (!v6->pending && !v4->pending && r->answered)
		r->found(r->owner, NULL, 0, true, NULL);
}

static void socket_ready(struct loop_source *source, uint32_t events)
{
	struct resolver *r = source->owner;
	ares_socket_t fd = source->fd;

	ares_process_fd(r->ares, events & ~(uint32_t)EPOLLOUT ? fd : ARES_SOCKET_BAD,
			events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
	advance(r);
}

static void timed_out(struct loop_timer *timer, uint64_t now_ms)
{
	struct resolver *r = timer->owner;

	(void)now_ms;
	ares_process_fd(r->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	advance(r);
}

static void other_family_over(struct loop_timer *timer, uint64_t now_ms)
{
	struct resolver *r = timer->owner;

	(void)now_ms;
	ares_cancel(r->ares);
	advance(r);
}

static void begin(struct loop_timer *timer, uint64_t now_ms)
{
	struct resolver *r = timer->owner;

	(void)now_ms;
	if (r->known_count > 0 || r->failed) {
		r->found(r->owner, r->known, r->known_count, true, r->failed);
		return;
	}
	r->worst = ARES_SUCCESS;
	ask_next(r);
	advance(r);
}

void resolve_start(struct resolver *r, struct loop *loop,
		   void (*found)(void *owner, const struct address *list, size_t count, bool complete,
				 const char *why),
		   void *owner)
{
	r->loop = loop;
	r->found = found;
	r->owner = owner;
	r->timeout = (struct loop_timer){.fire = timed_out, .owner = r};
	r->other_family = (struct loop_timer){.fire = other_family_over, .owner = r};
	r->first = (struct loop_timer){.fire = begin, .owner = r};
	for (unsigned i = 0; i < SOCKETS; i++)
		r->sockets[i] = (struct loop_source){.fd = -1, .ready = socket_ready, .owner = r};
	loop_timer_set(loop, &r->first, clock_now_ms());
}

void resolve_free(struct resolver *r)
{
	if (!r)
		return;
	if (r->loop) {
		loop_timer_stop(r->loop, &r->timeout);
		loop_timer_stop(r->loop, &r->other_family);
		loop_timer_stop(r->loop, &r->first);
	}
	if (r->ares_up)
		ares_destroy(r->ares);
	for (unsigned i = 0; i < r->domain_count; i++)
		free(r->domains[i]);
	free(r);
}
