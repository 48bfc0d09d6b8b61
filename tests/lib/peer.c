#include "tests/lib/peer.h"

#include "common/fd.h"
#include "tests/lib/bound.h"
#include "tests/lib/slow.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

uint16_t peer_port(void)
{
	for (;;) {
		struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
		FD_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		uint16_t port;

		if (fd < 0 || getrandom(&port, sizeof port, 0) != sizeof port)
			abort();
		port = (uint16_t)(20000 + port % 10000);
		a.sin_port = htons(port);
		if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0)
			return port;
	}
}

void peer_deaf(const char *address, uint16_t *port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(*port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(*port)};
	bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
	struct sockaddr *a = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	socklen_t size = is_v4 ? sizeof v4 : sizeof v6;
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if ((!is_v4 && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1) || fd < 0 || bind(fd, a, size) < 0 ||
	    listen(fd, 0) < 0 || getsockname(fd, a, &size) < 0)
		abort();
	*port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
	for (int i = 0; i < 8; i++)
		(void)connect(socket(a->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), a, size);
}

int peer_listen(uint16_t *port)
{
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &size) < 0)
		abort();
	*port = ntohs(a.sin_port);
	return fd;
}

uint16_t peer_start(void (*script)(int listener, void *arg), void *arg)
{
	uint16_t port = 0;
	FD_CLOSE int listener = peer_listen(&port);
	pid_t pid = bound_fork();

	if (pid < 0)
		abort();
	if (pid == 0) {
		signal(SIGPIPE, SIG_IGN);
		script(listener, arg);
		_exit(0);
	}
	return port;
}

void peer_wait(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	if (poll(&p, 1, (int)slow_ms(10000)) != 1)
		abort();
}
