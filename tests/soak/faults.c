/* What goes wrong on purpose. */
#include "tests/soak/soak.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <signal.h>

#define ATTACH_MS 60000u /* the backoff's longest wait, and a slow machine */

static struct relay_worker *attached(void)
{
	return soak.stage->attached;
}

static void kill_netd(void)
{
	static const int signals[] = {SIGKILL, SIGSEGV, SIGABRT};
	int number = signals[dice(3)];
	pid_t netd = worker_netd(&soak.stage->worker);

	soak_note("netd gets signal %d", number);
	soak.totals->netd_kills++;
	if (netd <= 0)
		return;
	soak.cut = true;
	process_kill(netd, number);
}

static void cut(void)
{
	static const enum relay_cut ways[] = {RELAY_CUT_CLOSE, RELAY_CUT_RESET, RELAY_CUT_MIDDLE};
	enum relay_cut way = ways[dice(3)];

	soak_note("cut %d", (int)way);
	soak.totals->cuts++;
	soak.cut = true;
	relay_cut(attached(), way);
}

static void end_stream(void)
{
	uint32_t how = dice(4);

	soak_note("the stream ends, way %u", how);
	soak.totals->cuts++;
	soak.cut = true;
	if (how == 0)
		relay_end_stream(attached(), 0, NULL);
	else if (how == 1)
		relay_end_stream(attached(), 14, "soaked");
	else if (how == 2)
		relay_reset_stream(attached(), NGHTTP2_CANCEL);
	else
		relay_calm(attached());
}

static void goaway(void)
{
	soak_note("goaway");
	soak.totals->goaways++;
	soak.goaway = true;
	if (!relay_sent(attached()))
		model_overtaken();
	relay_goaway(attached());
}

static void stall(void)
{
	soak_note("stall");
	soak.totals->stalls++;
	soak.stalled = true;
	relay_stall(attached(), true);
}

static void slow_down(void)
{
	uint32_t how = dice(4);

	soak_note("slow, way %u", how);
	soak.totals->stalls++;
	soak.stalled = true;
	if (how == 0)
		relay_hold_window(attached(), true);
	else if (how == 1)
		relay_read_rate(attached(), 100000 + dice(1000000));
	else if (how == 2)
		relay_shrink_window(attached(), dice(5000));
	else if (relay_sent(attached()))
		relay_byte_frames(attached(), true);
}

static void hit_slot(void)
{
	pid_t pids[256];
	size_t n = process_children(soak.stage->worker.pid, "slot", pids, 256);
	int number = dice_chance(70) ? SIGKILL : SIGSTOP;
	uint32_t which = dice(256);

	soak_note("a slot gets signal %d", number);
	soak.totals->slot_kills++;
	model_hit();
	if (n > 0)
		process_kill(pids[which % n], number);
}

static void kill_warden(void)
{
	pid_t warden = process_child(soak.stage->worker.pid, "warden");

	soak_note("the warden gets SIGKILL");
	soak.totals->warden_kills++;
	soak.warden_killed = true;
	model_hit();
	if (warden > 0)
		process_kill(warden, SIGKILL);
}

/* The next dials meet nobody, or a relay that ends each stream. */
static void refuse_dials(void)
{
	soak_note("dials are refused");
	if (dice_chance(50))
		relay_deaf(soak.stage->relay);
	else
		relay_manners(soak.stage->relay)->refuse = true;
	cut();
}

static const struct {
	void (*act)(void);
	uint32_t weight;
} faults[] = {
    {kill_netd, 3}, {cut, 4},      {end_stream, 3},  {goaway, 3},       {stall, 4},
    {slow_down, 5}, {hit_slot, 3}, {kill_warden, 1}, {refuse_dials, 1},
};

#define FAULTS (sizeof faults / sizeof *faults)

void faults_step(void)
{
	uint32_t sum = 0, at;
	size_t i = 0;

	for (size_t k = 0; k < FAULTS; k++)
		sum += faults[k].weight;
	for (at = dice(sum); at >= faults[i].weight; i++)
		at -= faults[i].weight;
	faults[i].act();
}

void faults_calm(void)
{
	if (!soak.stalled || !attached()->stream)
		return;
	soak.stalled = false;
	relay_byte_frames(attached(), false);
	relay_hold_window(attached(), false);
	relay_shrink_window(attached(), 65535);
	relay_read_rate(attached(), 0);
	relay_stall(attached(), false);
}

/* Redelivery is the relay's choice. Of work under one id, the last. */
static void send_again(unsigned lost_attach)
{
	unsigned count = soak.count;

	for (unsigned i = 0; i < count; i++) {
		struct soak_exec *e = &soak.execs[i];
		uint32_t chance = dice_about(e->request.req_id + soak.step * 1000003u, 100);

		if (e->attach != lost_attach || !model_is_last(e))
			continue;
		if (chance < (e->decided ? 15u : 70u))
			model_send_again(e);
	}
}

void faults_recover(void)
{
	unsigned before = attached()->number;
	uint64_t start = clock_now_ms();

	if (attached()->stream)
		return;
	if (!soak.cut && !soak.goaway)
		soak_blame("the connection was lost, though nobody cut it");
	soak_check();
	model_lost();
	soak_run(10);
	relay_manners(soak.stage->relay)->refuse = false;
	relay_deaf(soak.stage->relay);
	cr_assert_eq(relay_listen(soak.stage->relay), 0);
	soak.stage->attached = relay_wait_attached(soak.stage->relay, before, ATTACH_MS);
	soak_check();
	cr_assert(soak.stage->attached, "no worker has attached");
	soak_note("attached again after %" PRIu64 " ms", clock_now_ms() - start);
	send_again(before);
}
