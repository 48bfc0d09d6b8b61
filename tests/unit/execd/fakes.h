/* The decision core's whole outside: slots, netd, time and the audit trail, all fakes. Included once by each
 * test program; its definitions take the place of execd.a's at link time. What the core does is written to
 * one trace, in order, so that a test reads like a protocol. */
#ifndef TESTS_UNIT_EXECD_FAKES_H
#define TESTS_UNIT_EXECD_FAKES_H

#include "common/clock.h"
#include "common/log.h"
#include "common/loop.h"
#include "execd/audit.h"
#include "execd/config.h"
#include "execd/execs.h"
#include "execd/inflight.h"
#include "execd/records.h"
#include "execd/slots.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FAKE_SLOTS (2 * LIMIT_CONCURRENT + LIMIT_MINDERS)

static struct {
	uint64_t now_ms;
	struct loop loop;
	struct config config;

	char trace[16384];
	size_t traced;
	bool tracing;

	/* Slots: those below max_concurrent exist at start; SLOT_READY makes more. */
	enum { FAKE_ABSENT, FAKE_IDLE, FAKE_TAKEN, FAKE_ABANDONED } slots[FAKE_SLOTS];
	bool replaced;    /* those that are abandoned */
	unsigned minders; /* that can be given up */
	int pipes_error;
	int run_error;
	int command_error;
	char command[128]; /* what the slot was given last, as far as it goes */

	/* netd. */
	bool full; /* the channel takes nothing */
	int started_error;
	struct channel_ended ended; /* the last */

	/* For tests that keep a model of their own: what was called, for whom; NULL: nobody looks. outcome is
	 * that of "ended", "replay" and "refused". */
	void (*slot_called)(const char *what, unsigned slot, const struct slot_run *run);
	void (*netd_told)(const char *what, uint64_t req_id, const struct outcome *outcome);

	unsigned audited[4]; /* start, end, refuse, replay */
	unsigned idle_calls;
} fake;

uint64_t clock_now_ms(void)
{
	return fake.now_ms;
}

/* --- the trace --- */

__attribute__((format(printf, 1, 2))) static inline void trace(const char *format, ...)
{
	va_list ap;
	int n;

	if (!fake.tracing)
		return;
	va_start(ap, format);
	n = vsnprintf(&fake.trace[fake.traced], sizeof fake.trace - fake.traced, format, ap);
	va_end(ap);
	cr_assert(n >= 0 && (size_t)n < sizeof fake.trace - fake.traced);
	fake.traced += (size_t)n;
}

/* All that happened since the last look, each step ending in a semicolon. */
#define expect(text)                                                                                         \
	do {                                                                                                 \
		cr_assert_str_eq(fake.trace, text, "got: %s\nnot: %s", fake.trace, text);                    \
		fake.traced = 0;                                                                             \
		fake.trace[0] = '\0';                                                                        \
	} while (0)

static inline void forget_trace(void)
{
	fake.traced = 0;
	fake.trace[0] = '\0';
}

static inline void slot_called(const char *what, unsigned slot, const struct slot_run *run)
{
	if (fake.slot_called)
		fake.slot_called(what, slot, run);
}

static inline void netd_told(const char *what, uint64_t req_id, const struct outcome *outcome)
{
	if (fake.netd_told)
		fake.netd_told(what, req_id, outcome);
}

/* --- slots --- */

unsigned slots_idle(void)
{
	unsigned idle = 0;

	for (size_t i = 0; i < FAKE_SLOTS; i++)
		idle += fake.slots[i] == FAKE_IDLE;
	return idle;
}

int slots_take(void)
{
	for (int i = 0; i < (int)FAKE_SLOTS; i++) {
		if (fake.slots[i] != FAKE_IDLE)
			continue;
		fake.slots[i] = FAKE_TAKEN;
		return i;
	}
	return -EAGAIN;
}

int slots_pipes(int ours[3], int theirs[3])
{
	if (fake.pipes_error)
		return fake.pipes_error;
	for (int i = 0; i < 3; i++) {
		ours[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
		theirs[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
	}
	return 0;
}

int slots_run(unsigned slot, const struct slot_run *run, const int ours[3], const int theirs[3])
{
	cr_assert(fake.slots[slot] == FAKE_TAKEN && ours[0] >= 0 && theirs[2] >= 0);
	snprintf(fake.command, sizeof fake.command, "%.*s", (int)run->given_len,
		 run->given_len > 0 ? (const char *)run->given : "");
	trace("run %u id=%llu %u/%u;", slot, (unsigned long long)run->req_id, run->given_len,
	      run->command_len);
	if (fake.run_error == 0)
		slot_called("run", slot, run);
	return fake.run_error;
}

int slots_command(unsigned slot, const uint8_t *piece, size_t size)
{
	cr_assert(fake.slots[slot] == FAKE_TAKEN && piece);
	trace("feed %u %zu;", slot, size);
	slot_called("feed", slot, &(struct slot_run){.given_len = (uint32_t)size});
	return fake.command_error;
}

void slots_kill(unsigned slot)
{
	cr_assert(fake.slots[slot] == FAKE_TAKEN);
	trace("kill %u;", slot);
	slot_called("kill", slot, NULL);
}

void slots_release(unsigned slot)
{
	cr_assert(fake.slots[slot] == FAKE_TAKEN || fake.slots[slot] == FAKE_ABANDONED);
	fake.slots[slot] = FAKE_IDLE;
	trace("release %u;", slot);
	slot_called("release", slot, NULL);
}

void slots_mind(unsigned slot)
{
	cr_assert(fake.slots[slot] == FAKE_TAKEN);
	fake.slots[slot] = FAKE_ABSENT;
	trace("mind %u;", slot);
	slot_called("mind", slot, NULL);
}

void slots_abandon(unsigned slot)
{
	cr_assert(fake.slots[slot] == FAKE_TAKEN);
	fake.slots[slot] = FAKE_ABANDONED;
	trace("abandon %u;", slot);
	slot_called("abandon", slot, NULL);
}

bool slots_replaced(unsigned slot)
{
	return slot < FAKE_SLOTS && fake.slots[slot] == FAKE_ABANDONED && fake.replaced;
}

bool slots_give_up_minder(void)
{
	trace("give up;");
	return fake.minders > 0 && fake.minders--;
}

static inline void slot_event(struct slot_event event)
{
	execs_on_slot(NULL, &event);
}

#define slot_says(k, n, ...) slot_event((struct slot_event){.kind = (k), .slot = (n), ##__VA_ARGS__})

static inline void slot_exits(unsigned slot, int code)
{
	slot_says(SLOT_LEADER_EXITED, slot, .wait_status = code << 8);
}

static inline void slot_is_killed(unsigned slot)
{
	slot_says(SLOT_LEADER_EXITED, slot, .wait_status = 9, .by_kill = true);
}

/* A new slot in the place of one that is used up. */
static inline void slot_ready(unsigned slot)
{
	cr_assert(fake.slots[slot] == FAKE_ABSENT);
	fake.slots[slot] = FAKE_IDLE;
	slot_says(SLOT_READY, slot);
}

/* --- netd --- */

static inline const char *outcome_text(const struct outcome *o)
{
	static char text[64];

	snprintf(text, sizeof text, "%s:%u", outcome_reason(o), o->value);
	return text;
}

int records_fetch(uint64_t req_id, uint32_t offset)
{
	if (fake.full)
		return -EAGAIN;
	trace("fetch %llu@%u;", (unsigned long long)req_id, offset);
	netd_told("fetch", req_id, NULL);
	return 0;
}

int records_started(uint64_t req_id, const int fds[3])
{
	cr_assert(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0);
	if (fake.full)
		return -EAGAIN;
	trace("started %llu;", (unsigned long long)req_id);
	if (fake.started_error == 0)
		netd_told("started", req_id, NULL);
	return fake.started_error;
}

int records_left(uint64_t req_id)
{
	if (fake.full)
		return -EAGAIN;
	trace("left %llu;", (unsigned long long)req_id);
	netd_told("left", req_id, NULL);
	return 0;
}

int records_ended(uint64_t req_id, const struct channel_ended *ended, bool truncated)
{
	static const char *const readings[] = {"nothing", "empty", "keep", "killed"};

	cr_assert(outcome_valid(&ended->outcome));
	if (fake.full)
		return -EAGAIN;
	fake.ended = *ended;
	trace("ended %llu %s %s%s;", (unsigned long long)req_id, outcome_text(&ended->outcome),
	      readings[ended->reading], truncated ? " truncated" : "");
	netd_told("ended", req_id, &ended->outcome);
	return 0;
}

void records_admitted(uint64_t req_id)
{
	trace("admitted %llu;", (unsigned long long)req_id);
	netd_told("admitted", req_id, NULL);
}

void records_duplicate(uint64_t req_id)
{
	trace("duplicate %llu;", (unsigned long long)req_id);
	netd_told("duplicate", req_id, NULL);
}

void records_replay(uint64_t req_id, const struct outcome *outcome, bool truncated)
{
	trace("replay %llu %s%s;", (unsigned long long)req_id, outcome_text(outcome),
	      truncated ? " truncated" : "");
	netd_told("replay", req_id, outcome);
}

void records_refused(uint64_t req_id, const struct outcome *outcome)
{
	trace("refused %llu %u;", (unsigned long long)req_id, outcome->value);
	netd_told("refused", req_id, outcome);
}

/* An Exec whose fingerprint is all work. */
struct fake_exec {
	uint64_t id;
	uint8_t work;
	const char *command; /* inline; NULL: len bytes to be fetched */
	uint32_t len;
	uint32_t timeout_s;
	uint8_t bad;
};

static inline void exec_comes(struct fake_exec f)
{
	struct channel_exec e = {
	    .timeout_s = f.timeout_s,
	    .command_len = f.command ? (uint32_t)strlen(f.command) : f.len,
	    .bad = f.bad,
	};

	memset(e.fingerprint, f.work, sizeof e.fingerprint);
	execs_on_exec(f.id, &e, (const uint8_t *)f.command);
}

#define exec(i, w, ...) exec_comes((struct fake_exec){.id = (i), .work = (w), ##__VA_ARGS__})

/* The usual one: a short command, inline, all of it work 1. */
static inline void exec_short(uint64_t id)
{
	exec(id, 1, .command = "true");
}

static inline int command_comes(uint64_t id, uint32_t offset, uint32_t size)
{
	static uint8_t bytes[LIMIT_RECORD];
	const char *why = NULL;
	int err = execs_on_command(id, offset, bytes, size, &why);

	cr_assert(err == 0 || (err == -EPROTO && why));
	return err;
}

static inline int drained_comes(uint64_t id, bool truncated)
{
	struct channel_drained d = {.bytes_out = 5};
	const char *why = NULL;
	int err = execs_on_drained(id, truncated, &d, &why);

	cr_assert(err == 0 || (err == -EPROTO && why));
	return err;
}

static inline void drained(uint64_t id)
{
	cr_assert_eq(drained_comes(id, false), 0);
}

static inline int quiet_comes(uint64_t id)
{
	const char *why = NULL;
	int err = execs_on_quiet(id, &why);

	cr_assert(err == 0 || (err == -EPROTO && why));
	return err;
}

static inline void channel_takes_again(void)
{
	fake.full = false;
	execs_channel_writable();
}

/* --- the rest --- */

void audit_exec(const char *event, uint64_t req_id, uint32_t command_len,
		const uint8_t fingerprint[CHANNEL_FINGERPRINT], const struct outcome *outcome, uint64_t ms)
{
	(void)req_id, (void)command_len, (void)fingerprint, (void)outcome, (void)ms;
	fake.audited[strcmp(event, "start") == 0    ? 0
		     : strcmp(event, "end") == 0    ? 1
		     : strcmp(event, "refuse") == 0 ? 2
						    : 3]++;
}

static inline void on_idle(void *owner)
{
	(void)owner;
	fake.idle_calls++;
	trace("idle;");
}

/* Time passes, and what was due in it is done. */
static inline void pass_ms(uint64_t ms)
{
	fake.now_ms += ms;
	cr_assert_eq(loop_pass(&fake.loop, 0), 0);
}

static inline void begin(uint32_t max_concurrent)
{
	log_init("execd", LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	fake.now_ms = 1000;
	fake.tracing = true;
	fake.config.max_concurrent = max_concurrent;
	for (uint32_t i = 0; i < max_concurrent; i++)
		fake.slots[i] = FAKE_IDLE;
	cr_assert_eq(loop_init(&fake.loop), 0);
	cr_assert_eq(execs_init(&fake.loop, &fake.config), 0);
}

static inline size_t open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	cr_assert(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Nothing runs, waits or is left over. */
static inline void is_at_rest(void)
{
	const struct execs_counters *c = execs_counters();

	cr_assert_eq(c->running, 0);
	cr_assert_eq(c->waiting, 0);
	cr_assert(!inflight_next(NULL));
	cr_assert(!fake.loop.timers);
}

/* One exec from its start to its end, by exit code. */
static inline void run_to_end(uint64_t id, uint8_t work, int code)
{
	exec(id, work, .command = "true");
	slot_says(SLOT_STARTED, 0);
	slot_exits(0, code);
	slot_says(SLOT_EMPTY, 0);
	drained(id);
	forget_trace();
}

#endif
