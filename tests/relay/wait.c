/* Waiting: the relay runs until something is so, or the time is over. */
#include "tests/relay/internal.h"

#include "common/clock.h"
#include "tests/lib/slow.h"

static bool wait_for(struct relay *relay, bool (*done)(const void *arg), const void *arg, uint64_t ms)
{
	uint64_t deadline = clock_now_ms() + ms;

	while (!done(arg)) {
		uint64_t now = clock_now_ms();

		if (now >= deadline || loop_pass(&relay->loop, (int)(deadline - now)) < 0)
			return false;
	}
	return true;
}

bool relay_wait(struct relay *relay, bool (*done)(const void *arg), const void *arg, uint64_t timeout_ms)
{
	return wait_for(relay, done, arg, timeout_ms * slow_factor());
}

static bool never(const void *arg)
{
	(void)arg;
	return false;
}

void relay_run(struct relay *relay, uint64_t ms)
{
	wait_for(relay, never, NULL, ms);
}

/* What is waited for, and how much of it. */
struct wanted {
	struct relay *relay;
	const struct relay_worker *worker;
	const struct relay_exec *exec;
	uint64_t count;
};

static bool is_attached(const void *arg)
{
	const struct wanted *w = arg;
	const struct relay_worker *worker = relay_attached(w->relay);

	return worker && worker->number > w->count;
}

struct relay_worker *relay_wait_attached(struct relay *relay, unsigned after, uint64_t timeout_ms)
{
	struct wanted w = {.relay = relay, .count = after};

	return relay_wait(relay, is_attached, &w, timeout_ms) ? relay_attached(relay) : NULL;
}

static bool is_gone(const void *arg)
{
	const struct wanted *w = arg;

	return w->worker->stream == NULL;
}

bool relay_wait_gone(struct relay_worker *worker, uint64_t timeout_ms)
{
	struct wanted w = {.worker = worker};

	return relay_wait(worker->relay, is_gone, &w, timeout_ms);
}

static bool is_sent(const void *arg)
{
	const struct wanted *w = arg;

	return relay_sent(w->worker);
}

bool relay_sent(const struct relay_worker *worker)
{
	return !worker->stream || (worker->stream->out.size == 0 && relay_io_idle(&worker->stream->conn->io));
}

bool relay_wait_sent(struct relay_worker *worker, uint64_t timeout_ms)
{
	struct wanted w = {.worker = worker};

	return relay_wait(worker->relay, is_sent, &w, timeout_ms);
}

static bool has_refused(const void *arg)
{
	const struct wanted *w = arg;

	return relay_refusals(w->relay) >= w->count;
}

bool relay_wait_refusals(struct relay *relay, unsigned count, uint64_t timeout_ms)
{
	struct wanted w = {.relay = relay, .count = count};

	return relay_wait(relay, has_refused, &w, timeout_ms);
}

static bool has_connections(const void *arg)
{
	const struct wanted *w = arg;

	return relay_connections(w->relay) >= w->count;
}

bool relay_wait_connections(struct relay *relay, unsigned count, uint64_t timeout_ms)
{
	struct wanted w = {.relay = relay, .count = count};

	return relay_wait(relay, has_connections, &w, timeout_ms);
}

static bool has_terminals(const void *arg)
{
	const struct wanted *w = arg;

	return w->exec->terminal_count >= w->count;
}

bool relay_wait_terminals(struct relay_exec *exec, unsigned count, uint64_t timeout_ms)
{
	struct wanted w = {.exec = exec, .count = count};

	return relay_wait(exec->relay, has_terminals, &w, timeout_ms);
}

const struct relay_terminal *relay_wait_end(struct relay_exec *exec, uint64_t timeout_ms)
{
	relay_wait_terminals(exec, 1, timeout_ms);
	return &exec->terminal[0];
}

static bool has_chunks(const void *arg)
{
	const struct wanted *w = arg;

	return w->exec->chunk_count >= w->count;
}

bool relay_wait_chunks(struct relay_exec *exec, size_t count, uint64_t timeout_ms)
{
	struct wanted w = {.exec = exec, .count = count};

	return relay_wait(exec->relay, has_chunks, &w, timeout_ms);
}

static bool has_bytes(const void *arg)
{
	const struct wanted *w = arg;

	return w->exec->out_bytes >= w->count;
}

bool relay_wait_bytes(struct relay_exec *exec, uint64_t out_bytes, uint64_t timeout_ms)
{
	struct wanted w = {.exec = exec, .count = out_bytes};

	return relay_wait(exec->relay, has_bytes, &w, timeout_ms);
}
