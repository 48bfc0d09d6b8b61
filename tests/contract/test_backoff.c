/* contract.md 10: when the worker dials again. */
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(backoff, .timeout = 90, .fini = stage_fini);

/* The waits that the worker has logged, in ms, or their bounds; how many there are, at most room. */
static unsigned waits(const struct worker *worker, const char *key, uint64_t *ret, unsigned room)
{
	const uint8_t *at = worker->log.at, *end = at + worker->log.size;
	unsigned count = 0;

	while (at && count < room && (at = memmem(at, (size_t)(end - at), key, strlen(key)))) {
		at += strlen(key);
		ret[count++] = strtoull((const char *)at, NULL, 10);
	}
	return count;
}

#define REFUSALS 6u

static bool has_all_waits(const void *worker)
{
	uint64_t ms[REFUSALS];

	return waits(worker, "backoff_max_ms=", ms, REFUSALS) == REFUSALS;
}

/* The n-th wait is uniform in [0, min(2b, 30 s)] with b = 500 ms doubling; tests/unit/execd/test_backoff.c
 * looks at how they are drawn. A refused Hello is followed by its wait and one more dial, never two. */
Test(backoff, grows_to_30_s_while_the_relay_refuses)
{
	static const uint64_t bounds[REFUSALS] = {1000, 2000, 4000, 8000, 16000, 30000};
	uint64_t ms[REFUSALS], most[REFUSALS], start;
	uint64_t sum = 0;
	struct stage *s;

	s = stage_prepare();
	relay_manners(s->relay)->refuse = true;
	start = clock_now_ms();
	worker_start(&s->worker, s->relay, WORKER_SETTINGS());
	cr_assert(relay_wait_refusals(s->relay, REFUSALS, 31000 + STAGE_WAIT_MS));
	cr_assert(relay_wait(s->relay, has_all_waits, &s->worker, STAGE_WAIT_MS));
	cr_assert_eq(waits(&s->worker, "backoff_ms=", ms, REFUSALS), REFUSALS);
	waits(&s->worker, "backoff_max_ms=", most, REFUSALS);
	for (unsigned i = 0; i < REFUSALS; i++) {
		cr_assert_eq(most[i], bounds[i], "bound %u: %llu ms", i, (unsigned long long)most[i]);
		cr_assert_leq(ms[i], bounds[i], "wait %u: %llu ms", i, (unsigned long long)ms[i]);
		sum += i + 1 < REFUSALS ? ms[i] : 0;
	}
	cr_assert_geq(clock_now_ms() - start, sum, "it did not wait for as long as it says");
	cr_assert_eq(relay_refusals(s->relay), REFUSALS);
	cr_assert_eq(relay_connections(s->relay), REFUSALS, "it dialled more often than it was refused");
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
	cr_assert_eq(waits(&s->worker, "backoff_max_ms=", ms, 3), 3);
	cr_assert_eq(ms[1], 2000);
	cr_assert_eq(ms[2], 1000);
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
