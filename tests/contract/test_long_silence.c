/* grpc-client.md 14, 16: a peer that says nothing. */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>

TestSuite(long_silence, .timeout = 180, .fini = stage_fini);

static bool none_open(const void *arg)
{
	return relay_open(arg) == 0;
}

/* 20 s for the whole handshake, then it goes and dials again. */
Test(long_silence, before_settings_ends_the_attempt)
{
	uint64_t start;
	struct stage *s;

	s = stage_prepare();
	relay_manners(s->relay)->mute = true;
	worker_start(&s->worker, s->relay, WORKER_SETTINGS());
	cr_assert(relay_wait_connections(s->relay, 1, STAGE_WAIT_MS));
	start = clock_now_ms();
	cr_assert(relay_wait(s->relay, none_open, s->relay, 30000));
	cr_assert_geq(clock_now_ms() - start, 15000u);
	relay_manners(s->relay)->mute = false;
	stage_reattach(s);
	stage_close(s);
}

/* A PING after 30 s, and 10 s later the connection is lost, however lively our own side is. */
Test(long_silence, after_a_ping_is_the_loss_of_the_connection)
{
	struct stage *s;

	s = stage_prepare();
	relay_manners(s->relay)->no_ping_ack = true;
	worker_start(&s->worker, s->relay, WORKER_SETTINGS());
	stage_reattach(s);
	stage_wait_out(stage_exec(s, "echo up; exec sleep %s", s->mark), "up\n");
	relay_manners(s->relay)->no_ping_ack = false;
	cr_assert(relay_wait_gone(s->attached, 60000));
	cr_assert_geq(s->attached->pings, 1);
	cr_assert(process_wait_count(s->relay, s->mark, 0, STAGE_WAIT_MS));
	stage_reattach(s);
	stage_close(s);
}

static bool has_beaten(const void *arg)
{
	return ((const struct relay_worker *)arg)->heartbeats >= 3;
}

/* The default is one each 15 s; a relay that never sends a frame is kept. */
Test(long_silence, of_an_idle_relay_is_filled_by_heartbeats)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	cr_assert(relay_wait(s->relay, has_beaten, s->attached, 60000));
	cr_assert_leq(s->attached->heartbeats, 4);
	cr_assert(s->attached->stream);
	cr_assert_eq(relay_connections(s->relay), 1);
	stage_close(s);
}

static bool has_pinged(const void *arg)
{
	return ((const struct relay_worker *)arg)->pings >= 1;
}

/* Row 26: a PING after 30 s of silence, and once the relay has had too many of them none in more than twice
 * that. */
Test(long_silence, row_26_is_pinged_less_often_after_too_many_pings)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("HEARTBEAT_S=5"));
	cr_assert(relay_wait(s->relay, has_pinged, s->attached, 45000));
	relay_calm(s->attached);
	stage_reattach(s);
	relay_run(s->relay, 75000);
	cr_assert(s->attached->stream, "the connection was lost");
	cr_assert_eq(s->attached->pings, 0);
	cr_assert_geq(s->attached->heartbeats, 10);
	stage_expect_end(stage_exec(s, "exit 2"), 2);
	stage_close(s);
}
