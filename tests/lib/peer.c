#include "tests/lib/peer.h"

#include "common/fd.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

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
	pid_t pid = fork();

	if (pid < 0)
		abort();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		script(listener, arg);
		_exit(0);
	}
	return port;
}

void peer_wait(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	if (poll(&p, 1, 10000) != 1)
		abort();
}
