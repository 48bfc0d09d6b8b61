/* Life of a relay, its listener, and waiting. */
#include "tests/relay/internal.h"

#include "common/clock.h"
#include "common/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void relay_complain(struct relay *relay, const char *format, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	if (relay->complaints.size > 64 * 1024)
		return;
	if (relay->complaints.size > 0)
		relay->complaints.at[--relay->complaints.size] = '\n', relay->complaints.size++;
	relay_bytes_add(&relay->complaints, line, strlen(line) + 1);
}

const char *relay_complaints(const struct relay *relay)
{
	return relay->complaints.size > 0 ? (const char *)relay->complaints.at : "";
}

void relay_forgive(struct relay *relay)
{
	relay_bytes_free(&relay->complaints);
}

static struct relay_conn *first_over(struct relay *relay)
{
	struct relay_conn *conn = relay->conns;

	while (conn && !conn->over)
		conn = conn->next;
	return conn;
}

static void flush_once(struct relay *relay)
{
	struct relay_conn *conn;
	int r;

	for (conn = relay->conns; conn; conn = conn->next) {
		r = conn->over ? 0 : relay_io_flush(&conn->io);
		if (r == -EPROTO)
			relay_complain(relay, "a peer broke HTTP/2 or TLS");
		conn->over |= r < 0;
		if (!conn->over && !conn->draining && !nghttp2_session_want_read(conn->io.session) &&
		    !nghttp2_session_want_write(conn->io.session) && conn->io.unsent_size == 0)
			conn->over = true;
	}
	while ((conn = first_over(relay)))
		relay_conn_close(conn, false);
}

void relay_flush(struct relay *relay)
{
	relay->unflushed = true;
	if (relay->busy)
		return;
	relay->busy = true;
	while (relay->unflushed) {
		relay->unflushed = false;
		flush_once(relay);
	}
	relay->busy = false;
}

static void on_dial(struct loop_source *source, uint32_t events)
{
	struct relay *relay = source->owner;
	int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd >= 0)
		relay_conn_accept(relay, fd);
}

static int bind_listener(struct relay *relay, int fd)
{
	const char *address = relay->options.address ? relay->options.address : "127.0.0.1";
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(relay->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(relay->port)};
	bool is_v6 = strchr(address, ':') != NULL;
	struct sockaddr *sa = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	socklen_t size = is_v6 ? sizeof v6 : sizeof v4;

	if (inet_pton(sa->sa_family, address, is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1)
		return -EINVAL;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(fd, sa, size) < 0 || listen(fd, 64) < 0 || getsockname(fd, sa, &size) < 0)
		return -errno;
	relay->port = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
	return 0;
}

int relay_listen(struct relay *relay)
{
	const char *address = relay->options.address;
	int family = address && strchr(address, ':') ? AF_INET6 : AF_INET;
	FD_CLOSE int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = bind_listener(relay, fd);
	if (r < 0)
		return r;
	relay->listener = (struct loop_source){.fd = fd, .ready = on_dial, .owner = relay};
	r = loop_add(&relay->loop, &relay->listener, EPOLLIN);
	if (r < 0)
		return r;
	fd_steal(&fd);
	return 0;
}

void relay_deaf(struct relay *relay)
{
	if (relay->listener.fd < 0)
		return;
	loop_del(&relay->loop, &relay->listener);
	fd_close(&relay->listener.fd);
}

struct relay *relay_start(const struct relay_options *options)
{
	struct relay *relay = calloc(1, sizeof *relay);
	int r;

	if (!relay)
		return NULL;
	relay->options = *options;
	relay->manners = options->manners;
	relay->port = options->port;
	relay->listener.fd = -1;
	r = loop_init(&relay->loop);
	if (r == 0)
		r = relay_listen(relay);
	if (r < 0) {
		fprintf(stderr, "relay: cannot listen: %s\n", strerror(-r));
		relay_stop(relay);
		return NULL;
	}
	if (options->cert_file) {
		relay->tls = relay_tls_context(options);
		if (!relay->tls) {
			relay_stop(relay);
			return NULL;
		}
	}
	return relay;
}

void relay_stop(struct relay *relay)
{
	struct relay_worker *worker;

	if (!relay)
		return;
	relay_deaf(relay);
	while (relay->conns)
		relay_conn_close(relay->conns, false);
	while (relay->execs)
		relay_forget(relay->execs);
	while ((worker = relay->workers)) {
		relay->workers = worker->next;
		sandbox__v1__hello__free_unpacked(worker->hello, NULL);
		free(worker);
	}
	SSL_CTX_free(relay->tls);
	loop_close(&relay->loop);
	relay_bytes_free(&relay->complaints);
	relay_bytes_free(&relay->authorizations);
	free(relay);
}

uint16_t relay_port(const struct relay *relay)
{
	return relay->port;
}

struct loop *relay_loop(struct relay *relay)
{
	return &relay->loop;
}

struct relay_manners *relay_manners(struct relay *relay)
{
	return &relay->manners;
}

unsigned relay_connections(const struct relay *relay)
{
	return relay->connections;
}

unsigned relay_refusals(const struct relay *relay)
{
	return relay->refusals;
}

unsigned relay_token_uses(const struct relay *relay, const char *token)
{
	const char *at = (const char *)relay->authorizations.at;
	size_t left = relay->authorizations.size;
	unsigned count = 0;

	while (left > 0) {
		size_t size = strlen(at) + 1;

		count += strncmp(at, "Bearer ", 7) == 0 && strcmp(at + 7, token) == 0;
		at += size;
		left -= size;
	}
	return count;
}

int relay_renew_tls(struct relay *relay)
{
	SSL_CTX *tls = relay_tls_context(&relay->options);

	if (!tls)
		return -EINVAL;
	SSL_CTX_free(relay->tls);
	relay->tls = tls;
	return 0;
}

unsigned relay_open(const struct relay *relay)
{
	unsigned count = 0;

	for (const struct relay_conn *conn = relay->conns; conn; conn = conn->next)
		count++;
	return count;
}

struct relay_worker *relay_attached(struct relay *relay)
{
	for (struct relay_worker *w = relay->workers; w; w = w->next) {
		if (w->stream)
			return w;
	}
	return NULL;
}
