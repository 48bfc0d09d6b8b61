/* Everything at once: commands of every kind, duplicates, redeliveries, Aborts, and a stream that is cut
 * again and again. Whatever the order, each exec is answered, always with the same answer, and none that was
 * answered runs twice. The seed is fixed; the timing is not. */
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(long_chaos, .timeout = 600, .fini = stage_fini);

#define ROUNDS    15u
#define EXECS     40u /* a round; below what may run and wait */
#define STEPS     120u
#define COMMAND   512u
#define PROOF_MS  15000u /* a kill may take its 10 s */
#define LAST_KIND 8u

struct one {
	struct relay_exec *exec;
	struct relay_request request;
	char command[COMMAND];
	char ran[FOLDER_PATH_MAX]; /* one byte for each time that it ran */
	unsigned losses;           /* of the stream before its answer had come */
};

static struct {
	struct stage *stage;
	uint64_t random;
	struct one ones[EXECS];
	unsigned count;
	unsigned answered_twice;
	unsigned cuts;
} chaos;

static uint32_t pick(uint32_t below)
{
	chaos.random ^= chaos.random << 13;
	chaos.random ^= chaos.random >> 7;
	chaos.random ^= chaos.random << 17;
	return (uint32_t)(chaos.random >> 20) % below;
}

static void fill_request(struct one *o, uint64_t id)
{
	static char input[200000];
	static const char *const kinds[LAST_KIND] = {
	    "exit 3",        "head -c 300000 /dev/zero; exit 4",
	    "wc -c; exit 5", "sleep 0.05; echo done",
	    "kill -KILL $$", "(setsid sleep $m & setsid sleep $m &) >/dev/null 2>&1; sleep $m",
	    "sleep $m",      "yes",
	};
	uint32_t kind = pick(LAST_KIND);

	snprintf(o->command, COMMAND, "m=%s; echo >> '%s/%llu'; %s", chaos.stage->mark, chaos.stage->folder,
		 (unsigned long long)id, kinds[kind]);
	o->request = (struct relay_request){
	    .req_id = id,
	    .command = o->command,
	    .input = kind == 2 ? input : NULL,
	    .input_size = kind == 2 ? sizeof input : 0,
	    /* What would never end has a time; so has what might. */
	    .timeout_s = kind >= 5 ? 1 : pick(2) * 60,
	    .streaming = kind == 7 || pick(2),
	};
}

static void send_new(void)
{
	struct one *o = &chaos.ones[chaos.count];
	uint64_t id = ++chaos.stage->last_id;
	char name[32];

	if (chaos.count == EXECS)
		return;
	chaos.count++;
	snprintf(name, sizeof name, "%llu", (unsigned long long)id);
	folder_join(o->ran, chaos.stage->folder, name);
	fill_request(o, id);
	o->losses = 0;
	o->exec = relay_exec(chaos.stage->attached, &o->request);
	o->exec->count_only = true;
}

static bool is_answered(const struct one *o)
{
	return o->exec->terminal_count > 0;
}

static void cut(void)
{
	static const enum relay_cut ways[] = {RELAY_CUT_CLOSE, RELAY_CUT_RESET, RELAY_CUT_MIDDLE};

	relay_cut(chaos.stage->attached, ways[pick(3)]);
	chaos.cuts++;
	stage_reattach(chaos.stage);
	for (unsigned i = 0; i < chaos.count; i++) {
		struct one *o = &chaos.ones[i];

		if (is_answered(o))
			continue;
		o->losses++;
		relay_exec_again(o->exec, chaos.stage->attached, &o->request);
	}
}

static void step(void)
{
	struct one *o = chaos.count > 0 ? &chaos.ones[pick(chaos.count)] : NULL;
	uint32_t what = pick(100);

	if (what < 40 || !o)
		send_new();
	else if (what < 60)
		relay_exec_again(o->exec, chaos.stage->attached, &o->request);
	else if (what < 75)
		relay_abort(chaos.stage->attached, o->request.req_id);
	else
		relay_run(chaos.stage->relay, pick(30));
}

static void check(struct one *o)
{
	const struct relay_exec *e = o->exec;
	const struct relay_terminal *first = relay_wait_end(o->exec, PROOF_MS);
	off_t ran = folder_size(o->ran);

	cr_assert_neq(first->kind, RELAY_NONE, "no answer to %s", o->command);
	cr_assert_leq(e->terminal_count, e->deliveries);
	chaos.answered_twice += e->terminal_count > 1;
	for (unsigned i = 1; i < e->terminal_count && i < RELAY_TERMINALS; i++) {
		cr_assert_eq(e->terminal[i].kind, first->kind, "%s", o->command);
		cr_assert_eq(e->terminal[i].exit_code, first->exit_code, "%s", o->command);
		if (first->kind == RELAY_ERROR)
			cr_assert_str_eq(e->terminal[i].message, first->message);
	}
	if (first->kind == RELAY_ERROR)
		cr_assert(strncmp(first->message, "timeout:", 8) == 0, "%s: %s", o->command, first->message);
	cr_assert(ran <= 1 + (off_t)o->losses, "ran %d times: %s", (int)ran, o->command);
	relay_forget(o->exec);
}

static void run_rounds(const char *background)
{
	chaos.stage = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=8", background));
	chaos.random = 20261130;
	for (unsigned round = 0; round < ROUNDS; round++) {
		chaos.count = 0;
		for (unsigned i = 0; i < STEPS; i++)
			step();
		if (round % 3 > 0)
			cut();
		for (unsigned i = 0; i < chaos.count; i++)
			relay_wait_end(chaos.ones[i].exec, PROOF_MS);
		/* Replays of what came last may still be on their way. */
		relay_run(chaos.stage->relay, 100);
		for (unsigned i = 0; i < chaos.count; i++)
			check(&chaos.ones[i]);
	}
	cr_assert_gt(chaos.answered_twice, 10);
	cr_assert_gt(chaos.cuts, 5);
	cr_assert_not(worker_said(&chaos.stage->worker, "violation"));
	cr_assert_not(worker_said(&chaos.stage->worker, "kill not proven"));
	cr_assert_not(worker_said(&chaos.stage->worker, "broke"));
	stage_close(chaos.stage);
}

Test(long_chaos, with_keep_leaves_no_exec_unanswered_and_runs_none_twice)
{
	run_rounds("SANDBOX_BACKGROUND=keep");
}

Test(long_chaos, with_kill_leaves_no_exec_unanswered_and_runs_none_twice)
{
	run_rounds("SANDBOX_BACKGROUND=kill");
}
