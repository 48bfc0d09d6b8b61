/* The life of netd against a fake channel, a fake clock and a child that only waits: when one is started,
 * told, killed, and when the next one comes. */
#include "execd/netd_proc.h"

#include "common/clock.h"
#include "common/limits.h"
#include "execd/execs.h"
#include "execd/netd_image.h"
#include "execd/netd_spawn.h"
#include "execd/records.h"
#include "execd/slots.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the fakes --- */

static uint64_t now_ms = 1000;
static struct {
	const struct records_events *events;
	bool open, jail, dial, drain;
	int fd;
	int set_error;
	uint64_t frames;
	uint32_t numbers[256];
	char texts[256][256];
} channel;
static unsigned spawned, spawn_errors, lost, goaways, swept;
static pid_t child, spared;
static int netd_end = -1; /* of the channel */
static void (*goaway_idle)(void *owner);

uint64_t clock_now_ms(void)
{
	return now_ms;
}

uint64_t clock_now_us(void)
{
	return now_ms * 1000;
}

int records_open(struct loop *l, int fd, const struct records_events *events, void *owner)
{
	(void)l;
	(void)owner;
	channel.events = events;
	channel.open = true;
	channel.jail = channel.dial = channel.drain = false;
	channel.frames = 0;
	channel.fd = fd;
	return 0;
}

void records_close(void)
{
	if (channel.open)
		close(channel.fd);
	channel.open = false;
}

bool records_is_open(void)
{
	return channel.open;
}

int records_fd(void)
{
	return channel.open ? channel.fd : -1;
}

uint64_t records_frames(void)
{
	return channel.frames;
}

int records_set(enum channel_key key, const void *value, size_t size)
{
	memset(channel.texts[key], 0, sizeof channel.texts[key]);
	memcpy(channel.texts[key], value,
	       size < sizeof channel.texts[key] ? size : sizeof channel.texts[key] - 1);
	return channel.set_error;
}

int records_set_u32(enum channel_key key, uint32_t value)
{
	channel.numbers[key] = value;
	return channel.set_error;
}

int records_set_fd(enum channel_key key, int fd)
{
	channel.numbers[key] = (uint32_t)fd;
	return channel.set_error;
}

int records_jail(void)
{
	channel.jail = true;
	return 0;
}

int records_dial(void)
{
	channel.dial = true;
	return 0;
}

void records_drain(void)
{
	channel.drain = true;
}

void execs_stream_lost(void)
{
	lost++;
}

void execs_goaway(void (*idle)(void *owner), void *owner)
{
	(void)owner;
	goaways++;
	goaway_idle = idle;
}

void slots_spare(pid_t pid)
{
	spared = pid;
}

void slots_sweep(void)
{
	swept++;
}

int netd_image_open(struct netd_image *ret)
{
	*ret = (struct netd_image){.fd = -1};
	return 0;
}

pid_t netd_spawn(const struct netd_image *image, const struct config *config, int channel_fd, int null_fd)
{
	(void)image;
	(void)config;
	(void)null_fd;
	if (netd_end >= 0)
		close(netd_end);
	netd_end = fcntl(channel_fd, F_DUPFD_CLOEXEC, 0);
	if (spawn_errors > 0) {
		spawn_errors--;
		return -EAGAIN;
	}
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL);
		for (;;)
			pause();
	}
	cr_assert_gt(child, 0);
	spawned++;
	return child;
}

/* --- the stage --- */

static struct loop loop;
static struct config config;
static struct config_secrets secrets;

static void on_changed(void *owner)
{
	(void)owner;
}

static void pass(void)
{
	cr_assert_eq(loop_pass(&loop, 0), 0);
}

/* All of us were stopped meanwhile. */
static void jump(uint64_t ms)
{
	now_ms += ms;
	pass();
}

/* Each timer in its time. */
static void advance(uint64_t ms)
{
	uint64_t end = now_ms + ms;

	for (;;) {
		uint64_t next = end;

		for (struct loop_timer *t = loop.timers; t; t = t->next)
			next = t->at_ms < next ? t->at_ms : next;
		if (next > now_ms)
			now_ms = next;
		pass();
		if (now_ms == end)
			break;
	}
}

static void setup(void)
{
	char *vars[] = {(char[]){"SANDBOX_TOKEN=tok"}, (char[]){"RELAY_ADDR=relay.example:99"},
			(char[]){"SANDBOX_ID=me"}, NULL};
	struct config_error error;

	cr_assert_eq(config_read(vars, &config, &secrets, &error), 0);
	config.capability_mask = 1 | 16;
	cr_assert_eq(loop_init(&loop), 0);
	cr_assert_eq(netd_proc_init(&loop, &config, &secrets, 1, on_changed, NULL), 0);
	netd_proc_dial();
}

static void teardown(void)
{
	if (child > 0)
		kill(child, SIGKILL);
}

TestSuite(netd_proc, .init = setup, .fini = teardown, .timeout = 20);

/* Ends the child, unless it was killed already, and reports it as main does. The wait status. */
static int reap(bool kill_first)
{
	pid_t pid = child;
	int status;

	child = 0;
	if (kill_first)
		kill(pid, SIGTERM);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(netd_proc_reap(pid, status));
	return status;
}

static void attach(void)
{
	channel.events->jailed(NULL);
	channel.events->attached(NULL);
	cr_assert_eq(netd_proc_view()->state, NETD_PROC_ATTACHED);
}

static void close_channel(void)
{
	records_close();
	channel.events->lost(NULL, NULL);
}

/* Alive for this long, so that the watch stays quiet. */
static void live(uint64_t ms)
{
	for (; ms > 0; ms -= ms < 5000 ? ms : 5000) {
		channel.events->alive(NULL, &(struct channel_alive){0});
		advance(ms < 5000 ? ms : 5000);
	}
}

/* Loses the stream and lets the next netd come. The longest it could take. */
static void next(uint32_t span)
{
	unsigned before = spawned;

	close_channel();
	reap(true);
	advance(span);
	cr_assert_eq(spawned, before + 1, "no netd within %u ms", span);
}

/* --- the tests --- */

Test(netd_proc, is_told_its_settings_and_jailed_before_it_gets_the_token)
{
	cr_assert_eq(spawned, 1);
	cr_assert_eq(spared, child);
	cr_assert(channel.jail);
	cr_assert_str_eq(channel.texts[CHANNEL_KEY_RELAY_HOST], "relay.example");
	cr_assert_eq(channel.numbers[CHANNEL_KEY_RELAY_PORT], 99);
	cr_assert_str_eq(channel.texts[CHANNEL_KEY_SANDBOX_ID], "me");
	cr_assert_str_eq(channel.texts[CHANNEL_KEY_TRUST], "untrusted");
	cr_assert_str_eq(channel.texts[CHANNEL_KEY_CAPABILITY], "python3");
	cr_assert_eq(channel.numbers[CHANNEL_KEY_CAPACITY], 4);
	cr_assert_eq(channel.numbers[CHANNEL_KEY_HEARTBEAT_MS], 15000);
	cr_assert_eq(channel.numbers[CHANNEL_KEY_PING_MS], LIMIT_PING_MS);
	cr_assert_str_eq(channel.texts[CHANNEL_KEY_TOKEN], "");
	cr_assert_not(channel.dial);
	channel.events->jailed(NULL);
	cr_assert_str_eq(channel.texts[CHANNEL_KEY_TOKEN], "tok");
	cr_assert(channel.dial);
	cr_assert_eq(netd_proc_view()->state, NETD_PROC_DIALLING);
}

Test(netd_proc, is_followed_by_another_only_when_it_is_gone)
{
	attach();
	close_channel();
	cr_assert_eq(lost, 1);
	cr_assert_eq(netd_proc_view()->state, NETD_PROC_LEAVING);
	advance(999);
	cr_assert_eq(spawned, 1);
	reap(true);
	cr_assert_eq(spawned, 2);
	cr_assert_eq(spared, child);
}

Test(netd_proc, is_followed_by_another_only_when_the_wait_is_over)
{
	close_channel();
	reap(true);
	cr_assert_eq(spared, 0);
	cr_assert_eq(netd_proc_view()->state, NETD_PROC_WAITING);
	pass();
	cr_assert_eq(spawned, 1);
	advance(1000);
	cr_assert_eq(spawned, 2);
}

Test(netd_proc, that_does_not_end_is_killed)
{
	attach();
	close_channel();
	advance(999);
	cr_assert_eq(waitpid(child, NULL, WNOHANG), 0);
	advance(1);
	cr_assert_eq(WTERMSIG(reap(false)), SIGKILL);
}

Test(netd_proc, is_killed_for_a_violation)
{
	attach();
	records_close();
	channel.events->lost(NULL, "sequence gap");
	cr_assert_eq(swept, 0);
	cr_assert_eq(WTERMSIG(reap(false)), SIGKILL);
	cr_assert_eq(swept, 1);
	cr_assert_eq(lost, 1);
	cr_assert_eq(netd_proc_view()->violations, 1);
	cr_assert_str_eq(netd_proc_view()->last_close, "violation");
}

Test(netd_proc, is_not_swept_after_for_what_the_one_before_did)
{
	attach();
	records_close();
	channel.events->lost(NULL, "sequence gap");
	reap(false);
	cr_assert_eq(swept, 1);
	advance(1000);
	cr_assert_eq(spawned, 2);
	attach();
	reap(true);
	cr_assert_eq(swept, 1);
}

Test(netd_proc, is_killed_when_it_falls_silent)
{
	attach();
	live(LIMIT_ALIVE_MS);
	channel.events->alive(NULL, &(struct channel_alive){.held = 7});
	cr_assert_eq(netd_proc_view()->alive.held, 7);
	advance(LIMIT_ALIVE_LOST_MS - 1);
	cr_assert_eq(lost, 0);
	cr_assert_eq(waitpid(child, NULL, WNOHANG), 0);
	advance(1);
	cr_assert_eq(lost, 1);
	cr_assert_eq(WTERMSIG(reap(false)), SIGKILL);
}

/* Frozen and thawed: netd could say nothing either, and has the rest of its time to. */
Test(netd_proc, is_not_silent_while_all_of_us_were_stopped)
{
	attach();
	jump(60000);
	cr_assert_eq(lost, 0);
	advance(LIMIT_ALIVE_LOST_MS / 2);
	cr_assert_eq(lost, 0);
	jump(60000);
	channel.events->alive(NULL, &(struct channel_alive){0});
	advance(LIMIT_ALIVE_LOST_MS - 1);
	cr_assert_eq(lost, 0);
	advance(1);
	cr_assert_eq(lost, 1);
	reap(false);
}

/* What the channel holds is read within a tick, unless netd keeps us from it by taking nothing. */
Test(netd_proc, has_a_tick_more_where_its_channel_has_unread_records)
{
	attach();
	channel.events->alive(NULL, &(struct channel_alive){0});
	cr_assert_eq(send(netd_end, "x", 1, 0), 1);
	advance(LIMIT_ALIVE_LOST_MS + LIMIT_ALIVE_LOST_MS / 10 - 1);
	cr_assert_eq(lost, 0);
	advance(1);
	cr_assert_eq(lost, 1);
	reap(false);
}

/* row 31 of "right in the field" (tests/contract/test_field.c): the time of 1,000,000 heartbeats. */
Test(netd_proc, is_watched_for_as_long_as_it_lives, .timeout = 300)
{
	now_ms = (1ull << 32) - 60000;
	attach();
	live(1000000ull * LIMIT_HEARTBEAT_MS);
	cr_assert_eq(netd_proc_view()->state, NETD_PROC_ATTACHED);
	cr_assert_eq(spawned, 1);
	/* The last word was 5 s ago. */
	advance(LIMIT_ALIVE_LOST_MS - 5001);
	cr_assert_eq(lost, 0);
	advance(1);
	cr_assert_eq(lost, 1);
	reap(false);
}

Test(netd_proc, is_killed_when_it_never_jails_itself)
{
	advance(LIMIT_ALIVE_LOST_MS - 1);
	cr_assert_eq(lost, 0);
	advance(1);
	cr_assert_eq(lost, 1);
	cr_assert_eq(WTERMSIG(reap(false)), SIGKILL);
}

/* Somebody holds its end of the channel, and talks on. */
Test(netd_proc, is_lost_though_its_end_of_the_channel_outlives_it)
{
	attach();
	reap(true);
	cr_assert_eq(spared, 0);
	advance(999);
	channel.events->alive(NULL, &(struct channel_alive){0});
	cr_assert_eq(lost, 0);
	cr_assert_eq(swept, 0);
	advance(1);
	cr_assert_eq(lost, 1);
	cr_assert_eq(swept, 1);
	cr_assert_eq(netd_proc_view()->violations, 1);
	cr_assert_eq(netd_proc_view()->state, NETD_PROC_WAITING);
	advance(1000);
	cr_assert_eq(spawned, 2);
}

Test(netd_proc, that_stops_is_killed)
{
	pid_t pid = child;

	attach();
	kill(pid, SIGSTOP);
	int status;
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	cr_assert(netd_proc_reap(pid, status));
	cr_assert_eq(WTERMSIG(reap(false)), SIGKILL);
}

/* The seed makes the waits known: attempts come within the doubling span, and some wait is longer than the
 * smallest. */
Test(netd_proc, backs_off_until_a_connection_was_steady)
{
	uint64_t before;
	unsigned count;

	for (uint32_t span = 1000; span <= 16000; span *= 2) {
		attach();
		next(span);
	}
	attach();
	live(LIMIT_STEADY_MS);
	before = now_ms;
	count = spawned;
	close_channel();
	reap(true);
	while (spawned == count)
		advance(10);
	cr_assert_leq(now_ms - before, 1010);
}

Test(netd_proc, backs_off_further_after_a_connection_that_was_not_steady)
{
	for (uint32_t span = 1000; span <= 8000; span *= 2)
		next(span);
	attach();
	live(LIMIT_STEADY_MS - 1);
	close_channel();
	reap(true);
	cr_assert_eq(lost, 5);
	/* With this seed the fifth wait is longer than any first one. */
	advance(1000);
	cr_assert_eq(spawned, 5);
	advance(15000);
	cr_assert_eq(spawned, 6);
}

Test(netd_proc, forgives_after_a_frame)
{
	for (uint32_t span = 1000; span <= 8000; span *= 2)
		next(span);
	attach();
	channel.frames = 1;
	next(1000);
}

Test(netd_proc, comes_at_once_after_a_goaway_to_a_steady_connection)
{
	attach();
	live(LIMIT_STEADY_MS);
	channel.events->goaway(NULL);
	cr_assert_eq(goaways, 1);
	cr_assert_not(channel.drain);
	goaway_idle(NULL);
	cr_assert(channel.drain);
	next(0);
}

Test(netd_proc, waits_after_a_goaway_to_a_young_connection)
{
	attach();
	channel.events->goaway(NULL);
	close_channel();
	reap(true);
	pass();
	cr_assert_eq(spawned, 1);
	advance(1000);
	cr_assert_eq(spawned, 2);
}

/* A second one, or one during the shutdown, would take the place of who waits for the answers. */
Test(netd_proc, hears_one_goaway_and_none_while_it_leaves)
{
	attach();
	channel.events->goaway(NULL);
	channel.events->goaway(NULL);
	cr_assert_eq(goaways, 1);
	next(1000);
	attach();
	netd_proc_stop_dialling();
	channel.events->goaway(NULL);
	cr_assert_eq(goaways, 1);
}

Test(netd_proc, keeps_the_ping_interval_that_was_learnt)
{
	attach();
	channel.events->closed(NULL, &(struct channel_closed){.close_class = CHANNEL_CLOSE_GOAWAY,
							      .ping_ms = LIMIT_PING_CALM_MS});
	next(1000);
	cr_assert_eq(channel.numbers[CHANNEL_KEY_PING_MS], LIMIT_PING_CALM_MS);
	attach();
	channel.events->closed(NULL,
			       &(struct channel_closed){.close_class = CHANNEL_CLOSE_EOF, .ping_ms = 1});
	next(2000);
	cr_assert_eq(channel.numbers[CHANNEL_KEY_PING_MS], LIMIT_PING_CALM_MS);
	attach();
	channel.events->closed(
	    NULL, &(struct channel_closed){.close_class = CHANNEL_CLOSE_EOF, .ping_ms = LIMIT_PING_MS});
	next(4000);
	cr_assert_eq(channel.numbers[CHANNEL_KEY_PING_MS], LIMIT_PING_CALM_MS);
	attach();
	channel.events->closed(NULL, &(struct channel_closed){.close_class = CHANNEL_CLOSE_EOF,
							      .ping_ms = LIMIT_PING_CALM_MS + 1});
	next(8000);
	cr_assert_eq(channel.numbers[CHANNEL_KEY_PING_MS], LIMIT_PING_CALM_MS);
	cr_assert_str_eq(netd_proc_view()->last_close, "eof");
}

/* What a netd has learnt of the relay's addresses is the next one's; one that brought a frame is good. */
Test(netd_proc, keeps_what_was_learnt_of_addresses)
{
	struct channel_closed closed = {.close_class = CHANNEL_CLOSE_STATUS, .address = {[15] = 1}};

	attach();
	channel.events->closed(NULL, &closed);
	next(1000);
	cr_assert_arr_eq(channel.texts[CHANNEL_KEY_BAD_ADDRESS], closed.address, CHANNEL_ADDRESS);
	cr_assert_eq(channel.texts[CHANNEL_KEY_GOOD_ADDRESS][15], 0);
	attach();
	channel.frames = 1;
	closed.address[15] = 2;
	channel.events->closed(NULL, &closed);
	memset(channel.texts, 0, sizeof channel.texts);
	next(2000);
	cr_assert_arr_eq(channel.texts[CHANNEL_KEY_GOOD_ADDRESS], closed.address, CHANNEL_ADDRESS);
	cr_assert_eq(channel.texts[CHANNEL_KEY_BAD_ADDRESS][15], 0);
}

Test(netd_proc, without_usable_credentials_does_not_dial)
{
	snprintf(config.token_file, sizeof config.token_file, "/nonexistent/token");
	channel.events->jailed(NULL);
	cr_assert_not(channel.dial);
	cr_assert_not(channel.open);
	cr_assert_str_eq(netd_proc_view()->last_close, "credentials");
	cr_assert_eq(WTERMSIG(reap(false)), SIGKILL);
	config.token_file[0] = '\0';
	memcpy(secrets.token, "new", 4);
	advance(1000);
	cr_assert_eq(spawned, 2);
	channel.events->jailed(NULL);
	cr_assert_str_eq(channel.texts[CHANNEL_KEY_TOKEN], "new");
}

Test(netd_proc, that_cannot_be_forked_or_told_is_tried_again)
{
	close_channel();
	reap(true);
	spawn_errors = 1;
	advance(1000);
	cr_assert_eq(spawned, 1);
	cr_assert_eq(netd_proc_view()->state, NETD_PROC_WAITING);
	channel.set_error = -EAGAIN;
	advance(2000);
	cr_assert_eq(spawned, 2);
	cr_assert_eq(WTERMSIG(reap(false)), SIGKILL);
	channel.set_error = 0;
	advance(4000);
	cr_assert_eq(spawned, 3);
	cr_assert_eq(netd_proc_view()->state, NETD_PROC_STARTING);
}

Test(netd_proc, leaves_in_good_order_and_does_not_come_back)
{
	attach();
	netd_proc_leave();
	cr_assert(channel.drain);
	cr_assert_not(netd_proc_gone());
	close_channel();
	reap(true);
	cr_assert(netd_proc_gone());
	advance(60000);
	cr_assert_eq(spawned, 1);
}

Test(netd_proc, that_has_no_stream_is_killed_to_leave)
{
	netd_proc_leave();
	cr_assert_not(channel.drain);
	cr_assert_eq(WTERMSIG(reap(false)), SIGKILL);
	close_channel();
	cr_assert(netd_proc_gone());
	advance(60000);
	cr_assert_eq(spawned, 1);
}

Test(netd_proc, leaves_other_children_to_others)
{
	cr_assert_not(netd_proc_reap(child + 1, 0));
}
