/* What a slot says is believed only where a slot of ours could say it: the table of reports against what it
 * said before. The warden, the orphans and the kernel's counters are not there. */
#include "execd/slots_pool.h"

#include "common/fd.h"
#include "execd/config.h"

#include <criterion/criterion.h>
#include <unistd.h>

static struct loop loop;
static struct config config = {.max_concurrent = 1};
static struct pool_slot *slot = &pool.slots[0];
static int theirs = -1;
static unsigned events;

static void on_event(void *owner, const struct slot_event *event)
{
	(void)owner;
	(void)event;
	events++;
}

bool warden_is_up(void)
{
	return false;
}

pid_t warden_pid(void)
{
	return 0;
}

uint64_t warden_down_ms(void)
{
	return 0;
}

void warden_tick(void)
{
}

int warden_start(void)
{
	return 0;
}

int warden_clone(unsigned number, int other_end)
{
	(void)number;
	(void)other_end;
	return -1;
}

void warden_reaped(int wait_status)
{
	(void)wait_status;
}

int warden_clear(void)
{
	return -1;
}

void warden_stop(void)
{
}

void warden_kill(void)
{
}

void orphans_look(void)
{
}

bool orphans_only_die(void)
{
	return false;
}

bool orphans_left(void)
{
	return false;
}

bool orphans_wait(void)
{
	return false;
}

void oom_open(void)
{
}

uint64_t oom_kills(void)
{
	return 0;
}

static void none(struct loop_source *source, uint32_t happened)
{
	(void)source;
	(void)happened;
}

static void begin(void)
{
	cr_assert_eq(loop_init(&loop), 0);
	pool.loop = &loop;
	pool.config = &config;
	pool.event = on_event;
	pool_start();
}

TestSuite(slots_reports, .init = begin, .timeout = 20);

/* A slot that is ready and idle. */
static void idle(void)
{
	int ours;

	fd_close(&theirs);
	cr_assert_eq(slot_pair(&ours, &theirs), 0);
	*slot = (struct pool_slot){.place = POOL_IDLE, .said = POOL_SAID_EMPTY, .ready = true, .pidfd = -1};
	slot->source = (struct loop_source){.fd = ours, .ready = none, .owner = slot};
	cr_assert_eq(loop_add(&loop, &slot->source, EPOLLIN), 0);
}

static void run(uint32_t missing)
{
	const int fds[3] = {0, 1, 2};
	const struct slot_run r = {.command_len = 1 + missing, .given = (const uint8_t *)"x", .given_len = 1};

	idle();
	cr_assert_eq(slots_take(), 0);
	cr_assert_eq(slots_run(0, &r, fds, fds), 0);
}

/* True: believed. False: the slot is beyond use. */
static bool says(enum slot_report_type type)
{
	struct slot_report r = {.type = type};

	if (type == SLOT_REPORT_START_FAILED)
		r.value = OUTCOME_START_VALUE(START_EXEC, 2);
	if (type == SLOT_REPORT_CLONED)
		r.pid = 1;
	cr_assert_eq(slot_report_send(theirs, &r, true), 0);
	pool_drain(slot);
	return slot->source.fd >= 0;
}

enum stage { NEW, IDLE, LOADING, LOADED, STARTED, EXITED, MINDER, KILLED_LOADING, KILLED, OVER, STAGES };

static void reach(enum stage stage)
{
	if (stage <= IDLE)
		idle();
	else
		run(stage == LOADING || stage == KILLED_LOADING);
	if (stage == NEW)
		slot->ready = false;
	if (stage >= STARTED && stage != KILLED_LOADING)
		cr_assert(says(SLOT_REPORT_STARTED));
	if (stage == EXITED || stage == MINDER || stage == OVER)
		cr_assert(says(SLOT_REPORT_EXITED));
	if (stage == MINDER)
		slots_mind(0);
	if (stage == OVER)
		cr_assert(says(SLOT_REPORT_EMPTY));
	if (stage == KILLED || stage == KILLED_LOADING)
		slots_kill(0);
}

Test(slots_reports, are_believed_in_their_turn_only)
{
	/* In the order of enum stage. */
	static const char *const may[SLOT_REPORT_LAST - SLOT_REPORT_READY + 1] = {
	    [0] = "x.........", /* SLOT_REPORT_READY */
	    [SLOT_REPORT_TOOK - SLOT_REPORT_READY] = "..x....x..",
	    [SLOT_REPORT_STARTED - SLOT_REPORT_READY] = "...x......",
	    [SLOT_REPORT_START_FAILED - SLOT_REPORT_READY] = "...x......",
	    [SLOT_REPORT_EXITED - SLOT_REPORT_READY] = "....x...x.",
	    [SLOT_REPORT_EMPTY - SLOT_REPORT_READY] = ".....xxxx.",
	    [SLOT_REPORT_STILL_ALIVE - SLOT_REPORT_READY] = ".....xxxx.",
	    [SLOT_REPORT_MINDING - SLOT_REPORT_READY] = ".....xx...",
	    [SLOT_REPORT_PONG - SLOT_REPORT_READY] = ".xxxxxxxxx",
	    [SLOT_REPORT_WARDEN - SLOT_REPORT_READY] = "..........",
	    [SLOT_REPORT_CLONED - SLOT_REPORT_READY] = "..........",
	    [SLOT_REPORT_CLEARED - SLOT_REPORT_READY] = "..........",
	};

	for (unsigned type = SLOT_REPORT_READY; type <= SLOT_REPORT_LAST; type++) {
		for (enum stage stage = NEW; stage < STAGES; stage++) {
			reach(stage);
			cr_expect_eq(says(type), may[type - SLOT_REPORT_READY][stage] == 'x',
				     "report %u at stage %u", type, stage);
		}
	}
}

Test(slots_reports, after_one_that_was_a_lie_are_not_read)
{
	run(0);
	events = 0;
	cr_assert_eq(slot_report_send(theirs, &(struct slot_report){.type = SLOT_REPORT_EMPTY}, true), 0);
	cr_assert_eq(slot_report_send(theirs, &(struct slot_report){.type = SLOT_REPORT_STARTED}, true), 0);
	pool_drain(slot);
	cr_assert_lt(slot->source.fd, 0);
	cr_assert_eq(events, 0);
}
