/* netd's own code in netd's own jail: what it calls for is what the policy lists. Each body runs in a child;
 * a call that is not listed ends it with SIGSYS and is named in what the test prints. */
#include "common/channel.h"
#include "common/log.h"
#include "netd/jail.h"
#include "netd/resolve.h"
#include "netd/transport.h"
#include "tests/lib/bound.h"
#include "tests/lib/certs.h"
#include "tests/lib/peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_JAILED 200
#define DEADLINE_S 30 /* alarm(2): a body that hangs dies of SIGALRM */

static struct settings settings;
static struct loop loop;

static void set_up(void)
{
	settings_init(&settings);
	settings.capacity = 4;
	strcpy(settings.relay_host, "localhost");
}

TestSuite(netd, .init = set_up, .timeout = 60);

/* Prepares as netd's main does, jails itself, runs the body. */
static void expect(int code, int (*body)(void))
{
	char log[4096] = "";
	int fds[2], status = -1;
	size_t used = 0;
	pid_t pid;
	ssize_t n;

	cr_assert(pipe2(fds, O_CLOEXEC) == 0);
	pid = bound_fork();
	if (pid == 0) {
		alarm(DEADLINE_S);
		signal(SIGPIPE, SIG_IGN);
		dup2(fds[1], STDERR_FILENO);
		log_init("netd", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
		if (transport_prepare(&settings) < 0 || loop_init(&loop) < 0 || jail_enter(&settings) < 0)
			_exit(NOT_JAILED);
		_exit(body());
	}
	close(fds[1]);
	while (used < sizeof log - 1 && (n = read(fds[0], log + used, sizeof log - 1 - used)) > 0)
		used += (size_t)n;
	close(fds[0]);
	waitpid(pid, &status, 0);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == code, "status %#x: %s", status, log);
}

/* --- dialling --- */

static struct {
	bool called;
	struct transport *transport;
	uint8_t close_class;
} dialled;

static void done(void *owner, struct transport *t, const struct transport_end *end)
{
	(void)owner;
	dialled.called = true;
	dialled.transport = t;
	dialled.close_class = end->close_class;
}

static ssize_t echo_once(struct transport *t)
{
	static const char ping[] = "ping";
	struct iovec iov = {(char *)(uintptr_t)ping, 4};
	struct pollfd p = {.fd = transport_fd(t), .events = POLLIN};
	char bytes[8];
	ssize_t n = transport_writev(t, &iov, 1);

	if (n != 4)
		return -1;
	while ((n = transport_read(t, bytes, sizeof bytes)) == -EAGAIN)
		poll(&p, 1, 1000);
	return n;
}

/* CHILD: 0 after an echo, else 100 + the class of the failure. */
static int dial(void)
{
	if (transport_dial(&loop, &settings, "", 0, done, NULL) < 0)
		return 1;
	while (!dialled.called) {
		if (loop_pass(&loop, 1000) < 0)
			return 2;
	}
	if (!dialled.transport)
		return 100 + dialled.close_class;
	if (echo_once(dialled.transport) != 4 || transport_unsent(dialled.transport) > 4096)
		return 3;
	transport_shutdown(dialled.transport);
	transport_free(dialled.transport);
	loop_close(&loop);
	settings_wipe(&settings, true);
	return 0;
}

static void echo(int listener, void *arg)
{
	int fd = accept(listener, NULL, NULL);
	char bytes[64];
	ssize_t n;

	(void)arg;
	while ((n = read(fd, bytes, sizeof bytes)) > 0) {
		if (write(fd, bytes, (size_t)n) != n)
			return;
	}
}

Test(netd, dials_in_the_clear)
{
	settings.relay_port = peer_start(echo, NULL);
	expect(0, dial);
}

/* A port that is taken, but where nobody listens. */
static int take_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(bind(fd, (struct sockaddr *)&at, size) == 0);
	cr_assert(getsockname(fd, (struct sockaddr *)&at, &size) == 0);
	settings.relay_port = ntohs(at.sin_port);
	return fd;
}

Test(netd, survives_a_relay_that_is_not_there)
{
	int fd = take_port();

	expect(100 + CHANNEL_CLOSE_CONNECT, dial);
	close(fd);
}

struct tls_server {
	struct certs_identity id;
	struct certs_identity root;
	int version;
};

static int choose(SSL *ssl, const unsigned char **out, unsigned char *size, const unsigned char *in,
		  unsigned in_size, void *arg)
{
	(void)ssl, (void)in_size, (void)arg;
	*out = in + 1;
	*size = in[0];
	return SSL_TLSEXT_ERR_OK;
}

/* Wants a client certificate: netd's key is used too. */
static void tls_echo(int listener, void *arg)
{
	const struct tls_server *server = arg;
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	char bytes[64];
	SSL *ssl;
	int n;

	SSL_CTX_use_certificate(ctx, server->id.cert);
	SSL_CTX_use_PrivateKey(ctx, server->id.key);
	SSL_CTX_set_alpn_select_cb(ctx, choose, NULL);
	SSL_CTX_set_max_proto_version(ctx, server->version);
	X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), server->root.cert);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	ssl = SSL_new(ctx);
	SSL_set_fd(ssl, accept(listener, NULL, NULL));
	if (SSL_accept(ssl) != 1)
		return;
	while ((n = SSL_read(ssl, bytes, sizeof bytes)) > 0)
		SSL_write(ssl, bytes, n);
	SSL_shutdown(ssl);
}

static void dial_tls(int version, const char *san, int code)
{
	struct tls_server server = {.root = certs_root("test root"), .version = version};
	struct certs_identity client = certs_issue(&server.root, "DNS:client", -60, 3600);

	server.id = certs_issue(&server.root, san, -60, 3600);
	settings.relay_tls = true;
	settings.ca_fd = certs_cert_fd(&server.root);
	settings.cert_fd = certs_cert_fd(&client);
	settings.key_fd = certs_key_fd(&client, NULL);
	settings.relay_port = peer_start(tls_echo, &server);
	expect(code, dial);
}

Test(netd, shakes_hands_with_tls_1_3_and_a_client_certificate)
{
	dial_tls(TLS1_3_VERSION, "DNS:localhost", 0);
}

Test(netd, shakes_hands_with_tls_1_2_and_a_client_certificate)
{
	dial_tls(TLS1_2_VERSION, "DNS:localhost", 0);
}

Test(netd, survives_a_certificate_for_another_name)
{
	dial_tls(TLS1_3_VERSION, "DNS:elsewhere", 100 + CHANNEL_CLOSE_TLS);
}

/* --- resolving --- */

/* Answers A questions with 192.0.2.1, others with no data; first of all "truncated" when asked so by the
 * name's first letter, so that the question comes again over TCP. */
static size_t answer(const unsigned char *question, size_t n, unsigned char *reply, bool tcp)
{
	static const unsigned char address[] = {0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1};
	size_t end = 12;

	while (end < n && question[end] != 0)
		end += question[end] + 1u;
	end += 5;
	memcpy(reply, question, end);
	reply[2] = 0x81;
	reply[3] = 0x80;
	memset(reply + 6, 0, 6);
	if (question[13] == 't' && !tcp) {
		reply[2] |= 2;
		return end;
	}
	if (question[end - 3] != 1)
		return end;
	reply[7] = 1;
	memcpy(reply + end, address, sizeof address);
	return end + sizeof address;
}

/* CHILD: one connection, while the questions over UDP go on. */
static void serve_tcp(int fd)
{
	unsigned char in[600], out[700];

	while (recv(fd, in, 2, MSG_WAITALL) == 2) {
		ssize_t n = recv(fd, in, (size_t)(in[0] << 8 | in[1]) % sizeof in, MSG_WAITALL);
		size_t size = n > 0 ? answer(in, (size_t)n, out + 2, true) : 0;

		out[0] = (unsigned char)(size >> 8);
		out[1] = (unsigned char)size;
		if (size == 0 || write(fd, out, size + 2) < 0)
			break;
	}
}

static void serve_names(int listener, int udp)
{
	struct pollfd p[2] = {{.fd = udp, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
	unsigned char in[600], out[700];
	struct sockaddr_in from;

	while (poll(p, 2, DEADLINE_S * 1000) > 0) {
		socklen_t size = sizeof from;

		if (p[1].revents) {
			int fd = accept(listener, NULL, NULL);

			if (bound_fork() == 0) {
				serve_tcp(fd);
				_exit(0);
			}
			close(fd);
		}
		if (p[0].revents) {
			ssize_t n = recvfrom(udp, in, sizeof in, 0, (struct sockaddr *)&from, &size);

			if (n > 16)
				sendto(udp, out, answer(in, (size_t)n, out, false), 0,
				       (struct sockaddr *)&from, size);
		}
	}
}

static struct resolver *resolver;
static struct {
	size_t count;
	bool complete;
} names;

static void found(void *owner, const struct address *list, size_t count, bool complete, const char *why)
{
	(void)owner, (void)list, (void)why;
	names.count += count;
	names.complete |= complete;
}

static int resolve(void)
{
	resolve_start(resolver, &loop, found, NULL);
	while (!names.complete)
		loop_pass(&loop, 1000);
	resolve_free(resolver);
	return names.count == 1 ? 0 : 2;
}

/* A name server on one port for UDP and TCP; Landlock lets netd connect there because it is the relay's port
 * too. */
static void resolve_name(const char *name)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int udp = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t size = sizeof at;
	char servers[64];
	uint16_t port = 0;
	pid_t pid;
	int listener;

	/* The same number for both: another may have taken the UDP one meanwhile. */
	for (int tries = 0;; tries++) {
		listener = peer_listen(&port);
		at.sin_port = htons(port);
		if (bind(udp, (struct sockaddr *)&at, size) == 0)
			break;
		close(listener);
		cr_assert(tries < 20);
	}
	pid = bound_fork();
	if (pid == 0) {
		serve_names(listener, udp);
		_exit(0);
	}
	snprintf(servers, sizeof servers, "127.0.0.1:%u", port);
	settings.relay_port = port;
	cr_assert_eq(resolve_prepare_from(name, "/nonexistent", servers, &resolver), 0);
	expect(0, resolve);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(netd, asks_the_dns_over_udp)
{
	resolve_name("udp.example.");
}

Test(netd, asks_the_dns_over_tcp)
{
	resolve_name("tcp.example.");
}
