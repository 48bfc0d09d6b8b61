/* The real dialer through a scripted HTTP proxy on loopback. The relay's name exists nowhere: only the proxy
 * knows it. */
#include "common/channel.h"
#include "common/fd.h"
#include "tests/lib/bound.h"
#include "tests/lib/dialling.h"
#include "tests/lib/peer.h"
#include "tests/lib/world.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct script {
	const char *request; /* that must come, exactly */
	const char *answer;
	unsigned gap; /* bytes of the answer written at a time, 0: all */
};

static void read_request(int fd, const char *expected)
{
	char bytes[8192];
	size_t used = 0;

	while (used < sizeof bytes - 1) {
		ssize_t n = read(fd, bytes + used, sizeof bytes - 1 - used);

		if (n <= 0)
			_exit(1);
		used += (size_t)n;
		bytes[used] = '\0';
		if (strstr(bytes, "\r\n\r\n"))
			break;
	}
	if (expected && strcmp(bytes, expected) != 0)
		_exit(2);
}

static void proxy(int listener, void *arg)
{
	const struct script *script = arg;
	FD_CLOSE int fd = accept(listener, NULL, NULL);
	size_t size = strlen(script->answer), step = script->gap > 0 ? script->gap : size;
	char bytes[1024];
	ssize_t n;

	read_request(fd, script->request);
	for (size_t at = 0; at < size; at += step) {
		fd_write_full(fd, script->answer + at, size - at < step ? size - at : step);
		if (script->gap > 0)
			usleep(1000);
	}
	/* The tunnel's other end echoes. */
	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		fd_write_full(fd, bytes, (size_t)n);
}

static void echo(int listener, void *arg)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);
	char bytes[64];
	ssize_t n;

	(void)arg;
	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		fd_write_full(fd, bytes, (size_t)n);
}

static struct settings settings_through(uint16_t port)
{
	struct settings s;

	settings_init(&s);
	strcpy(s.relay_host, "relay.invalid");
	s.relay_port = 443;
	strcpy(s.proxy_host, "127.0.0.1");
	s.proxy_port = port;
	return s;
}

static void expect(struct transport *t, const char *text)
{
	char bytes[256];
	size_t got = 0, size = strlen(text);

	while (got < size) {
		ssize_t n = dialling_read(t, bytes + got, size - got);

		cr_assert_gt(n, 0);
		got += (size_t)n;
	}
	cr_assert_arr_eq(bytes, text, size);
}

#define REQUEST                                                                                              \
	"CONNECT relay.invalid:443 HTTP/1.1\r\nHost: relay.invalid:443\r\nUser-Agent: "                      \
	"sandbox-worker/" WORKER_VERSION "\r\n"

Test(dial_proxy, tunnel_carries_bytes, .timeout = 20)
{
	static const struct script script = {REQUEST "\r\n", "HTTP/1.1 200 OK\r\n\r\n", 0};
	struct settings s = settings_through(peer_start(proxy, (void *)(uintptr_t)&script));
	struct dialling d;

	dialling_run(&d, &s, 10000);
	cr_assert_not_null(d.transport, "%s", d.log);
	cr_assert_not_null(strstr(d.log, "through=proxy"));
	cr_assert_eq(dialling_write(d.transport, "ping", 4), 0);
	expect(d.transport, "ping");
	dialling_end(&d);
}

Test(dial_proxy, credentials_go_to_the_proxy_and_not_to_the_log, .timeout = 20)
{
	static const struct script script = {REQUEST "Proxy-Authorization: Basic dXNlcjpwYTpzcw==\r\n\r\n",
					     "HTTP/1.1 200 OK\r\n\r\n", 0};
	struct settings s = settings_through(peer_start(proxy, (void *)(uintptr_t)&script));
	struct dialling d;

	strcpy(s.proxy_user, "user");
	strcpy(s.proxy_password, "pa:ss");
	dialling_run(&d, &s, 10000);
	cr_assert_not_null(d.transport, "%s", d.log);
	cr_assert_null(strstr(d.log, "pa:ss"));
	cr_assert_null(strstr(d.log, "dXNl"));
	dialling_end(&d);
}

/* The relay's first bytes may come in the same segment as the proxy's last; or the answer byte by byte. */
Test(dial_proxy, bytes_after_the_answer_belong_to_the_tunnel, .timeout = 20)
{
	static const char answer[] =
	    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nVia: test\r\n\r\nrelay's first bytes";
	static const struct script scripts[] = {{NULL, answer, 0}, {NULL, answer, 1}, {NULL, answer, 7}};

	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		struct settings s = settings_through(peer_start(proxy, (void *)(uintptr_t)&scripts[i]));
		struct dialling d;

		dialling_run(&d, &s, 10000);
		cr_assert_not_null(d.transport, "%s", d.log);
		expect(d.transport, "relay's first bytes");
		dialling_end(&d);
	}
}

Test(dial_proxy, refusals_are_one_clear_line, .timeout = 20)
{
	static const struct {
		struct script script;
		const char *reason;
	} cases[] = {
	    {{NULL, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n", 0},
	     "the proxy refused: 407 Proxy Authentication Required (are the user and the password in "
	     "HTTPS_PROXY right?)"},
	    {{NULL, "HTTP/1.1 403 For\x1b[31mbidden\r\n\r\n", 0},
	     "the proxy refused: 403 For\\x1b[31mbidden"},
	    {{NULL, "\x16\x03\x01", 0}, "the proxy does not speak HTTP/1"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct settings s = settings_through(peer_start(proxy, (void *)(uintptr_t)&cases[i].script));
		struct dialling d;
		char proxy_field[64];

		strcpy(s.proxy_user, "user");
		strcpy(s.proxy_password, "secret");
		snprintf(proxy_field, sizeof proxy_field, "peer=relay.invalid:443 proxy=127.0.0.1:%u",
			 s.proxy_port);
		dialling_run(&d, &s, 10000);
		dialling_failed(&d, CHANNEL_CLOSE_PROXY, cases[i].reason);
		dialling_failed(&d, CHANNEL_CLOSE_PROXY, proxy_field);
		cr_assert_null(strstr(d.log, "secret"));
		dialling_end(&d);
	}
}

static void hang_up(int listener, void *arg)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);

	(void)arg;
	read_request(fd, NULL);
}

Test(dial_proxy, end_instead_of_an_answer, .timeout = 20)
{
	struct settings s = settings_through(peer_start(hang_up, NULL));
	struct dialling d;

	dialling_run(&d, &s, 10000);
	dialling_failed(&d, CHANNEL_CLOSE_PROXY, "the proxy closed the connection");
	dialling_end(&d);
}

/* Header lines without end. */
static void babble(int listener, void *arg)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);

	(void)arg;
	read_request(fd, NULL);
	fd_write_full(fd, "HTTP/1.1 200 OK\r\n", 17);
	while (fd_write_full(fd, "X-Filler: xxxxxxxxxxxxxxxxxxxxxxxxx\r\n", 37) == 0)
		;
}

Test(dial_proxy, endless_answer_is_cut, .timeout = 20)
{
	struct settings s = settings_through(peer_start(babble, NULL));
	struct dialling d;

	dialling_run(&d, &s, 10000);
	dialling_failed(&d, CHANNEL_CLOSE_PROXY, "the proxy's answer is longer than 16384 bytes");
	dialling_end(&d);
}

Test(dial_proxy, limit_ends_the_wait_for_a_silent_one, .timeout = 20)
{
	uint16_t port = 0;
	FD_CLOSE int listener = peer_listen(&port);
	struct settings s = settings_through(port);
	struct dialling d;

	dialling_run(&d, &s, 300);
	dialling_failed(&d, CHANNEL_CLOSE_HANDSHAKE, "300 ms are over, waiting for the proxy's answer");
	dialling_end(&d);
}

Test(dial_proxy, dead_proxy_is_a_failed_connection, .timeout = 20)
{
	uint16_t port = 0;
	int listener = peer_listen(&port);
	struct settings s = settings_through(port);
	struct dialling d;

	close(listener);
	dialling_run(&d, &s, 10000);
	dialling_failed(&d, CHANNEL_CLOSE_CONNECT, "Connection refused");
	dialling_end(&d);
}

static void answer_hello(int listener, void *arg)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);

	(void)arg;
	fd_write_full(fd, "hello", 5);
}

Test(dial_proxy, no_proxy_goes_straight, .timeout = 20)
{
	uint16_t dead = 0;
	int listener = peer_listen(&dead);
	struct settings s = settings_through(dead);
	struct dialling d;

	close(listener);
	strcpy(s.relay_host, "127.0.0.1"); /* excluded without being listed */
	s.relay_port = peer_start(answer_hello, NULL);
	dialling_run(&d, &s, 10000);
	cr_assert_not_null(d.transport, "%s", d.log);
	expect(d.transport, "hello");
	dialling_end(&d);
}

#define TINYPROXY "/usr/bin/tinyproxy"

/* Runs tinyproxy until the test ends; returns once it accepts. Nobody else is in this network, so any port
 * does. */
static void start_tinyproxy(uint16_t port)
{
	char path[] = "/tmp/tinyproxy-XXXXXX";
	FD_CLOSE int conf = mkstemp(path);
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	FD_CLOSE int probe = -1;

	dprintf(conf, "Port %u\nListen 127.0.0.1\nTimeout 60\nBasicAuth user secret\nLogLevel Critical\n",
		port);
	if (bound_fork() == 0) {
		execl(TINYPROXY, "tinyproxy", "-d", "-c", path, NULL);
		_exit(127);
	}
	for (int tries = 0; tries < 1000; tries++) {
		fd_close(&probe);
		probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(probe, (struct sockaddr *)&a, sizeof a) == 0)
			break;
		usleep(10000);
	}
	unlink(path);
}

/* 0, or the number of the step that went wrong. */
static int dial_through_tinyproxy(const char *password)
{
	struct settings s = settings_through(3128);
	struct dialling d;
	char bytes[8];
	int result = 4;

	if (world_enter("127.0.0.1 relay.invalid\n", "nameserver 127.0.0.1\n") < 0)
		return 2;
	start_tinyproxy(s.proxy_port);
	s.relay_port = peer_start(echo, NULL);
	strcpy(s.proxy_user, "user");
	strcpy(s.proxy_password, password);
	dialling_run(&d, &s, 10000);
	if (!d.transport)
		result = strstr(d.log, "class=proxy") && strstr(d.log, "the proxy refused: 40") ? 10 : 3;
	else if (dialling_write(d.transport, "ping", 4) == 0 && dialling_read(d.transport, bytes, 4) == 4 &&
		 memcmp(bytes, "ping", 4) == 0)
		result = 0;
	dialling_end(&d);
	return result;
}

static int in_a_child(const char *password)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(dial_through_tinyproxy(password));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

Test(dial_proxy, tinyproxy_with_the_right_and_the_wrong_password, .timeout = 30)
{
	world_need();
	if (access(TINYPROXY, X_OK) < 0)
		cr_skip_test("no " TINYPROXY);
	cr_assert_eq(in_a_child("secret"), 0);
	cr_assert_eq(in_a_child("wrong"), 10);
}
