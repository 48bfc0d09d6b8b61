#include "tests/lib/program.h"
#include "tests/lib/bound.h"
#include "tests/lib/worker.h"

#include "common/fd.h"
#include "tests/lib/process.h"
#include "tests/relay/relay.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLAIN 65532

static bool overrides(const char *const *settings, const char *entry)
{
	size_t name = strcspn(entry, "=") + 1;

	for (; *settings; settings++) {
		if (strncmp(*settings, entry, name) == 0)
			return true;
	}
	return false;
}

void worker_environment(const char *environment[WORKER_ENVIRONMENT_MAX], uint16_t port,
			const char *const *settings)
{
	static const char *const inherited[] = {
	    "PATH", "HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "SANDBOX_KILLER"};
	static char address[64], kept[sizeof inherited / sizeof *inherited][4096];
	const char *ours[sizeof inherited / sizeof *inherited + 3] = {address, "SANDBOX_ID=sbx",
								      "SANDBOX_TOKEN=token"};
	size_t count = 0, ours_count = 3;

	snprintf(address, sizeof address, "RELAY_ADDR=127.0.0.1:%u", port);
	for (size_t i = 0; i < sizeof inherited / sizeof *inherited; i++) {
		const char *value = getenv(inherited[i]);

		if (!value)
			continue;
		snprintf(kept[i], sizeof kept[i], "%s=%s", inherited[i], value);
		ours[ours_count++] = kept[i];
	}
	for (size_t i = 0; i < ours_count; i++) {
		if (!overrides(settings, ours[i]))
			environment[count++] = ours[i];
	}
	for (; *settings; settings++) {
		cr_assert(count + 1 < WORKER_ENVIRONMENT_MAX);
		environment[count++] = *settings;
	}
	environment[count] = NULL;
}

static void on_log(struct loop_source *source, uint32_t events)
{
	struct worker *worker = source->owner;
	char piece[4096];
	ssize_t n = read(source->fd, piece, sizeof piece);

	(void)events;
	if (n > 0) {
		relay_bytes_add(&worker->log, piece, (size_t)n);
		if (getenv("TEST_VERBOSE"))
			fwrite(piece, 1, (size_t)n, stderr);
	} else if (n == 0 || errno != EAGAIN) {
		loop_del(relay_loop(worker->relay), source);
		fd_close(&source->fd);
	}
}

static void on_exit_event(struct loop_source *source, uint32_t events)
{
	struct worker *worker = source->owner;

	(void)events;
	if (waitpid(worker->pid, &worker->wait_status, WNOHANG) != worker->pid)
		return;
	worker->exited = true;
	loop_del(relay_loop(worker->relay), source);
	fd_close(&source->fd);
}

static void start(struct worker *worker, struct relay *relay, const char *program,
		  const char *const *settings, void (*prepare)(void))
{
	const char *environment[WORKER_ENVIRONMENT_MAX];
	int ends[2];
	char *args[] = {NULL, NULL};
	char *const *env;

	worker_environment(environment, relay_port(relay), settings);
	memcpy(&args[0], &program, sizeof args[0]);
	memcpy(&env, &(const char *const *){environment}, sizeof env);
	cr_assert(pipe2(ends, O_CLOEXEC) == 0);
	*worker = (struct worker){.relay = relay};
	worker->pid = bound_fork();
	cr_assert(worker->pid >= 0, "fork: %m");
	if (worker->pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		signal(SIGPIPE, SIG_DFL); /* the relay may ignore it */
		if (prepare)
			prepare();
		execve(args[0], args, env);
		_exit(127);
	}
	close(ends[1]);
	fd_set_nonblock(ends[0], true);
	worker->log_source = (struct loop_source){.fd = ends[0], .ready = on_log, .owner = worker};
	worker->exit_source = (struct loop_source){.ready = on_exit_event, .owner = worker};
	worker->exit_source.fd = (int)syscall(SYS_pidfd_open, worker->pid, 0);
	cr_assert(worker->exit_source.fd >= 0);
	cr_assert(loop_add(relay_loop(relay), &worker->log_source, EPOLLIN) == 0);
	cr_assert(loop_add(relay_loop(relay), &worker->exit_source, EPOLLIN) == 0);
}

void worker_start(struct worker *worker, struct relay *relay, const char *const *settings)
{
	start(worker, relay, program_built("execd"), settings, NULL);
}

void worker_start_prepared(struct worker *worker, struct relay *relay, const char *const *settings,
			   void (*prepare)(void))
{
	start(worker, relay, program_built("execd"), settings, prepare);
}

void worker_start_program(struct worker *worker, struct relay *relay, const char *name,
			  const char *const *settings)
{
	start(worker, relay, program_built(name), settings, NULL);
}

void worker_without_privilege(void)
{
	if (setgroups(0, NULL) < 0 || setresgid(PLAIN, PLAIN, PLAIN) < 0 ||
	    setresuid(PLAIN, PLAIN, PLAIN) < 0)
		_exit(126);
	/* It goes with a change of user. */
	prctl(PR_SET_PDEATHSIG, (long)SIGKILL);
}

unsigned worker_said_times(const struct worker *worker, const char *text)
{
	const uint8_t *at = worker->log.at, *end = at + worker->log.size;
	size_t size = strlen(text);
	unsigned count = 0;

	while (at && at < end && (at = memmem(at, (size_t)(end - at), text, size))) {
		count++;
		at += size;
	}
	return count;
}

bool worker_said(const struct worker *worker, const char *text)
{
	return worker_said_times(worker, text) > 0;
}

struct wanted {
	const struct worker *worker;
	const char *text;
};

static bool has_said(const void *arg)
{
	const struct wanted *w = arg;

	return worker_said(w->worker, w->text);
}

bool worker_wait_said(struct worker *worker, const char *text, uint64_t timeout_ms)
{
	struct wanted w = {.worker = worker, .text = text};

	return relay_wait(worker->relay, has_said, &w, timeout_ms);
}

static bool has_exited(const void *arg)
{
	const struct wanted *w = arg;

	return w->worker->exited;
}

bool worker_wait_exit(struct worker *worker, uint64_t timeout_ms)
{
	struct wanted w = {.worker = worker};

	return relay_wait(worker->relay, has_exited, &w, timeout_ms);
}

pid_t worker_netd(const struct worker *worker)
{
	return process_child(worker->pid, "netd");
}

bool worker_stop(struct worker *worker)
{
	if (!worker->exited)
		process_kill(worker->pid, SIGTERM);
	return worker_wait_exit(worker, 5000);
}

void worker_kill(struct worker *worker)
{
	if (!worker->exited)
		process_kill(worker->pid, SIGKILL);
	worker_wait_exit(worker, 5000);
}

void worker_free(struct worker *worker)
{
	if (worker->log_source.fd >= 0)
		loop_del(relay_loop(worker->relay), &worker->log_source);
	if (worker->exit_source.fd >= 0)
		loop_del(relay_loop(worker->relay), &worker->exit_source);
	fd_close(&worker->log_source.fd);
	fd_close(&worker->exit_source.fd);
	relay_bytes_free(&worker->log);
}
