/* The real dialer against small peers on loopback. */
#include "common/channel.h"
#include "common/fd.h"
#include "common/loop.h"
#include "netd/dial.h"
#include "netd/transport.h"
#include "tests/lib/peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct outcome_of_dial {
	bool called;
	struct transport *transport;
	uint8_t close_class;
};

static void dialled(void *owner, struct transport *t, uint8_t close_class)
{
	struct outcome_of_dial *o = owner;

	cr_assert(!o->called);
	*o = (struct outcome_of_dial){true, t, close_class};
}

static struct outcome_of_dial dial(struct loop *loop, struct settings *s, unsigned limit_ms)
{
	struct outcome_of_dial o = {0};

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(dial_start(loop, s, limit_ms, dialled, &o), 0);
	cr_assert(!o.called);
	while (!o.called)
		cr_assert_eq(loop_pass(loop, 10000), 0);
	cr_assert_null(loop->timers);
	return o;
}

static void echo(int listener, void *arg)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);
	char bytes[4096];
	ssize_t n;

	(void)arg;
	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		fd_write_full(fd, bytes, (size_t)n);
}

static size_t read_some(struct loop *loop, struct transport *t, char *bytes, size_t size)
{
	ssize_t n;

	(void)loop;
	while ((n = transport_read(t, bytes, size)) == -EAGAIN)
		peer_wait(transport_fd(t), POLLIN);
	cr_assert_geq(n, 0, "read: %s", strerror((int)-n));
	return (size_t)n;
}

Test(dial, plain_to_a_literal_echoes_and_ends, .timeout = 20)
{
	struct settings s;
	struct loop loop;
	struct outcome_of_dial o;
	char bytes[16];
	struct iovec iov[2] = {{(char[]){"ab"}, 2}, {(char[]){"cd"}, 2}};

	settings_init(&s);
	strcpy(s.relay_host, "127.0.0.1");
	s.relay_port = peer_start(echo, NULL);
	loop_init(&loop);
	o = dial(&loop, &s, 5000);
	cr_assert_not_null(o.transport);
	cr_assert_eq(transport_writev(o.transport, iov, 2), 4);
	for (size_t got = 0; got < 4;)
		got += read_some(&loop, o.transport, bytes + got, sizeof bytes - got);
	cr_assert_arr_eq(bytes, "abcd", 4);
	cr_assert_eq(transport_unsent(o.transport), 0);
	transport_shutdown(o.transport);
	cr_assert_eq(read_some(&loop, o.transport, bytes, sizeof bytes), 0);
	transport_free(o.transport);
	loop_close(&loop);
}
