#include "execd/netd_proc.h"

#include "common/channel_io.h"
#include "common/clock.h"
#include "common/fd.h"
#include "execd/addresses.h"
#include "execd/backoff.h"
#include "execd/credentials.h"
#include "execd/execs.h"
#include "execd/netd_image.h"
#include "execd/netd_settings.h"
#include "execd/netd_spawn.h"
#include "execd/records.h"
#include "execd/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a netd may take to end by itself once its channel is closed, or once it was told to leave. */
#define EXIT_GRACE_MS  1000u
#define LEAVE_GRACE_MS 5000u

static struct {
	struct loop *loop;
	const struct config *config;
	struct config_secrets *secrets;
	void (*changed)(void *owner);
	void *owner;
	struct netd_image image;
	int null_fd;
	struct backoff backoff;
	struct netd_proc_view view;
	pid_t pid; /* 0: none */
	uint32_t ping_ms;
	bool goaway;
	bool dismissed;               /* by us, who have said why: how it ends says nothing */
	bool stopped;                 /* no further attempt */
	bool suspect;                 /* it broke the rules: it may have left a child */
	bool due;                     /* the wait is over, the old process is not */
	uint8_t close_class;          /* as CLOSED said, 0: it said nothing */
	uint8_t tried[ADDRESS_BYTES]; /* likewise */
	struct address_history addresses;
	struct loop_timer redial;
	struct loop_watch watch; /* ALIVE is missing, or the process does not end */
} np = {.null_fd = -1};

static void dial(void);
static void lose(const char *violation);

static void enter(enum netd_proc_state state)
{
	np.view.state = state;
	np.changed(np.owner);
}

void netd_proc_kill(void)
{
	if (np.pid > 0)
		kill(np.pid, SIGKILL);
}

static void on_watch(struct loop_watch *watch, uint64_t now_ms)
{
	(void)watch;
	(void)now_ms;
	if (records_is_open()) {
		lose(np.pid > 0 ? "silence" : "its end outlived it");
		return;
	}
	if (np.pid == 0)
		return;
	log_warn("netd does not end: killed", LOG_I64("pid", np.pid));
	netd_proc_kill();
}

/* What a dead netd has sent is no sign of life, nor is what somebody sends who holds its end. */
static void watch_for(uint32_t ms)
{
	np.watch.fd = np.pid > 0 ? records_fd() : -1;
	loop_watch_set(np.loop, &np.watch, ms);
}

/* What a dead netd sent, or somebody who holds its end, gives no time. */
static void expect_alive(void)
{
	if (np.pid > 0)
		watch_for(LIMIT_ALIVE_LOST_MS);
}

static void on_redial(struct loop_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
	if (np.pid > 0)
		np.due = true;
	else
		dial();
}

/* How long the connection stood, and what that means for the next attempt. After a GOAWAY there is no
 * penalty: the relay asked for it, but one that asks for it again and again gets the backoff. */
static uint32_t next_wait(uint64_t attached_for_ms, uint32_t *ret_at_most)
{
	uint32_t wait;

	*ret_at_most = 0;
	backoff_ended(&np.backoff, attached_for_ms, records_frames());
	addresses_note(&np.addresses, np.tried, backoff_of_use(attached_for_ms, records_frames()));
	if ((np.goaway || np.close_class == CHANNEL_CLOSE_GOAWAY) && attached_for_ms >= LIMIT_STEADY_MS)
		return 0;
	wait = backoff_next(&np.backoff);
	*ret_at_most = np.backoff.base_ms;
	return wait;
}

/* The attempt is over; its process may still be there. */
static void end_attempt(const char *why)
{
	uint64_t now = clock_now_ms();
	uint64_t attached_for = np.view.attached_since_ms ? now - np.view.attached_since_ms : 0;
	uint32_t at_most = 0;
	uint32_t wait = np.stopped ? 0 : next_wait(attached_for, &at_most);

	log_info(np.view.attached_since_ms ? "stream lost" : "attempt failed", LOG_STR("why", why),
		 LOG_U64("attached_ms", attached_for), LOG_U64("backoff_ms", wait),
		 LOG_U64("backoff_max_ms", at_most));
	np.view.attached_since_ms = 0;
	np.view.last_close = why;
	if (!np.stopped)
		loop_timer_set(np.loop, &np.redial, now + wait);
	if (np.pid > 0)
		watch_for(EXIT_GRACE_MS);
	enter(np.pid > 0 ? NETD_PROC_LEAVING : NETD_PROC_WAITING);
}

static void lose(const char *violation)
{
	const char *said = channel_close_name(np.close_class);

	records_close();
	if (violation) {
		np.view.violations++;
		log_error("netd broke the rules of the channel: killed", LOG_STR("violation", violation),
			  LOG_I64("pid", np.pid));
		netd_proc_kill();
		np.suspect = np.pid > 0;
		if (!np.suspect)
			slots_sweep();
	}
	execs_stream_lost();
	end_attempt(violation ? "violation" : said ? said : "eof");
}

static void on_lost(void *owner, const char *violation)
{
	(void)owner;
	lose(violation);
}

/* A netd of our own that cannot be told what to do is no violation, but of no use either. */
static void give_up(const char *why)
{
	records_close();
	netd_proc_kill();
	end_attempt(why);
}

static void on_jailed(void *owner)
{
	struct config_error error;

	(void)owner;
	expect_alive();
	if (netd_settings_give_credentials(np.config, np.secrets, &error) < 0) {
		log_error("credentials cannot be used", LOG_STR("setting", error.setting),
			  LOG_STR("why", error.why));
		np.dismissed = true;
		give_up("credentials");
		return;
	}
	enter(NETD_PROC_DIALLING);
}

static void on_attached(void *owner)
{
	(void)owner;
	np.view.attached_since_ms = clock_now_ms();
	log_info("attached", LOG_STR("relay", np.config->relay_host), LOG_U64("port", np.config->relay_port),
		 LOG_U64("tls", np.config->relay_tls));
	enter(NETD_PROC_ATTACHED);
}

static void on_alive(void *owner, const struct channel_alive *alive)
{
	(void)owner;
	np.view.alive = *alive;
	expect_alive();
}

static void on_idle(void *owner)
{
	(void)owner;
	records_drain();
}

static void on_goaway(void *owner)
{
	(void)owner;
	if (np.goaway || np.stopped)
		return;
	log_info("relay is going away");
	np.goaway = true;
	execs_goaway(on_idle, NULL);
}

/* What is learnt holds for every netd to come, and only ever becomes more. netd is not believed beyond a sane
 * interval. */
static void learn_ping(uint32_t ms)
{
	if (ms <= np.ping_ms || ms > LIMIT_PING_CALM_MS)
		return;
	np.ping_ms = ms;
	log_info("the relay wants fewer pings", LOG_U64("ping_ms", ms));
}

static void on_closed(void *owner, const struct channel_closed *closed)
{
	(void)owner;
	np.close_class = closed->close_class;
	memcpy(np.tried, closed->address, sizeof np.tried);
	learn_ping(closed->ping_ms);
	log_info("netd closed", LOG_STR("class", channel_close_name(closed->close_class)),
		 LOG_I64("grpc_status", closed->grpc_status == CHANNEL_NO_STATUS ? -1 : closed->grpc_status),
		 LOG_U64("http_status", closed->http_status), LOG_U64("h2_error", closed->h2_error));
	watch_for(EXIT_GRACE_MS);
}

static const struct records_events events = {
    .jailed = on_jailed,
    .attached = on_attached,
    .alive = on_alive,
    .goaway = on_goaway,
    .closed = on_closed,
    .lost = on_lost,
};

/* 0 with np.pid set and the channel open, or -errno. */
static int start(void)
{
	FD_CLOSE int ours = -1;
	FD_CLOSE int theirs = -1;
	int err = channel_pair(&ours, &theirs);
	pid_t pid;

	if (err < 0)
		return err;
	pid = netd_spawn(&np.image, np.config, theirs, np.null_fd);
	if (pid < 0)
		return pid;
	np.pid = pid;
	slots_spare(pid);
	return records_open(np.loop, fd_steal(&ours), &events, NULL);
}

static void dial(void)
{
	int err;

	np.due = np.goaway = np.dismissed = false;
	np.close_class = 0;
	memset(np.tried, 0, sizeof np.tried);
	np.view.alive = (struct channel_alive){0};
	np.view.attempts++;
	err = start();
	if (err == 0)
		err = netd_settings_give(np.config, np.ping_ms, &np.addresses);
	if (err < 0) {
		log_error("netd cannot be started", LOG_ERR(err));
		give_up("start");
		return;
	}
	watch_for(LIMIT_ALIVE_LOST_MS);
	log_debug("netd started", LOG_I64("pid", np.pid), LOG_U64("ping_ms", np.ping_ms));
	enter(NETD_PROC_STARTING);
}

int netd_proc_init(struct loop *loop, const struct config *config, struct config_secrets *secrets,
		   uint64_t seed, void (*changed)(void *owner), void *owner)
{
	np.loop = loop;
	np.config = config;
	np.secrets = secrets;
	np.changed = changed;
	np.owner = owner;
	np.ping_ms = LIMIT_PING_MS;
	np.view.last_close = "none";
	np.redial.fire = on_redial;
	np.watch.silent = on_watch;
	backoff_init(&np.backoff, seed);
	np.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (np.null_fd < 0)
		return -errno;
	return netd_image_open(&np.image);
}

const struct netd_image *netd_proc_image(void)
{
	return &np.image;
}

void netd_proc_dial(void)
{
	dial();
}

/* A SIGSYS is the policy's doing, and the one death that says which side is wrong: the list, or a taken-over
 * netd. The number of the call is in the kernel's audit log. */
static void log_death(pid_t pid, int wait_status)
{
	if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGSYS)
		log_error("netd was killed by SIGSYS: its policy does not allow a system call that it made",
			  LOG_I64("pid", pid));
	else if (np.dismissed || (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0))
		log_debug("netd ended", LOG_I64("pid", pid));
	else if (WIFEXITED(wait_status))
		log_warn("netd failed", LOG_I64("pid", pid), LOG_I64("exit_code", WEXITSTATUS(wait_status)));
	else
		log_warn("netd was killed", LOG_I64("pid", pid), LOG_I64("signal", WTERMSIG(wait_status)));
}

bool netd_proc_reap(pid_t pid, int wait_status)
{
	if (pid != np.pid || pid == 0)
		return false;
	if (WIFSTOPPED(wait_status)) {
		netd_proc_kill();
		return true;
	}
	log_death(pid, wait_status);
	np.pid = 0;
	slots_spare(0);
	if (np.suspect)
		slots_sweep();
	np.suspect = false;
	loop_watch_stop(&np.watch);
	/* Its last records may still be in the channel: the loop reads them, then the end of file, which does
	 * not come where it left a child that holds its end. */
	if (records_is_open()) {
		watch_for(EXIT_GRACE_MS);
		return true;
	}
	if (np.due && !np.stopped)
		dial();
	else
		enter(NETD_PROC_WAITING);
	return true;
}

void netd_proc_stop_dialling(void)
{
	np.stopped = true;
	np.due = false;
	loop_timer_stop(np.loop, &np.redial);
}

void netd_proc_leave(void)
{
	netd_proc_stop_dialling();
	if (np.view.state == NETD_PROC_ATTACHED) {
		records_drain();
		watch_for(LEAVE_GRACE_MS);
		return;
	}
	netd_proc_kill();
}

bool netd_proc_gone(void)
{
	return np.pid == 0 && !records_is_open();
}

const struct netd_proc_view *netd_proc_view(void)
{
	return &np.view;
}

const char *netd_proc_state_name(enum netd_proc_state state)
{
	switch (state) {
	case NETD_PROC_WAITING:
		return "waiting";
	case NETD_PROC_STARTING:
		return "starting";
	case NETD_PROC_DIALLING:
		return "dialling";
	case NETD_PROC_ATTACHED:
		return "attached";
	case NETD_PROC_LEAVING:
		return "leaving";
	}
	return "unknown";
}
