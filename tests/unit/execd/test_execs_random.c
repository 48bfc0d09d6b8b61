/* Random walks: a netd that says anything at any time, slots that keep their contract but in any order and
 * speed, time that jumps. What must hold in all of them is kept in a model beside it. Seeds are fixed, so a
 * failure comes again. */
#include "tests/unit/execd/fakes.h"

#define IDS    12u
#define WORKS  3u
#define PLACES 3u
#define STEPS  4000u

/* A slot as slots.h promises it. */
enum phase { NOTHING, WANTS, STARTING, RUNS, EXITED, MINDS, GONE };

static struct {
	uint64_t random;
	struct {
		enum phase phase;
		uint32_t missing; /* of the command */
		bool piece;       /* one has been given and not been taken */
		bool killed;
		bool dead;
		bool released; /* by the core, during an event */
	} slots[FAKE_SLOTS];
	struct {
		bool admitted;
		bool ended;
		bool started;
		bool asked; /* a FETCH is out */
		bool left;  /* a LEFT is out */
		uint8_t work;
	} known[IDS];     /* what netd knows of */
	unsigned answers; /* to the EXEC at hand */
	uint64_t exec_id;
	unsigned alive; /* runs that were started and whose end is not proven, by id */
	unsigned runs_of[IDS];
} m;

static uint32_t pick(uint32_t below)
{
	m.random ^= m.random << 13;
	m.random ^= m.random >> 7;
	m.random ^= m.random << 17;
	return (uint32_t)(m.random >> 20) % below;
}

/* --- what the core does --- */

static uint64_t run_of_slot[FAKE_SLOTS];

static void on_slot_called(const char *what, unsigned slot, const struct slot_run *run)
{
	if (strcmp(what, "run") == 0) {
		cr_assert(m.slots[slot].phase == NOTHING, "run in a slot that is not empty");
		cr_assert(m.known[run->req_id].admitted && !m.known[run->req_id].ended,
			  "run of what was not asked");
		cr_assert_eq(m.runs_of[run->req_id], 0, "a second run under an id that is not proven dead");
		m.runs_of[run->req_id]++;
		run_of_slot[slot] = run->req_id;
		m.slots[slot].phase = run->given_len < run->command_len ? WANTS : STARTING;
		m.slots[slot].missing = run->command_len - run->given_len;
		m.slots[slot].piece = true;
		m.slots[slot].killed = m.slots[slot].dead = false;
	} else if (strcmp(what, "feed") == 0) {
		cr_assert(m.slots[slot].phase == WANTS && !m.slots[slot].piece,
			  "a piece that was not wanted");
		cr_assert_leq(run->given_len, m.slots[slot].missing);
		m.slots[slot].missing -= run->given_len;
		m.slots[slot].piece = true;
		if (m.slots[slot].missing == 0)
			m.slots[slot].phase = STARTING;
	} else if (strcmp(what, "kill") == 0) {
		m.slots[slot].killed = true;
	} else if (strcmp(what, "release") == 0) {
		cr_assert(m.slots[slot].phase == NOTHING, "released with processes in it");
	} else if (strcmp(what, "mind") == 0) {
		cr_assert(m.slots[slot].phase == MINDS && !m.slots[slot].killed);
		cr_assert_not(fake.config.background_kill);
		m.slots[slot].phase = GONE;
		m.runs_of[run_of_slot[slot]]--;
	}
}

static void on_netd_told(const char *what, uint64_t id, const struct outcome *outcome)
{
	bool answer = strcmp(what, "admitted") == 0 || strcmp(what, "duplicate") == 0 ||
		      strcmp(what, "replay") == 0 || strcmp(what, "refused") == 0;

	cr_assert_lt(id, IDS);
	if (answer) {
		cr_assert_eq(id, m.exec_id);
		m.answers++;
	}
	if (strcmp(what, "admitted") == 0) {
		cr_assert_not(m.known[id].admitted, "admitted twice");
		m.known[id].admitted = true;
		m.known[id].ended = m.known[id].started = m.known[id].asked = m.known[id].left = false;
	} else if (strcmp(what, "duplicate") == 0) {
		cr_assert(m.known[id].admitted);
	} else if (strcmp(what, "replay") == 0) {
		cr_assert(!m.known[id].admitted && outcome_cached(outcome));
	} else if (strcmp(what, "fetch") == 0) {
		cr_assert(m.known[id].admitted && !m.known[id].started && !m.known[id].ended &&
			  !m.known[id].asked);
		m.known[id].asked = true;
	} else if (strcmp(what, "started") == 0) {
		cr_assert(m.known[id].admitted && !m.known[id].started && !m.known[id].ended);
		m.known[id].started = true;
	} else if (strcmp(what, "left") == 0) {
		cr_assert(m.known[id].started && !m.known[id].ended && !m.known[id].left);
		cr_assert(fake.config.background_kill);
		m.known[id].left = true;
	} else if (strcmp(what, "ended") == 0) {
		cr_assert(m.known[id].admitted && !m.known[id].ended && outcome->kind != OUTCOME_LOST);
		cr_assert_eq(fake.ended.reading == CHANNEL_READ_NOTHING, !m.known[id].started);
		m.known[id].ended = true;
	}
}

/* --- what comes --- */

/* netd keeps the rules most of the time, or nothing would ever get far. */

static void lose_stream(void)
{
	memset(m.known, 0, sizeof m.known);
	execs_stream_lost();
}

static void exec_step(void)
{
	uint8_t work = (uint8_t)(1 + pick(WORKS));

	m.exec_id = pick(IDS);
	m.answers = 0;
	switch (pick(4)) {
	case 0:
		exec(m.exec_id, work, .len = 1 + pick(150000), .timeout_s = pick(3));
		break;
	case 1:
		exec(m.exec_id, work, .len = pick(10), .bad = (uint8_t)(1 + pick(REFUSAL_LAST)));
		break;
	default:
		exec(m.exec_id, work, .command = "true", .timeout_s = pick(3));
	}
	cr_assert_eq(m.answers, 1, "each EXEC has exactly one answer");
}

static void command_step(void)
{
	uint64_t id = pick(IDS);
	const struct exec *e = inflight_find(id);
	bool fits = e && pick(40) > 0;
	uint32_t offset = fits ? e->given : pick(200000);
	uint32_t left = fits ? e->command_len - e->given : pick(200000);
	uint32_t size = left < 60000 ? left : 60000;
	bool asked = m.known[id].asked;

	if (!asked && pick(200) > 0)
		return;
	m.known[id].asked = false;
	if (command_comes(id, offset, size) < 0)
		lose_stream();
	else
		cr_assert(asked);
}

static void drained_step(void)
{
	uint64_t id = pick(IDS);
	bool ended = m.known[id].ended;
	int err;

	if (!ended && pick(200) > 0)
		return;
	err = drained_comes(id, pick(4) == 0);
	cr_assert_eq(err == 0, ended);
	m.known[id].admitted = m.known[id].ended = m.known[id].left = false;
	if (err < 0)
		lose_stream();
}

static void quiet_step(void)
{
	uint64_t id = pick(IDS);
	bool left = m.known[id].left;

	if (!left && pick(200) > 0)
		return;
	m.known[id].left = false;
	cr_assert_eq(quiet_comes(id) == 0, left);
	if (!left)
		lose_stream();
}

static void empty(unsigned slot)
{
	m.slots[slot].phase = NOTHING;
	m.runs_of[run_of_slot[slot]]--;
	slot_says(SLOT_EMPTY, slot);
}

static void leader_ends(unsigned slot, bool by_kill)
{
	m.slots[slot].phase = EXITED;
	if (by_kill)
		slot_is_killed(slot);
	else
		slot_exits(slot, (int)pick(256));
}

/* A slot that is killed, or whose process is gone: it proves the end, in its own time. */
static void dying_step(unsigned slot)
{
	enum phase phase = m.slots[slot].phase;

	if (phase == RUNS && !m.slots[slot].dead)
		leader_ends(slot, pick(4) > 0);
	else if (phase == STARTING && pick(4) == 0 && !m.slots[slot].dead) {
		m.slots[slot].phase = RUNS;
		slot_says(SLOT_STARTED, slot); /* it crossed the kill */
	} else if (pick(3) == 0) {
		slot_says(SLOT_STILL_ALIVE, slot, .count = 1);
	} else {
		empty(slot);
	}
}

static void slot_step(void)
{
	unsigned slot = pick(PLACES + 4);
	enum phase phase = m.slots[slot].phase;

	if (phase == GONE) {
		m.slots[slot].phase = NOTHING;
		slot_ready(slot);
		return;
	}
	if (phase == NOTHING)
		return;
	if (m.slots[slot].killed || m.slots[slot].dead) {
		dying_step(slot);
		return;
	}
	if (pick(20) == 0 && (phase == WANTS || phase == STARTING)) {
		m.slots[slot].phase = NOTHING;
		m.runs_of[run_of_slot[slot]]--;
		slot_says(SLOT_UNREAD, slot);
		return;
	}
	if (pick(20) == 0 && fake.slots[slot] == FAKE_TAKEN) {
		m.slots[slot].dead = true;
		slot_says(SLOT_DIED, slot);
		return;
	}
	if (phase == WANTS && m.slots[slot].piece) {
		m.slots[slot].piece = false;
		slot_says(SLOT_TOOK, slot);
	} else if (phase == STARTING && pick(8) == 0) {
		m.slots[slot].phase = NOTHING;
		m.runs_of[run_of_slot[slot]]--;
		slot_says(SLOT_START_FAILED, slot, .value = OUTCOME_START_VALUE(START_EXEC, ENOENT));
	} else if (phase == STARTING) {
		m.slots[slot].phase = RUNS;
		slot_says(SLOT_STARTED, slot);
	} else if (phase == RUNS) {
		leader_ends(slot, false);
	} else if (phase == EXITED && pick(2)) {
		m.slots[slot].phase = MINDS;
		slot_says(SLOT_MINDING, slot, .count = 1);
	} else if (phase == EXITED || phase == MINDS) {
		empty(slot);
	}
}

static void step(void)
{
	uint32_t what = pick(100);

	if (what < 25)
		exec_step();
	else if (what < 35)
		command_step();
	else if (what < 55)
		drained_step();
	else if (what < 58)
		execs_on_abort(pick(IDS));
	else if (what < 60)
		quiet_step();
	else if (what < 61)
		lose_stream();
	else if (what < 65)
		pass_ms(pick(4) ? pick(1500) : pick(12000));
	else if (what < 68)
		fake.full = !fake.full;
	else if (what < 72)
		execs_channel_writable();
	else
		slot_step();
}

static void stays_within_bounds(void)
{
	const struct execs_counters *c = execs_counters();

	cr_assert_leq(c->running, PLACES);
	cr_assert_leq(c->running + c->waiting, PLACES + LIMIT_WAITING);
	cr_assert_leq(c->cached, IDS);
}

static void come_to_rest(size_t descriptors)
{
	lose_stream();
	for (unsigned slot = 0; slot < FAKE_SLOTS; slot++) {
		while (m.slots[slot].phase != NOTHING && m.slots[slot].phase != GONE) {
			m.slots[slot].killed = true;
			dying_step(slot);
		}
	}
	is_at_rest();
	cr_assert_eq(open_descriptors(), descriptors);
	for (unsigned id = 0; id < IDS; id++)
		cr_assert_eq(m.runs_of[id], 0);
}

Test(random_walk, every_rule_holds_whatever_comes, .timeout = 60)
{
	size_t descriptors;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int saved = dup(STDERR_FILENO);

	begin(PLACES);
	fake.tracing = false;
	fake.slot_called = on_slot_called;
	fake.netd_told = on_netd_told;
	dup2(null, STDERR_FILENO); /* kills without proof are logged */
	descriptors = open_descriptors();
	for (uint64_t seed = 1; seed <= 50; seed++) {
		m.random = seed * 0x9e3779b97f4a7c15u;
		fake.config.background_kill = seed % 2;
		for (unsigned i = 0; i < STEPS; i++) {
			step();
			stays_within_bounds();
		}
		come_to_rest(descriptors);
	}
	dup2(saved, STDERR_FILENO);
	cr_assert_gt(execs_counters()->started, 1000);
	cr_assert_gt(execs_counters()->timeouts, 50);
	cr_assert_gt(execs_counters()->unproven, 10);
	cr_assert_gt(execs_counters()->replayed, 1000);
	cr_assert_gt(execs_counters()->lost, 1000);
}
