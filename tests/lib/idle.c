#include "tests/lib/idle.h"

#include "tests/lib/cutter.h"

#include <criterion/criterion.h>
#include <stdio.h>

static struct cutter cutter;

static struct stage *begin(const char *heartbeat, uint32_t limit_ms)
{
	struct stage *s = stage_prepare();
	char address[64];
	const char *const settings[] = {address, heartbeat, NULL};

	cutter_start(&cutter, relay_loop(s->relay), relay_port(s->relay), limit_ms);
	snprintf(address, sizeof address, "RELAY_ADDR=127.0.0.1:%u", cutter.port);
	worker_start(&s->worker, s->relay, settings);
	stage_reattach(s);
	return s;
}

static void end(struct stage *s)
{
	cr_assert(worker_stop(&s->worker));
	cutter_stop(&cutter);
	stage_close(s);
}

void idle_keeps_the_connection(const char *heartbeat, uint32_t limit_ms, uint32_t idle_ms)
{
	struct relay_exec *exec;
	struct stage *s = begin(heartbeat, limit_ms);

	relay_run(s->relay, idle_ms);
	cr_assert_eq(cutter.cuts, 0, "the stream was cut");
	exec = stage_exec(s, "head -c 3000000 /dev/zero; exit 4");
	stage_expect_end(exec, 4);
	cr_assert_eq(exec->out_bytes, 3000000);
	cr_assert_eq(relay_connections(s->relay), 1);
	cr_assert_eq(s->attached->number, 1);
	end(s);
}

static bool has_cut(const void *arg)
{
	return ((const struct cutter *)arg)->cuts > 0;
}

unsigned idle_loses_the_connection(const char *heartbeat, uint32_t limit_ms)
{
	struct stage *s = begin(heartbeat, limit_ms);
	unsigned pings;

	cr_assert(relay_wait(s->relay, has_cut, &cutter, limit_ms + STAGE_WAIT_MS));
	pings = cutter.pings;
	stage_reattach(s);
	cr_assert(worker_said(&s->worker, "the relay reset the call"));
	stage_expect_end(stage_exec(s, "exit 4"), 4);
	end(s);
	return pings;
}
