/* execd's side of the warden: starts it, asks it for slots, starts another when it dies. */
#include "execd/slot/warden.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/outcome.h"
#include "execd/slots_pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define WARDEN_START_MS 10000 /* to set itself up */
#define WARDEN_AGAIN_MS 1000u /* between two starts */

static struct {
	struct loop_source source;
	struct loop_timer again;
	pid_t pid;
	bool up;
	uint64_t started_ms;
	uint64_t down_ms; /* for how long, in ticks of the pings; meaningful while not up */
} warden = {.source.fd = -1};

static void close_socket(void)
{
	if (warden.source.fd < 0)
		return;
	loop_del(pool.loop, &warden.source);
	fd_close(&warden.source.fd);
	if (warden.up)
		warden.down_ms = 0;
	warden.up = false;
}

static void on_set_up(uint32_t failed)
{
	warden.up = failed == 0;
	if (!warden.up)
		log_error("commands' world not set up", LOG_U64("step", OUTCOME_START_STEP(failed)),
			  LOG_ERR(OUTCOME_START_ERRNO(failed)));
	pool_renew_all();
	pool_fill();
}

/* 0, or -EPROTO: nothing of ours says that now. */
static int on_report(const struct slot_report *r)
{
	if (r->type == SLOT_REPORT_CLONED && warden.up && r->value < POOL_SIZE)
		pool_on_cloned(r->value, r->pid);
	else if (r->type == SLOT_REPORT_CLEARED && pool.clearing)
		clear_done(r->value);
	else if (r->type == SLOT_REPORT_WARDEN && !warden.up)
		on_set_up(r->value);
	else
		return -EPROTO;
	return 0;
}

static void on_readable(struct loop_source *source, uint32_t events)
{
	struct slot_report r;
	int n;

	(void)source;
	(void)events;
	while (warden.source.fd >= 0 && (n = slot_report_receive(warden.source.fd, &r, NULL)) != -EAGAIN) {
		if (n > 0 && on_report(&r) == 0)
			continue;
		warden_kill();
		close_socket();
	}
}

static int fork_warden(void)
{
	FD_CLOSE int ours = -1;
	FD_CLOSE int theirs = -1;
	int err = slot_pair(&ours, &theirs);
	pid_t pid;

	if (err < 0)
		return err;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		warden_main(theirs, &pool.world);
	warden.pid = pid;
	warden.started_ms = clock_now_ms();
	warden.source = (struct loop_source){.fd = ours, .ready = on_readable};
	err = loop_add(pool.loop, &warden.source, EPOLLIN);
	if (err < 0)
		return err;
	fd_steal(&ours);
	return 0;
}

static void start_again(struct loop_timer *timer, uint64_t now_ms)
{
	int err = pool.closing || warden.pid != 0 ? 0 : fork_warden();

	if (err < 0) {
		log_error("no warden", LOG_ERR(err));
		loop_timer_set(pool.loop, timer, now_ms + WARDEN_AGAIN_MS);
	}
}

int warden_start(void)
{
	struct pollfd p;
	int err = fork_warden();

	if (err < 0)
		return err;
	warden.again = (struct loop_timer){.fire = start_again};
	p = (struct pollfd){.fd = warden.source.fd, .events = POLLIN};
	if (poll(&p, 1, WARDEN_START_MS) != 1)
		return -ETIMEDOUT;
	on_readable(&warden.source, 0);
	return warden.up ? 0 : -EPERM;
}

bool warden_is_up(void)
{
	return warden.up;
}

uint64_t warden_down_ms(void)
{
	return warden.up ? 0 : warden.down_ms;
}

void warden_tick(void)
{
	warden.down_ms += LIMIT_SLOT_PING_MS;
}

pid_t warden_pid(void)
{
	return warden.pid;
}

int warden_clone(unsigned number, int other_end)
{
	struct slot_order order = {
	    .type = SLOT_ORDER_CLONE, .value = number, .fds = {other_end}, .fd_count = 1};

	return slot_order_send(warden.source.fd, &order);
}

int warden_clear(void)
{
	return slot_order_send(warden.source.fd, &(struct slot_order){.type = SLOT_ORDER_CLEAR});
}

/* What it was asked for and did not answer is lost; what it cloned unanswered ends by the end of its socket.
 */
static void forget_asked(void)
{
	for (unsigned i = 0; i < POOL_SIZE; i++) {
		if (pool.slots[i].place == POOL_STARTING && pool.slots[i].pid == 0)
			pool_free(&pool.slots[i]);
	}
}

void warden_reaped(int wait_status)
{
	uint64_t now = clock_now_ms(), again = warden.started_ms + WARDEN_AGAIN_MS;

	if (warden.source.fd >= 0)
		on_readable(&warden.source, 0);
	close_socket();
	warden.pid = 0;
	forget_asked();
	clear_failed();
	if (pool.closing)
		return;
	log_warn("warden died", LOG_I64("status", wait_status));
	loop_timer_set(pool.loop, &warden.again, again > now ? again : now);
}

void warden_kill(void)
{
	if (warden.pid > 0)
		kill(warden.pid, SIGKILL);
}

void warden_stop(void)
{
	loop_timer_stop(pool.loop, &warden.again);
	close_socket();
}
