/* contract.md 10: when the worker dials again. */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(backoff, .timeout = 90, .fini = stage_fini);

/* The waits that the worker has logged, in ms; how many there are, at most room. */
static unsigned waits(const struct worker *worker, uint64_t *ret, unsigned room)
{
	static const char key[] = "backoff_ms=";
	const uint8_t *at = worker->log.at, *end = at + worker->log.size;
	unsigned count = 0;

	while (at && count < room && (at = memmem(at, (size_t)(end - at), key, strlen(key)))) {
		at += strlen(key);
		ret[count++] = strtoull((const char *)at, NULL, 10);
	}
	return count;
}

static bool has_five_waits(const void *worker)
{
	uint64_t ms[5];

	return waits(worker, ms, 5) == 5;
}

/* The n-th wait, from 0, is uniform in [0, min(2b, 30 s)] with b = 500 ms doubling. Five that all stay below
 * 500 ms are less likely than one in 30,000. */
Test(backoff, grows_while_the_relay_refuses)
{
	uint64_t ms[5];
	unsigned long_ones = 0;
	struct stage *s;

	s = stage_prepare();
	relay_manners(s->relay)->refuse = true;
	worker_start(&s->worker, s->relay, WORKER_SETTINGS());
	cr_assert(relay_wait_refusals(s->relay, 5, 30000));
	cr_assert(relay_wait(s->relay, has_five_waits, &s->worker, STAGE_WAIT_MS));
	waits(&s->worker, ms, 5);
	for (unsigned i = 0; i < 5; i++) {
		cr_assert_leq(ms[i], 1000u << i, "wait %u: %llu ms", i, (unsigned long long)ms[i]);
		long_ones += ms[i] > 500;
	}
	cr_assert_geq(long_ones, 1, "they do not grow");
	stage_close(s);
}

Test(backoff, returns_to_its_least_after_a_server_frame)
{
	uint64_t ms[3];
	struct stage *s;

	s = stage_prepare();
	relay_manners(s->relay)->refuse = true;
	worker_start(&s->worker, s->relay, WORKER_SETTINGS());
	cr_assert(relay_wait_refusals(s->relay, 2, STAGE_WAIT_MS));
	relay_manners(s->relay)->refuse = false;
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 1"), 1);
	relay_cut(s->attached, RELAY_CUT_CLOSE);
	stage_reattach(s);
	cr_assert_eq(waits(&s->worker, ms, 3), 3);
	cr_assert_leq(ms[2], 1000u);
	stage_close(s);
}

Test(backoff, goes_on_until_there_is_a_relay)
{
	struct stage *s;

	s = stage_prepare();
	relay_deaf(s->relay);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS());
	cr_assert(worker_wait_said(&s->worker, "backoff_ms=", STAGE_WAIT_MS));
	cr_assert(relay_listen(s->relay) == 0);
	s->attached = relay_wait_attached(s->relay, 0, 40000);
	cr_assert(s->attached);
	stage_expect_end(stage_exec(s, "exit 2"), 2);
	stage_close(s);
}

Test(backoff, is_what_a_wrong_token_gets)
{
	struct stage *s;

	s = stage_begin(WORKER_SETTINGS("SANDBOX_TOKEN=wrong"));
	cr_assert(relay_wait_refusals(s->relay, 2, STAGE_WAIT_MS));
	cr_assert(!relay_attached(s->relay));
	stage_close(s);
}

/* Two of one id: the second is turned away, and gets its turn when the first leaves. */
Test(backoff, lets_a_second_worker_of_the_id_wait_its_turn)
{
	static struct worker second;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	worker_start(&second, s->relay, WORKER_SETTINGS());
	cr_assert(relay_wait_refusals(s->relay, 1, STAGE_WAIT_MS));
	cr_assert(s->attached->stream);
	stage_expect_end(stage_exec(s, "exit 3"), 3);
	cr_assert(worker_stop(&s->worker));
	cr_assert(relay_wait_attached(s->relay, 1, 40000));
	cr_assert(worker_stop(&second));
	worker_free(&second);
	stage_close(s);
}
