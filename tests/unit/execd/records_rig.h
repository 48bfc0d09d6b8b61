/* records.c on a real channel, with netd's end in the test's hand; the decision core is a fake that notes
 * what reaches it. Included once by each test program. */
#ifndef TESTS_UNIT_EXECD_RECORDS_RIG_H
#define TESTS_UNIT_EXECD_RECORDS_RIG_H

#include "execd/records.h"

#include "common/buf.h"
#include "common/fd.h"
#include "execd/execs.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
	struct loop loop;
	int ours;
	struct channel peer; /* netd's end */
	char trace[4096];
	unsigned lost;
	const char *violation;
	uint8_t command[64];
	int verdict;  /* of execs_on_command, execs_on_drained and execs_on_quiet */
	bool answers; /* each EXEC by ADMITTED */
	bool reopens; /* lost() opens the next channel */
	bool closes;  /* alive() closes the channel */
	unsigned writable;
} t;

static inline void note(const char *what, uint64_t id)
{
	size_t used = strlen(t.trace);

	snprintf(&t.trace[used], sizeof t.trace - used, "%s %llu;", what, (unsigned long long)id);
}

/* --- the fake core --- */

void execs_on_exec(uint64_t req_id, const struct channel_exec *exec, const uint8_t *command)
{
	if (command)
		memcpy(t.command, command,
		       exec->command_len < sizeof t.command ? exec->command_len : sizeof t.command);
	note(command ? "exec-inline" : "exec", req_id);
	if (t.answers)
		records_admitted(req_id);
}

int execs_on_command(uint64_t req_id, uint32_t offset, const uint8_t *bytes, size_t size,
		     const char **ret_why)
{
	(void)bytes;
	note("command", req_id);
	note("at", offset);
	note("size", size);
	if (t.verdict < 0)
		*ret_why = "no such piece";
	return t.verdict;
}

void execs_on_abort(uint64_t req_id)
{
	note("abort", req_id);
}

int execs_on_drained(uint64_t req_id, bool truncated, const struct channel_drained *drained,
		     const char **ret_why)
{
	note(truncated ? "drained-truncated" : "drained", req_id);
	note("out", drained->bytes_out);
	if (t.verdict < 0)
		*ret_why = "not ended";
	return t.verdict;
}

int execs_on_quiet(uint64_t req_id, const char **ret_why)
{
	note("quiet", req_id);
	if (t.verdict < 0)
		*ret_why = "not asked";
	return t.verdict;
}

void execs_channel_writable(void)
{
	t.writable++;
	note("writable", 0);
}

/* --- netd's life --- */

static inline void on_jailed(void *owner)
{
	(void)owner;
	note("jailed", 0);
}

static inline void on_attached(void *owner)
{
	(void)owner;
	note("attached", 0);
}

static inline void on_alive(void *owner, const struct channel_alive *alive)
{
	(void)owner;
	note("alive", alive->held);
	if (t.closes)
		records_close();
}

static inline void on_goaway(void *owner)
{
	(void)owner;
	note("goaway", 0);
}

static inline void on_closed(void *owner, const struct channel_closed *closed)
{
	(void)owner;
	note("closed", closed->close_class);
}

static inline void open_channel(void);

static inline void on_lost(void *owner, const char *violation)
{
	(void)owner;
	cr_assert(!records_is_open());
	t.lost++;
	t.violation = violation;
	if (t.reopens) {
		fd_close(&t.peer.fd);
		open_channel();
	}
}

static const struct records_events events = {on_jailed, on_attached, on_alive, on_goaway, on_closed, on_lost};

static inline void open_channel(void)
{
	t.peer = (struct channel){.receives = CHANNEL_TO_NETD, .phase = CHANNEL_PHASE_CONFIG};
	cr_assert_eq(channel_pair(&t.ours, &t.peer.fd), 0);
	cr_assert_eq(records_open(&t.loop, t.ours, &events, NULL), 0);
}

static inline void passes(void)
{
	for (int i = 0; i < 4; i++)
		cr_assert_eq(loop_pass(&t.loop, 0), 0);
}

#define expect(text)                                                                                         \
	do {                                                                                                 \
		cr_assert_str_eq(t.trace, text, "got: %s", t.trace);                                         \
		t.trace[0] = '\0';                                                                           \
	} while (0)

static inline void says(enum channel_type type, uint8_t flags, uint64_t id, const void *body, size_t size)
{
	cr_assert_eq(channel_send(&t.peer, type, flags, id, body, size, NULL, 0), 0);
}

/* What netd would read next; its type, or -errno, or 0 at the end. */
static inline int hears(struct channel_record *ret)
{
	static uint8_t buffer[LIMIT_RECORD];
	static const uint8_t nothing[LIMIT_RECORD];
	struct channel_record r = {.body = nothing, .fds = {-1, -1, -1}};
	const char *why;
	int got = channel_receive(&t.peer, buffer, &r, &why);

	if (ret)
		*ret = r;
	if (got <= 0)
		return got;
	for (int i = 0; i < 3; i++)
		fd_close(&r.fds[i]);
	return (int)r.h.type;
}

static inline void begin(void)
{
	memset(&t, 0, sizeof t);
	cr_assert_eq(loop_init(&t.loop), 0);
	open_channel();
}

static inline void attach(void)
{
	cr_assert_eq(records_jail(), 0);
	says(CHANNEL_JAILED, 0, 0, NULL, 0);
	passes();
	cr_assert_eq(records_dial(), 0);
	says(CHANNEL_ATTACHED, 0, 0, NULL, 0);
	passes();
	cr_assert_eq(hears(NULL), CHANNEL_JAIL);
	t.peer.phase = CHANNEL_PHASE_CREDENTIALS;
	cr_assert_eq(hears(NULL), CHANNEL_DIAL);
	t.peer.phase = CHANNEL_PHASE_ATTACHED;
	expect("jailed 0;attached 0;");
}

static inline void exec_record(uint64_t id, const struct channel_exec *e, uint8_t flags, const char *command)
{
	uint8_t block[CHANNEL_EXEC_BLOCK];

	channel_encode_exec(block, e);
	cr_assert_eq(channel_send(&t.peer, CHANNEL_EXEC, flags, id, block, sizeof block, command,
				  command ? strlen(command) : 0),
		     0);
}

static inline size_t open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#endif
