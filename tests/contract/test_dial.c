/* The real dialer against small peers on loopback: addresses, plain streams, the deadline. */
#include "common/channel.h"
#include "common/clock.h"
#include "common/fd.h"
#include "tests/lib/dialling.h"
#include "tests/lib/dns.h"
#include "tests/lib/peer.h"
#include "tests/lib/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void echo(int listener, void *arg)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);
	char bytes[4096];
	ssize_t n;

	(void)arg;
	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		fd_write_full(fd, bytes, (size_t)n);
}

static struct settings settings_for(const char *host, uint16_t port)
{
	struct settings s;

	settings_init(&s);
	strcpy(s.relay_host, host);
	s.relay_port = port;
	return s;
}

Test(dial, plain_stream_carries_bytes_and_ends, .timeout = 20)
{
	struct settings s = settings_for("127.0.0.1", peer_start(echo, NULL));
	struct dialling d;
	char bytes[16];
	struct iovec iov[2] = {{(char[]){"ab"}, 2}, {(char[]){"cd"}, 2}};

	dialling_run(&d, &s, 5000);
	cr_assert_not_null(d.transport, "%s", d.log);
	cr_assert_not_null(strstr(d.log, "security=plaintext"));
	cr_assert_eq(transport_writev(d.transport, iov, 2), 4);
	for (ssize_t got = 0; got < 4;)
		got += dialling_read(d.transport, bytes + got, sizeof bytes - (size_t)got);
	cr_assert_arr_eq(bytes, "abcd", 4);
	cr_assert_eq(transport_unsent(d.transport), 0);
	cr_assert_not(transport_pending(d.transport));
	transport_shutdown(d.transport);
	cr_assert_eq(dialling_read(d.transport, bytes, sizeof bytes), 0);
	dialling_end(&d);
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof value;

	cr_assert_eq(getsockopt(fd, level, name, &value, &size), 0);
	return value;
}

Test(dial, socket_is_tuned, .timeout = 20)
{
	struct settings s = settings_for("localhost", peer_start(echo, NULL));
	struct dialling d;
	int fd;

	dialling_run(&d, &s, 5000);
	cr_assert_not_null(d.transport, "%s", d.log);
	fd = transport_fd(d.transport);
	cr_assert_eq(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	cr_assert_eq(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 128 * 1024);
	cr_assert_eq(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 40000);
	cr_assert_eq(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	dialling_end(&d);
}

Test(dial, unsent_bytes_are_counted_while_the_peer_does_not_read, .timeout = 20)
{
	uint16_t port = 0;
	FD_CLOSE int listener = peer_listen(&port);
	struct settings s = settings_for("127.0.0.1", port);
	static char block[1 << 20];
	struct iovec iov = {block, sizeof block};
	struct dialling d;
	ssize_t n;

	dialling_run(&d, &s, 5000);
	while ((n = transport_writev(d.transport, &iov, 1)) > 0)
		;
	cr_assert_eq(n, -EAGAIN);
	cr_assert_gt(transport_unsent(d.transport), 0);
	dialling_end(&d);
}

Test(dial, reset_is_an_error, .timeout = 20)
{
	uint16_t port = 0;
	FD_CLOSE int listener = peer_listen(&port);
	struct settings s = settings_for("127.0.0.1", port);
	struct linger now = {1, 0};
	struct dialling d;
	char byte;
	int fd;

	dialling_run(&d, &s, 5000);
	fd = accept(listener, NULL, NULL);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(fd);
	cr_assert_eq(dialling_read(d.transport, &byte, 1), -ECONNRESET);
	cr_assert_eq(dialling_write(d.transport, "x", 1), -EPIPE);
	dialling_end(&d);
}

Test(dial, refused_connection_names_each_address, .timeout = 20)
{
	uint16_t port = 0;
	int listener = peer_listen(&port);
	struct settings s = settings_for("localhost", port);
	struct dialling d;
	char text[64];

	close(listener);
	dialling_run(&d, &s, 5000);
	dialling_failed(&d, CHANNEL_CLOSE_CONNECT, "127.0.0.1:");
	snprintf(text, sizeof text, "class=connect peer=localhost:%u reason=", port);
	dialling_failed(&d, CHANNEL_CLOSE_CONNECT, text);
	dialling_failed(&d, CHANNEL_CLOSE_CONNECT, "Connection refused");
	dialling_end(&d);
}

Test(dial, limit_ends_a_connection_that_nobody_answers, .timeout = 20)
{
	uint16_t port = 0;
	struct settings s;
	struct dialling d;
	uint64_t start;

	peer_deaf("127.0.0.1", &port);
	s = settings_for("127.0.0.1", port);
	start = clock_now_ms();
	dialling_run(&d, &s, 300);
	cr_assert_geq(clock_now_ms() - start, 300);
	dialling_failed(&d, CHANNEL_CLOSE_HANDSHAKE, "300 ms are over, waiting for a connection (127.0.0.1:");
	dialling_failed(&d, CHANNEL_CLOSE_HANDSHAKE, "no answer");
	dialling_end(&d);
}

/* In a child, where nothing may be asserted: 0, or the number of what went wrong. */
static int dial_with_a_silent_name_server(void)
{
	static const struct dns_entry entries[] = {{"relay.test", DNS_A, {"127.0.0.1"}, 0, true, false},
						   {"relay.test", DNS_AAAA, {"::1"}, 0, true, false},
						   {0}};
	struct settings s = settings_for("relay.test", 443);
	struct dialling d;
	int result = 0;

	if (world_enter("127.0.0.1 localhost\n", "nameserver 127.0.0.1\n") < 0)
		return 2;
	dns_start(entries, 53);
	dialling_run(&d, &s, 300);
	if (d.transport || d.close_class != CHANNEL_CLOSE_HANDSHAKE)
		result = 3;
	else if (!strstr(d.log, "300 ms are over, waiting for the name server"))
		result = 4;
	dialling_end(&d);
	return result;
}

Test(dial, limit_ends_the_wait_for_a_silent_name_server, .timeout = 20)
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("a network namespace needs root");
	pid = fork();
	if (pid == 0)
		_exit(dial_with_a_silent_name_server());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "%d", WEXITSTATUS(status));
}
