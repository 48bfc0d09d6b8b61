/* The dialer inside netd's own jail: what transport_prepare read must be enough, and every call that dialling
 * makes must be on the policy's list. Each scene is a process of its own, which the jail would end with
 * SIGSYS. */
#include "common/fd.h"
#include "netd/dial.h"
#include "netd/jail.h"
#include "tests/lib/certs.h"
#include "tests/lib/dns.h"
#include "tests/lib/peer.h"
#include "tests/lib/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct end {
	bool called;
	struct transport *transport;
};

static void done(void *owner, struct transport *t, const struct transport_end *how)
{
	struct end *end = owner;

	(void)how;
	*end = (struct end){true, t};
}

/* In the jail: dials, sends "ping", waits for as much, says good-bye. Never returns. */
static _Noreturn void dial_and_echo(struct settings *s)
{
	struct loop loop;
	struct end end = {0};
	struct iovec ping = {(char[]){"ping"}, 4};
	char bytes[16];
	ssize_t n = 0;

	signal(SIGPIPE, SIG_IGN);
	if (transport_prepare(s) < 0 || loop_init(&loop) < 0 || jail_enter(s) < 0)
		_exit(10);
	if (transport_dial(&loop, s, "", 0, done, &end) < 0)
		_exit(11);
	while (!end.called)
		loop_pass(&loop, 20000);
	if (!end.transport)
		_exit(12);
	if (transport_writev(end.transport, &ping, 1) != 4)
		_exit(13);
	while (n == 0 || n == -EAGAIN) {
		peer_wait(transport_fd(end.transport), POLLIN);
		n = transport_read(end.transport, bytes, sizeof bytes);
	}
	transport_unsent(end.transport);
	transport_shutdown(end.transport);
	transport_free(end.transport);
	_exit(n == 4 && memcmp(bytes, "ping", 4) == 0 ? 0 : 14);
}

static void expect_success(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	cr_assert_eq(WEXITSTATUS(status), 0);
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

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *size, const unsigned char *in,
		     unsigned in_size, void *arg)
{
	(void)ssl, (void)in_size, (void)arg;
	*out = in + 1;
	*size = in[0];
	return SSL_TLSEXT_ERR_OK;
}

static void echo_tls(int listener, void *arg)
{
	const struct certs_identity *id = arg;
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	SSL *ssl;
	char bytes[64];
	int n;

	SSL_CTX_use_certificate(ctx, id->cert);
	SSL_CTX_use_PrivateKey(ctx, id->key);
	SSL_CTX_set_alpn_select_cb(ctx, choose_h2, NULL);
	ssl = SSL_new(ctx);
	SSL_set_fd(ssl, accept(listener, NULL, NULL));
	if (SSL_accept(ssl) != 1)
		return;
	while ((n = SSL_read(ssl, bytes, sizeof bytes)) > 0)
		SSL_write(ssl, bytes, n);
}

Test(dial_jailed, plain, .timeout = 30)
{
	struct settings s;
	pid_t pid;

	settings_init(&s);
	s.relay_port = peer_start(echo, NULL);
	pid = fork();
	if (pid == 0)
		dial_and_echo(&s);
	expect_success(pid);
}

Test(dial_jailed, tls_with_all_credentials, .timeout = 30)
{
	struct certs_identity root = certs_root("root"), id = certs_issue(&root, "DNS:localhost", -60, 3600);
	struct settings s;
	pid_t pid;

	settings_init(&s);
	s.relay_tls = true;
	s.relay_port = peer_start(echo_tls, &id);
	s.ca_fd = certs_cert_fd(&root);
	s.cert_fd = certs_cert_fd(&id);
	s.key_fd = certs_key_fd(&id, NULL);
	pid = fork();
	if (pid == 0)
		dial_and_echo(&s);
	expect_success(pid);
}

static void tunnel(int listener, void *arg)
{
	FD_CLOSE int fd = accept(listener, NULL, NULL);
	char bytes[4096];
	ssize_t n;

	(void)arg;
	if (read(fd, bytes, sizeof bytes) <= 0)
		return;
	fd_write_full(fd, "HTTP/1.1 200 OK\r\n\r\n", 19);
	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		fd_write_full(fd, bytes, (size_t)n);
}

Test(dial_jailed, proxy, .timeout = 30)
{
	struct settings s;
	pid_t pid;

	settings_init(&s);
	strcpy(s.relay_host, "relay.invalid");
	strcpy(s.proxy_host, "127.0.0.1");
	strcpy(s.proxy_user, "user");
	s.proxy_port = peer_start(tunnel, NULL);
	pid = fork();
	if (pid == 0)
		dial_and_echo(&s);
	expect_success(pid);
}

/* The servers die with their parent, but not with one that is jailed: its death may not signal them. */
static _Noreturn void serve_until_dialled(const struct dns_entry *entries, struct settings *s)
{
	pid_t pid;
	int status;

	dns_start(entries, 53);
	s->relay_port = peer_start(echo, NULL);
	pid = fork();
	if (pid == 0)
		dial_and_echo(s);
	_exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 3);
}

static void in_a_world(const char *host, const char *hosts)
{
	/* Nobody listens at the first address; and the answer comes over TCP only. */
	static const struct dns_entry entries[] = {
	    {"relay.test", DNS_A, {"127.0.0.9", "127.0.0.1"}, 0, false, false},
	    {"long.test", DNS_A, {"127.0.0.9", "127.0.0.1"}, 0, false, true},
	    {0},
	};
	struct settings s;
	pid_t pid = fork();

	if (pid == 0) {
		if (world_enter(hosts, "nameserver 127.0.0.1\n") < 0)
			_exit(2);
		settings_init(&s);
		strcpy(s.relay_host, host);
		serve_until_dialled(entries, &s);
	}
	expect_success(pid);
}

static void skip_without_root(void)
{
	world_need();
}

Test(dial_jailed, name_from_dns_with_a_dead_first_address, .timeout = 30)
{
	skip_without_root();
	in_a_world("relay.test", "127.0.0.1 localhost\n");
	in_a_world("long.test", "127.0.0.1 localhost\n");
}

Test(dial_jailed, name_from_the_hosts_file, .timeout = 30)
{
	skip_without_root();
	in_a_world("other.test", "::1 other.test\n127.0.0.9 other.test\n127.0.0.1 other.test\n");
}
