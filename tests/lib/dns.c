#include "tests/lib/dns.h"

#include "common/fd.h"
#include "tests/lib/bound.h"
#include "tests/lib/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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
	size_t size = type == DNS_A ? 4 : 16;

	memcpy(at, head, sizeof head);
	at[3] = (uint8_t)type;
	at[10] = 0;
	at[11] = (uint8_t)size;
	inet_pton(type == DNS_A ? AF_INET : AF_INET6, address, at + 12);
	return 12 + size;
}

/* The answer's size, 0: none. */
static size_t answer(const struct dns_entry *entries, const uint8_t *q, size_t size, bool tcp,
		     uint8_t out[2048])
{
	char name[256];
	size_t end = question(q, size, name) + 4, used = end;
	int type = q[end - 3];
	const struct dns_entry *e = entries;

	while (e->name && (strcasecmp(e->name, name) != 0 || e->type != type))
		e++;
	if (e->name && e->silent)
		return 0;
	memcpy(out, q, end);
	memset(out + 4, 0, 8);
	out[2] = 0x81;
	out[3] = (uint8_t)(0x80 | (e->name ? e->rcode : DNS_NXDOMAIN));
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

static void serve_udp(int udp, const struct dns_entry *entries)
{
	uint8_t q[512], out[2048];
	struct sockaddr_in from;
	socklen_t from_size = sizeof from;
	ssize_t n = recvfrom(udp, q, sizeof q, 0, (struct sockaddr *)&from, &from_size);
	size_t size = n > 16 ? answer(entries, q, (size_t)n, false, out) : 0;

	if (size > 0)
		sendto(udp, out, size, 0, (struct sockaddr *)&from, from_size);
}

static void serve_tcp(int fd, const struct dns_entry *entries)
{
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

/* In a child of its own: a client that keeps its connection open must not keep UDP waiting. */
static void fork_tcp(int listener, const struct dns_entry *entries)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);

	if (bound_fork() != 0)
		return;
	serve_tcp(fd, entries);
	_exit(0);
}

static pid_t server;

uint16_t dns_start(const struct dns_entry *entries, uint16_t port)
{
	FD_CLOSE int tcp = peer_listen(&port);
	FD_CLOSE int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	if (bind(udp, (struct sockaddr *)&a, sizeof a) < 0)
		abort();
	server = bound_fork();
	if (server == 0) {
		struct pollfd p[2] = {{udp, POLLIN, 0}, {tcp, POLLIN, 0}};

		signal(SIGCHLD, SIG_IGN);
		while (poll(p, 2, 30000) > 0) {
			if (p[0].revents)
				serve_udp(udp, entries);
			if (p[1].revents)
				fork_tcp(tcp, entries);
		}
		_exit(0);
	}
	return port;
}

void dns_stop(void)
{
	if (server <= 0)
		abort();
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	server = 0;
}

struct dns_entry *dns_share(const struct dns_entry *entries)
{
	size_t count = 1;
	struct dns_entry *shared;

	while (entries[count - 1].name)
		count++;
	shared =
	    mmap(NULL, count * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		abort();
	memcpy(shared, entries, count * sizeof *shared);
	return shared;
}
