/* A worker's life: rounds of steps with a rest after each, and its end. */
#include "tests/soak/soak.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define ROUNDS_MAX 12u
#define STEPS_MAX  70u
#define HISTORY    (64u * 1024u)

struct soak soak;

static char history[HISTORY]; /* of this life; its beginning falls out */
static size_t history_used;
static uint64_t begun_ms;

void soak_note(const char *format, ...)
{
	char line[400];
	va_list ap;
	int n;

	n = snprintf(line, sizeof line, "%6" PRIu64 " ms, step %" PRIu64 ": ", clock_now_ms() - begun_ms,
		     soak.step);
	va_start(ap, format);
	vsnprintf(line + n, sizeof line - (size_t)n - 1, format, ap);
	va_end(ap);
	strcat(line, "\n");
	if (history_used + strlen(line) >= HISTORY) {
		memmove(history, history + HISTORY / 2, history_used - HISTORY / 2);
		history_used -= HISTORY / 2;
	}
	memcpy(history + history_used, line, strlen(line));
	history_used += strlen(line);
}

void soak_blame(const char *format, ...)
{
	va_list ap;

	if (soak.blame[0])
		return;
	va_start(ap, format);
	vsnprintf(soak.blame, sizeof soak.blame, format, ap);
	va_end(ap);
	soak_note("!!! %s", soak.blame);
}

/* A TLS connection whose end was killed has no close_notify. */
void soak_forgive(void)
{
	if (soak.tls && strcmp(relay_complaints(soak.stage->relay), "a peer broke HTTP/2 or TLS") == 0)
		relay_forgive(soak.stage->relay);
}

void soak_check(void)
{
	if (soak.cut)
		soak_forgive();
	if (relay_complaints(soak.stage->relay)[0])
		soak_blame("the relay complains: %s", relay_complaints(soak.stage->relay));
	cr_assert(!soak.blame[0], "SOAK_SEED=%" PRIu64 " step %" PRIu64 ": %s", soak.seed, soak.step,
		  soak.blame);
	cr_assert(!soak.stage->worker.exited || soak.stopping, "SOAK_SEED=%" PRIu64 ": the worker has ended",
		  soak.seed);
}

void soak_run(uint64_t ms)
{
	relay_run(soak.stage->relay, ms);
	soak_check();
}

void soak_wait(bool (*done)(const void *arg), const void *arg, uint64_t timeout_ms, const char *what)
{
	bool in_time = relay_wait(soak.stage->relay, done, arg, timeout_ms);

	soak_check();
	if (!in_time)
		soak_blame("%s has not come", what);
	soak_check();
}

/* --- steps --- */

/* One that was sent in this round. NULL: none yet. */
static struct soak_exec *some_exec(void)
{
	uint32_t which = dice(SOAK_EXECS);

	return soak.count > 0 ? &soak.execs[which % soak.count] : NULL;
}

/* The last of its id, where that is clear. */
static struct soak_exec *some_last(void)
{
	struct soak_exec *e = some_exec();

	return e && model_is_last(e) ? e : NULL;
}

static void burst(void)
{
	static const uint32_t most[SOAK_CROWDS] = {22, 8, 90, 5};
	uint32_t count = dice(30), crowd = dice(SOAK_CROWDS);

	if (dice_chance(50)) {
		model_send_crowd(crowd, most[crowd]);
		return;
	}

	while (count-- > 0)
		model_send();
}

static void step(void)
{
	uint32_t what = dice(100);
	struct soak_exec *e = some_last();

	if (what < 43)
		model_send();
	else if (what < 46)
		burst();
	else if (what < 58 && e && e->variant == 0)
		model_send_again(e);
	else if (what < 66 && e)
		model_abort(e);
	else if (what < 68 && e)
		model_abort(e), model_abort(e);
	else if (what < 70)
		relay_abort(soak.stage->attached,
			    dice(2) ? UINT64_MAX : soak.first_id + SOAK_EXECS + dice(9));
	else if (what < 73 && e && e->variant == 0 && !e->redelivered)
		model_reuse(e);
	else if (what < 83)
		faults_step();
	else if (what < 90)
		faults_calm();
	else
		soak_run(dice(150));
	soak_run(dice(5));
	if (dice_chance(20))
		census_glance();
}

void life_next_step(void)
{
	faults_recover();
	soak.step++;
	dice_begin(soak.seed, soak.step);
	soak.totals->steps++;
}

static bool owes_nothing(const void *arg)
{
	(void)arg;
	return soak.blame[0] || !soak.stage->attached->stream ||
	       (model_owed() == 0 && !soak.goaway && !soak.cut);
}

/* All that is owed has come, on a connection that stays. */
static void settle(void)
{
	do {
		faults_recover();
		faults_calm();
		soak_wait(owes_nothing, NULL, SOAK_PROOF_MS + (soak.goaway ? 30000 : 0),
			  "an answer or the end of the stream");
	} while (!soak.stage->attached->stream);
}

/* A later command can stop what an earlier one left; and what netd reads after all else is answered after all
 * that it replays. */
static void rest(void)
{
	settle();
	model_judge_kept();
	if (soak.warden_killed)
		census_end_kept();
	model_send_command("for p in $(cat '%s'); do kill -KILL $p; done 2>/dev/null; : >'%s'", soak.kept,
			   soak.kept);
	settle();
	soak_note("rest");
	census_rest();
	model_judge();
	soak_check();
	model_forget();
	soak.totals->rounds++;
}

static void round_of_steps(void)
{
	uint32_t steps;

	life_next_step();
	steps = 5 + dice(STEPS_MAX);
	for (uint32_t i = 0; i < steps; i++) {
		life_next_step();
		step();
	}
	rest();
}

void life_run(uint64_t seed, uint64_t until_ms, struct soak_totals *totals)
{
	uint32_t rounds;

	history_used = 0;
	begun_ms = clock_now_ms();
	life_begin(seed, totals);
	rounds = 1 + dice(ROUNDS_MAX);
	for (uint32_t i = 0; i < rounds && (i == 0 || clock_now_ms() < until_ms); i++)
		round_of_steps();
	life_end();
	if (getenv("SOAK_VERBOSE"))
		fwrite(history, 1, history_used, stderr);
	totals->lives++;
}

static void say_totals(const struct soak_totals *t)
{
	printf("soak: %" PRIu64 " lives, %" PRIu64 " rounds, %" PRIu64 " steps; execs %" PRIu64
	       ", again %" PRIu64 ", reused ids %" PRIu64 ", aborts %" PRIu64 "; exits %" PRIu64
	       ", killed %" PRIu64 ", timeouts %" PRIu64 ", refusals %" PRIu64 " (collisions %" PRIu64
	       "), replays %" PRIu64 ", MiB %" PRIu64 "; lost streams %" PRIu64 ", netd kills %" PRIu64
	       ", cuts %" PRIu64 ", GOAWAYs %" PRIu64 ", stalls %" PRIu64 ", slots hit %" PRIu64
	       ", wardens %" PRIu64 ", minders evicted %" PRIu64 "\n",
	       t->lives, t->rounds, t->steps, t->sent, t->redelivered, t->reused, t->aborts, t->exits,
	       t->killed, t->timeouts, t->refusals, t->collisions, t->replays, t->bytes >> 20, t->losses,
	       t->netd_kills, t->cuts, t->goaways, t->stalls, t->slot_kills, t->warden_kills,
	       t->minders_evicted);
	fflush(stdout);
}

void life_many(uint64_t seed, uint64_t for_ms)
{
	static struct soak_totals totals;
	uint64_t until = clock_now_ms() + for_ms;

	do {
		printf("soak: SOAK_SEED=%" PRIu64 "\n", seed);
		fflush(stdout);
		life_run(seed, until, &totals);
		seed = dice_mix(seed) >> 32;
	} while (clock_now_ms() < until);
	say_totals(&totals);
}

void life_fini(void)
{
	bool failed = soak.stage != NULL;

	stage_fini();
	if (!failed)
		return;
	fprintf(stderr,
		"--- history of SOAK_SEED=%" PRIu64 "\n%.*s--- repeat it: make soak SOAK_SEED=%" PRIu64 "\n",
		soak.seed, (int)history_used, history, soak.seed);
}

uint64_t life_seed(void)
{
	const char *given = getenv("SOAK_SEED");
	uint32_t seed = 0;

	if (given && given[0])
		return strtoull(given, NULL, 10);
	cr_assert_eq(getrandom(&seed, sizeof seed, 0), (ssize_t)sizeof seed);
	return seed;
}

uint64_t life_time_ms(uint64_t otherwise_s)
{
	const char *given = getenv("SOAK_S");

	return (given && given[0] ? strtoull(given, NULL, 10) : otherwise_s) * 1000u;
}
