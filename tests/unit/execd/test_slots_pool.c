/* The pings of execd's slots, by a clock of the test's own. The slot's end of the socket is ours. */
#include "execd/slots_pool.h"

#include "common/clock.h"
#include "common/fd.h"
#include "tests/lib/bound.h"
#include "tests/lib/process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t now = 1000;
static struct loop loop;
static struct pool_slot *slot;
static pid_t process; /* stands for the slot's */
static int other = -1;

uint64_t clock_now_ms(void)
{
	return now;
}

uint64_t clock_now_us(void)
{
	return now * 1000;
}

static void on_event(void *owner, const struct slot_event *event)
{
	(void)owner, (void)event;
}

/* A slot with an exec. */
static void prepare(void)
{
	int ours;

	process = bound_fork();
	cr_assert_geq(process, 0);
	if (process == 0) {
		for (;;)
			pause();
	}
	cr_assert_eq(loop_init(&loop), 0);
	pool.loop = &loop;
	pool.event = on_event;
	pool.closing = true; /* no other slot is asked for */
	pool_start();
	slot = &pool.slots[0];
	cr_assert_eq(slot_pair(&ours, &other), 0);
	slot->source.fd = ours;
	slot->place = POOL_TAKEN;
	slot->pid = process;
	slot->ready = true;
	slot->running = true;
	slot->said = POOL_SAID_NOTHING;
}

static void end(void)
{
	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
	fd_close(&slot->source.fd);
	fd_close(&other);
	loop_close(&loop);
}

TestSuite(slots_pool, .timeout = 10, .init = prepare, .fini = end);

static void give_command(void)
{
	FD_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct slot_order run = {.type = SLOT_ORDER_RUN, .value = 8, .fd_count = SLOT_RUN_FDS};

	for (size_t i = 0; i < SLOT_RUN_FDS; i++)
		run.fds[i] = null;
	run.bytes = (const uint8_t *)"true";
	run.size = 4;
	slot->missing = 4;
	cr_assert_eq(pool_send(slot, &run), 0);
}

static void report(enum slot_report_type type)
{
	cr_assert_eq(slot_report_send(other, &(struct slot_report){.type = type}, true), 0);
	pool_drain(slot);
}

static void pass_interval(void)
{
	now += LIMIT_SLOT_PING_MS;
	cr_assert_eq(loop_pass(&loop, 0), 0);
}

/* The type of the next order that the slot finds; 0: none. */
static int next_order(void)
{
	static uint8_t buf[SLOT_ORDER_MAX];
	struct slot_order order;
	int n = slot_order_receive(other, buf, true, &order);

	if (n == -EAGAIN)
		return 0;
	cr_assert_eq(n, 1);
	for (size_t i = 0; i < order.fd_count; i++)
		close(order.fds[i]);
	return (int)order.type;
}

Test(slots_pool, pings_each_interval)
{
	cr_assert_eq(next_order(), 0);
	for (int i = 0; i < 2 * (int)(LIMIT_SLOT_SILENT_MS / LIMIT_SLOT_PING_MS); i++) {
		pass_interval();
		cr_assert_eq(next_order(), SLOT_ORDER_PING, "%d", i);
		cr_assert_eq(next_order(), 0);
		report(SLOT_REPORT_PONG);
	}
	cr_assert(process_lives(process));
}

/* Whether the slot has read a command is judged by the last order: a ping behind it would hide that. */
Test(slots_pool, holds_pings_back_behind_a_command_without_an_answer)
{
	give_command();
	cr_assert_eq(next_order(), SLOT_ORDER_RUN);
	pass_interval();
	pass_interval();
	cr_assert_eq(next_order(), 0, "a ping behind the start of a command");
	report(SLOT_REPORT_TOOK);
	pass_interval();
	cr_assert_eq(next_order(), SLOT_ORDER_PING);
	report(SLOT_REPORT_PONG);
	cr_assert_eq(pool_send(slot, &(struct slot_order){.type = SLOT_ORDER_PIECE,
							  .bytes = (const uint8_t *)"true",
							  .size = 4}),
		     0);
	slot->missing = 0;
	cr_assert_eq(next_order(), SLOT_ORDER_PIECE);
	pass_interval();
	cr_assert_eq(next_order(), 0, "a ping behind the rest of a command");
	report(SLOT_REPORT_STARTED);
	pass_interval();
	cr_assert_eq(next_order(), SLOT_ORDER_PING);
}

static void expect_silent_after(unsigned intervals)
{
	for (unsigned i = 0; i < intervals; i++) {
		pass_interval();
		cr_assert(process_lives(process), "after %u intervals", i + 1);
	}
	pass_interval();
	cr_assert(process_wait_dead(NULL, process, 5000));
}

Test(slots_pool, takes_a_command_without_an_answer_for_silence)
{
	give_command();
	expect_silent_after(LIMIT_SLOT_SILENT_MS / LIMIT_SLOT_PING_MS);
	cr_assert_eq(next_order(), SLOT_ORDER_RUN);
	cr_assert_eq(next_order(), 0);
}

Test(slots_pool, takes_pings_without_an_answer_for_silence)
{
	expect_silent_after(LIMIT_SLOT_SILENT_MS / LIMIT_SLOT_PING_MS);
}

Test(slots_pool, is_barren_after_a_long_time_without_any_slot)
{
	slot->place = POOL_FREE;
	for (unsigned i = 0; i < LIMIT_NO_SLOT_MS / LIMIT_SLOT_PING_MS; i++) {
		cr_assert_not(pool_is_barren(), "%u", i);
		pass_interval();
	}
	cr_assert(pool_is_barren());
	slot->place = POOL_IDLE;
	pass_interval();
	cr_assert_not(pool_is_barren());
}
