#include "tests/lib/slot_rig.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "execd/slots_pool.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct loop rig_loop;
struct config rig_config;
struct rig_exec rig_execs[RIG_SLOTS];
unsigned rig_ready;

static char *environment[] = {(char[]){"PATH=/usr/local/bin:/usr/bin:/bin"}, (char[]){"HOME=/"},
			      (char[]){"LANG=C.UTF-8"}, NULL};

static void on_event(void *owner, const struct slot_event *e)
{
	static const char letters[] = "tsFxEamdUR";
	struct rig_exec *x = &rig_execs[e->slot];
	size_t n = strlen(x->order);

	(void)owner;
	if (e->kind == SLOT_READY) {
		rig_ready++;
		return;
	}
	x->seen |= 1u << e->kind;
	if (n + 1 < sizeof x->order && !(e->kind == SLOT_TOOK && n > 0 && x->order[n - 1] == 't'))
		x->order[n] = letters[e->kind];
	switch (e->kind) {
	case SLOT_TOOK: {
		uint32_t left = x->command_len - x->given, size = left < x->piece ? left : x->piece;

		cr_assert_eq(slots_command(e->slot, x->command + x->given, size), 0);
		x->given += size;
		break;
	}
	case SLOT_START_FAILED:
		x->failed = e->value;
		break;
	case SLOT_LEADER_EXITED:
		x->wait_status = e->wait_status;
		x->by_kill = e->by_kill;
		x->oom = e->oom;
		break;
	case SLOT_STILL_ALIVE:
		x->still_alive++;
		x->count = e->count;
		break;
	case SLOT_MINDING:
		x->count = e->count;
		if (rig_config.background_kill) /* as execd does, once the pipes are quiet */
			slots_kill(e->slot);
		break;
	default:
		break;
	}
}

void rig_prepare(void)
{
	struct rlimit files;

	/* As execd does: descriptors that commands of our uid have in flight count against it. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	rig_config =
	    (struct config){.max_concurrent = 2, .bash = "/bin/bash", .command_environ = environment};
	cr_assert(getcwd(rig_config.cwd, sizeof rig_config.cwd));
}

void rig_start(void)
{
	log_init("execd", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	cr_assert_eq(loop_init(&rig_loop), 0);
	cr_assert_eq(slots_start(&rig_loop, &rig_config, on_event, NULL), 0);
}

static void read_one(int *fd, char *to, size_t *size)
{
	char drop[65536];
	ssize_t n;

	if (*fd < 0)
		return;
	n = *size < RIG_OUTPUT ? read(*fd, to + *size, RIG_OUTPUT - *size) : read(*fd, drop, sizeof drop);
	if (n > 0 && *size < RIG_OUTPUT)
		*size += (size_t)n;
	if (n == 0)
		fd_close(fd);
	to[*size] = '\0';
}

void rig_pass(void)
{
	siginfo_t info;

	loop_pass(&rig_loop, 2);
	for (;;) {
		int status;

		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) < 0 || info.si_pid == 0)
			break;
		if (info.si_code == CLD_EXITED)
			status = (info.si_status & 0xff) << 8;
		else if (info.si_code == CLD_STOPPED)
			status = info.si_status << 8 | 0x7f;
		else
			status = info.si_status;
		slots_reap(info.si_pid, status);
	}
	for (unsigned i = 0; i < RIG_SLOTS; i++) {
		struct rig_exec *x = &rig_execs[i];

		if (x->command) {
			read_one(&x->ours[1], x->out, &x->out_size);
			read_one(&x->ours[2], x->err, &x->err_size);
		}
	}
}

void rig_for(unsigned ms)
{
	uint64_t end = clock_now_ms() + ms;

	while (clock_now_ms() < end)
		rig_pass();
}

unsigned rig_take(void)
{
	uint64_t end = clock_now_ms() + RIG_WAIT_MS;
	int slot;

	while ((slot = slots_take()) < 0) {
		cr_assert_eq(slot, -EAGAIN);
		cr_assert(clock_now_ms() < end, "no slot becomes idle");
		rig_pass();
	}
	return (unsigned)slot;
}

static unsigned run(const char *command, size_t length, uint32_t piece)
{
	unsigned slot = rig_take();
	struct rig_exec *x = &rig_execs[slot];
	struct slot_run r = {.req_id = 1, .command_len = (uint32_t)length, .given = (const uint8_t *)command};
	int theirs[3];

	*x = (struct rig_exec){
	    .command = (const uint8_t *)command, .command_len = (uint32_t)length, .piece = piece};
	cr_assert_eq(slots_pipes(x->ours, theirs), 0);
	r.given_len = x->given = length < piece ? (uint32_t)length : piece;
	cr_assert_eq(slots_run(slot, &r, x->ours, theirs), 0);
	for (int i = 0; i < 3; i++)
		close(theirs[i]);
	return slot;
}

unsigned rig_run_open(const char *command)
{
	return run(command, strlen(command), 65000);
}

unsigned rig_run(const char *command, const char *input)
{
	unsigned slot = rig_run_open(command);
	int *fd = &rig_execs[slot].ours[0];

	if (input)
		cr_assert_eq(write(*fd, input, strlen(input)), (ssize_t)strlen(input));
	fd_close(fd);
	return slot;
}

unsigned rig_run_pieces(const char *command, size_t length, uint32_t piece)
{
	unsigned slot = run(command, length, piece);

	fd_close(&rig_execs[slot].ours[0]);
	return slot;
}

bool rig_has(unsigned slot, enum slot_event_kind kind)
{
	return rig_execs[slot].seen >> kind & 1;
}

void rig_until(unsigned slot, enum slot_event_kind kind)
{
	uint64_t end = clock_now_ms() + RIG_WAIT_MS;

	while (!rig_has(slot, kind)) {
		cr_assert(clock_now_ms() < end, "event %u of slot %u does not come; so far %s", kind, slot,
			  rig_execs[slot].order);
		rig_pass();
	}
}

void rig_until_idle(unsigned count)
{
	uint64_t end = clock_now_ms() + RIG_WAIT_MS;

	for (; slots_idle() < count; rig_pass())
		cr_assert(clock_now_ms() < end, "%u of %u slots become idle", slots_idle(), count);
}

void rig_kill_idle(unsigned count)
{
	rig_until_idle(count);
	for (unsigned i = 0; i < POOL_SIZE && count > 0; i++) {
		if (pool.slots[i].place != POOL_IDLE)
			continue;
		cr_assert_eq(kill(pool.slots[i].pid, SIGKILL), 0);
		count--;
	}
}

void rig_until_output(unsigned slot, const char *text)
{
	uint64_t end = clock_now_ms() + RIG_WAIT_MS;

	while (!strstr(rig_execs[slot].out, text)) {
		cr_assert(clock_now_ms() < end, "no \"%s\" in \"%s\" / \"%s\"", text, rig_execs[slot].out,
			  rig_execs[slot].err);
		rig_pass();
	}
}

void rig_close(unsigned slot)
{
	struct rig_exec *x = &rig_execs[slot];

	for (int i = 0; i < 3; i++)
		fd_close(&x->ours[i]);
	x->command = NULL;
}

void rig_release(unsigned slot)
{
	rig_close(slot);
	slots_release(slot);
}

int rig_do(const char *command, const char *input, struct rig_exec *ret)
{
	unsigned slot = rig_run(command, input);
	int status;

	rig_until(slot, SLOT_EMPTY);
	for (int i = 0; i < 20; i++)
		rig_pass();
	status = rig_execs[slot].wait_status;
	if (ret)
		*ret = rig_execs[slot];
	rig_release(slot);
	return status;
}

static bool has_child(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

/* A slot that the warden could still make, but not tell of, is known by its end only. */
void rig_stop(void)
{
	uint64_t end = clock_now_ms() + RIG_WAIT_MS;

	slots_kill_all();
	while (!slots_all_gone() || has_child()) {
		cr_assert(clock_now_ms() < end, "%s",
			  slots_all_gone() ? "a child is left" : "slots do not go");
		for (unsigned i = 0; i < RIG_SLOTS; i++) {
			if (rig_execs[i].command && rig_has(i, SLOT_EMPTY))
				rig_release(i);
		}
		rig_pass();
	}
	loop_close(&rig_loop);
}
