#include "execd/status.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"
#include "execd/audit.h"
#include "execd/config.h"
#include "execd/execs.h"
#include "execd/netd_proc.h"
#include "execd/own_file.h"
#include "execd/shutdown.h"
#include "execd/slots.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* All writes have this size, padded with blanks: a shorter state leaves no rest of a longer one. */
#define STATUS_SIZE     1536u
#define STATUS_EVERY_MS 1000u

static struct {
	struct loop *loop;
	struct own_file file;
	const char *killer;
	bool failing;
	char written[STATUS_SIZE];
	struct loop_timer timer;
} st = {.file = OWN_FILE_INIT};

static void add(struct buf_text *t, const char *key, uint64_t value)
{
	buf_text_addf(t, "%s=%llu\n", key, (unsigned long long)value);
}

static void render(struct buf_text *t, const char *state)
{
	const struct execs_counters *c = execs_counters();
	const struct netd_proc_view *v = netd_proc_view();

	buf_text_addf(t, "state=%s\nattached=%d\nkiller=%s\nlast_close=%s\n", state,
		      v->state == NETD_PROC_ATTACHED, st.killer, v->last_close);
	add(t, "pid", (uint64_t)getpid());
	add(t, "attempts", v->attempts);
	add(t, "capacity", slots_capacity());
	add(t, "idle", slots_idle());
	add(t, "minders", slots_minders());
	add(t, "running", c->running);
	add(t, "waiting", c->waiting);
	add(t, "cached", c->cached);
	add(t, "received", c->received);
	add(t, "started", c->started);
	add(t, "ended", c->ended);
	add(t, "replayed", c->replayed);
	add(t, "duplicates", c->duplicates);
	add(t, "refused", c->refused);
	add(t, "timeouts", c->timeouts);
	add(t, "aborts", c->aborts);
	add(t, "lost", c->lost);
	add(t, "unproven", c->unproven);
	add(t, "violations", v->violations);
	add(t, "netd_held", v->alive.held);
	add(t, "netd_frames_in", v->alive.frames_in);
	add(t, "netd_bytes_out", v->alive.bytes_out);
	add(t, "netd_stalled_ms", v->alive.stalled_ms);
	add(t, "log_dropped", log_dropped() + v->alive.log_dropped);
	add(t, "audit_dropped", audit_dropped());
}

static void put(const char *state)
{
	char text[STATUS_SIZE];
	struct buf_text t;
	ssize_t n;

	if (st.file.fd < 0)
		return;
	buf_text_init(&t, text, sizeof text);
	render(&t, state);
	memset(text + t.used, ' ', sizeof text - t.used);
	text[sizeof text - 1] = '\n';
	if (!st.failing && memcmp(text, st.written, sizeof text) == 0)
		return;
	n = pwrite(st.file.fd, text, sizeof text, 0);
	if (n != sizeof text && !st.failing)
		log_warn("STATUS_FILE cannot be written", LOG_ERR(n < 0 ? errno : ENOSPC));
	st.failing = n != sizeof text;
	memcpy(st.written, text, sizeof text);
}

void status_update(void)
{
	put(shutdown_begun() ? "stopping" : netd_proc_state_name(netd_proc_view()->state));
}

static void on_timer(struct loop_timer *timer, uint64_t now_ms)
{
	status_update();
	loop_timer_set(st.loop, timer, now_ms + STATUS_EVERY_MS);
}

int status_open(struct loop *loop, const struct config *config, const char *killer)
{
	int err;

	if (!config->status_file[0])
		return 0;
	err = own_file_open(&st.file, config->status_file, 0, 0644);
	if (err < 0)
		return err;
	if (ftruncate(st.file.fd, 0) < 0)
		return -errno;
	st.loop = loop;
	st.killer = killer;
	st.timer.fire = on_timer;
	loop_timer_set(loop, &st.timer, clock_now_ms() + STATUS_EVERY_MS);
	return 0;
}

int status_open_again(void)
{
	int err = st.file.folder_fd < 0 ? 0 : own_file_open_again(&st.file);

	st.written[0] = '\0';
	status_update();
	return err;
}

int status_check(const struct config *config)
{
	return config->status_file[0] ? own_file_check(config->status_file) : 0;
}

void status_close(void)
{
	put("stopped");
	own_file_close(&st.file);
}
