#include "tests/lib/dialling.h"

#include "common/channel.h"
#include "common/fd.h"
#include "netd/dial.h"
#include "tests/lib/peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void done(void *owner, struct transport *t, const struct transport_end *end)
{
	struct dialling *d = owner;

	cr_assert_not(d->called);
	d->called = true;
	d->transport = t;
	d->end = *end;
}

void dialling_run(struct dialling *d, struct settings *s, unsigned limit_ms)
{
	dialling_greet(d, s, "", limit_ms);
}

void dialling_greet(struct dialling *d, struct settings *s, const char *greeting, unsigned limit_ms)
{
	FD_CLOSE int log = memfd_create("log", MFD_CLOEXEC);
	FD_CLOSE int kept = dup(STDERR_FILENO);
	ssize_t n;

	memset(d, 0, sizeof *d);
	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(loop_init(&d->loop), 0);
	dup2(log, STDERR_FILENO);
	cr_assert_eq(dial_start(&d->loop, s, greeting, strlen(greeting), limit_ms, done, d), 0);
	cr_assert_not(d->called);
	cr_assert(s->ca_fd == -1 && s->cert_fd == -1 && s->key_fd == -1 && s->proxy_password[0] == '\0');
	while (!d->called)
		cr_assert_eq(loop_pass(&d->loop, 10000), 0);
	dup2(kept, STDERR_FILENO);
	n = pread(log, d->log, sizeof d->log - 1, 0);
	cr_assert_geq(n, 0);
	d->log[n] = '\0';
	cr_assert_null(d->loop.timers);
}

void dialling_end(struct dialling *d)
{
	transport_free(d->transport);
	loop_close(&d->loop);
}

void dialling_failed(const struct dialling *d, uint8_t close_class, const char *text)
{
	const char *line_end = strchr(d->log, '\n');

	cr_assert_null(d->transport);
	cr_assert_eq(d->end.close_class, close_class, "%s: %s", channel_close_name(d->end.close_class),
		     d->log);
	cr_assert(line_end && line_end[1] == '\0', "not one line: %s", d->log);
	cr_assert_not_null(strstr(d->log, "level=warn msg=\"dial failed\" class="));
	cr_assert_not_null(strstr(d->log, text), "%s", d->log);
}

ssize_t dialling_read(struct transport *t, void *bytes, size_t size)
{
	ssize_t n;

	while ((n = transport_read(t, bytes, size)) == -EAGAIN)
		peer_wait(transport_fd(t), transport_read_wants_write(t) ? POLLOUT : POLLIN);
	return n;
}

int dialling_write(struct transport *t, const void *bytes, size_t size)
{
	size_t put = 0;

	while (put < size) {
		struct iovec iov = {(char *)(uintptr_t)bytes + put, size - put};
		ssize_t n = transport_writev(t, &iov, 1);

		if (n == -EAGAIN)
			peer_wait(transport_fd(t), transport_write_wants_read(t) ? POLLIN : POLLOUT);
		else if (n < 0)
			return (int)n;
		else
			put += (size_t)n;
	}
	return 0;
}
