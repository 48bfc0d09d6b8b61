/* execd's side of the channel against a peer that breaks every rule. The decision core is a fake: it notes
 * what reaches it. */
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

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

static struct {
	struct loop loop;
	int ours;
	struct channel peer; /* netd's end */
	char trace[4096];
	unsigned lost;
	const char *violation;
	uint8_t command[64];
	int verdict;  /* of execs_on_command and execs_on_drained */
	bool answers; /* each EXEC by ADMITTED */
	bool reopens; /* lost() opens the next channel */
	bool closes;  /* alive() closes the channel */
	unsigned writable;
} t;

static void note(const char *what, uint64_t id)
{
	size_t used = strlen(t.trace);

	snprintf(&t.trace[used], sizeof t.trace - used, "%s %llu;", what, (unsigned long long)id);
}

/* --- the fake core
 * ------------------------------------------------------------------------------------------------ */

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

void execs_channel_writable(void)
{
	t.writable++;
	note("writable", 0);
}

/* --- netd's life
 * -------------------------------------------------------------------------------------------------- */

static void on_jailed(void *owner)
{
	(void)owner;
	note("jailed", 0);
}

static void on_attached(void *owner)
{
	(void)owner;
	note("attached", 0);
}

static void on_alive(void *owner, const struct channel_alive *alive)
{
	(void)owner;
	note("alive", alive->held);
	if (t.closes)
		records_close();
}

static void on_goaway(void *owner)
{
	(void)owner;
	note("goaway", 0);
}

static void on_closed(void *owner, const struct channel_closed *closed)
{
	(void)owner;
	note("closed", closed->close_class);
}

static void open_channel(void);

static void on_lost(void *owner, const char *violation)
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

static void open_channel(void)
{
	t.peer = (struct channel){.receives = CHANNEL_TO_NETD, .phase = CHANNEL_PHASE_CONFIG};
	cr_assert_eq(channel_pair(&t.ours, &t.peer.fd), 0);
	cr_assert_eq(records_open(&t.loop, t.ours, &events, NULL), 0);
}

static void passes(void)
{
	for (int i = 0; i < 4; i++)
		cr_assert_eq(loop_pass(&t.loop, 0), 0);
}

#define expect(text)                                                                                         \
	do {                                                                                                 \
		cr_assert_str_eq(t.trace, text, "got: %s", t.trace);                                         \
		t.trace[0] = '\0';                                                                           \
	} while (0)

static void says(enum channel_type type, uint8_t flags, uint64_t id, const void *body, size_t size)
{
	cr_assert_eq(channel_send(&t.peer, type, flags, id, body, size, NULL, 0), 0);
}

/* What netd would read next; its type, or -errno, or 0 at the end. */
static int hears(struct channel_record *ret)
{
	static uint8_t buffer[LIMIT_RECORD];
	struct channel_record r = {.fds = {-1, -1, -1}};
	const char *why;
	int got = channel_receive(&t.peer, buffer, &r, &why);

	if (got <= 0)
		return got;
	if (ret)
		*ret = r;
	for (int i = 0; i < 3; i++)
		fd_close(&r.fds[i]);
	return (int)r.h.type;
}

static void begin(void)
{
	memset(&t, 0, sizeof t);
	cr_assert_eq(loop_init(&t.loop), 0);
	open_channel();
}

static void attach(void)
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

static void exec_record(uint64_t id, const struct channel_exec *e, uint8_t flags, const char *command)
{
	uint8_t block[CHANNEL_EXEC_BLOCK];

	channel_encode_exec(block, e);
	cr_assert_eq(channel_send(&t.peer, CHANNEL_EXEC, flags, id, block, sizeof block, command,
				  command ? strlen(command) : 0),
		     0);
}

static size_t open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* --- good order
 * ----------------------------------------------------------------------------------------------- */

Test(records, hands_on_what_netd_says)
{
	uint8_t piece[4 + 3] = {5, 0, 0, 0, 'a', 'b', 'c'};
	uint8_t block[64];

	begin();
	attach();
	exec_record(7, &(struct channel_exec){.command_len = 2}, CHANNEL_INLINE, "ls");
	exec_record(8, &(struct channel_exec){.command_len = 200000}, CHANNEL_STREAMING, NULL);
	says(CHANNEL_COMMAND, 0, 8, piece, sizeof piece);
	says(CHANNEL_ABORT, 0, UINT64_MAX, NULL, 0);
	channel_encode_drained(block, &(struct channel_drained){.bytes_out = 99});
	says(CHANNEL_DRAINED, CHANNEL_TRUNCATED, 7, block, CHANNEL_DRAINED_BLOCK);
	says(CHANNEL_DRAINED, 0, 8, block, CHANNEL_DRAINED_BLOCK);
	says(CHANNEL_GOAWAY, 0, 0, NULL, 0);
	channel_encode_alive(block, &(struct channel_alive){.held = 12});
	says(CHANNEL_ALIVE, 0, 0, block, CHANNEL_ALIVE_BLOCK);
	channel_encode_closed(block, &(struct channel_closed){.close_class = CHANNEL_CLOSE_EOF});
	says(CHANNEL_CLOSED, 0, 0, block, CHANNEL_CLOSED_BLOCK);
	passes();
	expect("exec-inline 7;exec 8;command 8;at 5;size 3;abort 18446744073709551615;drained-truncated "
	       "7;out 99;"
	       "drained 8;out 99;goaway 0;alive 12;closed 11;");
	cr_assert_eq(memcmp(t.command, "ls", 2), 0);
	cr_assert_eq(records_frames(), 3);
	cr_assert_eq(records_phase(), CHANNEL_PHASE_CLOSED);
	cr_assert_eq(t.lost, 0);
	fd_close(&t.peer.fd);
	passes();
	cr_assert(t.lost == 1 && !t.violation);
	cr_assert_eq(records_frames(), 3, "kept after the end");
}

Test(records, sends_what_it_is_told)
{
	struct channel_record r;
	struct outcome o = {OUTCOME_TIMEOUT, 5};
	int fds[3] = {0, 1, 2};

	begin();
	cr_assert_eq(records_set(CHANNEL_KEY_RELAY_HOST, "relay", 5), 0);
	cr_assert_eq(records_set_u32(CHANNEL_KEY_RELAY_PORT, 8443), 0);
	cr_assert_eq(hears(&r), CHANNEL_SET);
	cr_assert(r.h.flags == CHANNEL_KEY_RELAY_HOST && r.h.len == 5 && memcmp(r.body, "relay", 5) == 0);
	cr_assert_eq(hears(&r), CHANNEL_SET);
	cr_assert(r.h.flags == CHANNEL_KEY_RELAY_PORT && buf_get_u32(r.body) == 8443);
	attach();
	records_admitted(1);
	records_duplicate(2);
	records_replay(3, &o, true);
	records_refused(4, &(struct outcome){OUTCOME_REFUSED, REFUSAL_QUEUE_FULL});
	cr_assert_eq(records_fetch(5, 77), 0);
	cr_assert_eq(records_started(6, fds), 0);
	cr_assert_eq(records_ended(7, &(struct channel_ended){.outcome = o, .reading = CHANNEL_READ_KILLED}),
		     0);
	records_drain();
	cr_assert(hears(&r) == CHANNEL_ADMITTED && r.h.req_id == 1);
	cr_assert(hears(&r) == CHANNEL_DUPLICATE && r.h.req_id == 2);
	cr_assert(hears(&r) == CHANNEL_REPLAY && r.h.req_id == 3 && r.h.flags == CHANNEL_TRUNCATED);
	cr_assert(hears(&r) == CHANNEL_REFUSED && r.h.req_id == 4 && r.body[0] == OUTCOME_REFUSED);
	cr_assert(hears(&r) == CHANNEL_FETCH && r.h.req_id == 5 && buf_get_u32(r.body) == 77);
	cr_assert(hears(&r) == CHANNEL_STARTED && r.h.req_id == 6 && r.fds[2] >= 0);
	cr_assert(hears(&r) == CHANNEL_ENDED && r.h.req_id == 7);
	cr_assert(hears(&r) == CHANNEL_DRAIN);
}

Test(records, passes_a_descriptor_of_a_credential)
{
	struct channel_record r;

	begin();
	cr_assert_eq(records_jail(), 0);
	says(CHANNEL_JAILED, 0, 0, NULL, 0);
	passes();
	cr_assert_eq(records_set_fd(CHANNEL_KEY_CA_FILE, 0), 0);
	cr_assert_eq(records_set(CHANNEL_KEY_TOKEN, "secret", 6), 0);
	cr_assert_eq(hears(NULL), CHANNEL_JAIL);
	t.peer.phase = CHANNEL_PHASE_CREDENTIALS;
	cr_assert(hears(&r) == CHANNEL_SET && r.fds[0] >= 0);
	cr_assert(hears(&r) == CHANNEL_SET && r.h.len == 6);
}

/* --- violations
 * ------------------------------------------------------------------------------------------------- */

static void is_violation(const char *why)
{
	size_t before;

	passes();
	cr_assert_eq(t.lost, 1, "%s", why);
	cr_assert(t.violation, "%s", why);
	cr_assert(!records_is_open());
	cr_assert_eq(records_fetch(1, 0), -EPIPE);
	before = open_descriptors();
	passes();
	records_close();
	cr_assert_eq(t.lost, 1, "exactly once");
	cr_assert_eq(open_descriptors(), before);
	fd_close(&t.peer.fd);
	loop_close(&t.loop);
}

/* A packet made by hand. */
static void raw(const void *packet, size_t size)
{
	cr_assert_eq(send(t.peer.fd, packet, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void raw_record(enum channel_type type, uint8_t flags, uint16_t zero, uint32_t len, uint64_t id,
		       uint32_t seq, size_t size)
{
	static uint8_t packet[LIMIT_RECORD + 1000];

	memset(packet, 0, sizeof packet);
	channel_encode_header(
	    packet,
	    &(struct channel_header){.type = type, .flags = flags, .len = len, .req_id = id, .seq = seq});
	buf_put_u16(packet + 2, zero);
	raw(packet, size);
}

Test(records, every_malformed_record_ends_the_channel_once)
{
	static const struct {
		const char *why;
		uint8_t type, flags;
		uint16_t zero;
		uint32_t len;
		uint64_t id;
		uint32_t seq_off;
		size_t size;
	} cases[] = {
	    {"one byte", CHANNEL_ABORT, 0, 0, 0, 1, 0, 1},
	    {"short of a header", CHANNEL_ABORT, 0, 0, 0, 1, 0, CHANNEL_HEADER - 1},
	    {"type zero", 0, 0, 0, 0, 0, 0, CHANNEL_HEADER},
	    {"unknown type", 200, 0, 0, 0, 0, 0, CHANNEL_HEADER},
	    {"our own direction", CHANNEL_ADMITTED, 0, 0, 0, 1, 0, CHANNEL_HEADER},
	    {"wrong phase", CHANNEL_JAILED, 0, 0, 0, 0, 0, CHANNEL_HEADER},
	    {"attached twice", CHANNEL_ATTACHED, 0, 0, 0, 0, 0, CHANNEL_HEADER},
	    {"reserved bytes", CHANNEL_ABORT, 0, 1, 0, 1, 0, CHANNEL_HEADER},
	    {"flag", CHANNEL_ABORT, 1, 0, 0, 1, 0, CHANNEL_HEADER},
	    {"flag of exec", CHANNEL_EXEC, 4, 0, CHANNEL_EXEC_BLOCK, 1, 0,
	     CHANNEL_HEADER + CHANNEL_EXEC_BLOCK},
	    {"length above", CHANNEL_ABORT, 0, 0, 1, 1, 0, CHANNEL_HEADER},
	    {"length below", CHANNEL_ABORT, 0, 0, 0, 1, 0, CHANNEL_HEADER + 1},
	    {"length huge", CHANNEL_EXEC, 0, 0, UINT32_MAX, 1, 0, CHANNEL_HEADER + CHANNEL_EXEC_BLOCK},
	    {"exec too short", CHANNEL_EXEC, 0, 0, CHANNEL_EXEC_BLOCK - 1, 1, 0,
	     CHANNEL_HEADER + CHANNEL_EXEC_BLOCK - 1},
	    {"exec without inline but longer", CHANNEL_EXEC, 0, 0, CHANNEL_EXEC_BLOCK + 1, 1, 0,
	     CHANNEL_HEADER + CHANNEL_EXEC_BLOCK + 1},
	    {"inline of another length", CHANNEL_EXEC, CHANNEL_INLINE, 0, CHANNEL_EXEC_BLOCK + 1, 1, 0,
	     CHANNEL_HEADER + CHANNEL_EXEC_BLOCK + 1},
	    {"drained too long", CHANNEL_DRAINED, 0, 0, CHANNEL_DRAINED_BLOCK + 1, 1, 0,
	     CHANNEL_HEADER + CHANNEL_DRAINED_BLOCK + 1},
	    {"piece without offset", CHANNEL_COMMAND, 0, 0, 3, 1, 0, CHANNEL_HEADER + 3},
	    {"closed with class 0", CHANNEL_CLOSED, 0, 0, CHANNEL_CLOSED_BLOCK, 0, 0,
	     CHANNEL_HEADER + CHANNEL_CLOSED_BLOCK},
	    {"req_id where none belongs", CHANNEL_GOAWAY, 0, 0, 0, 1, 0, CHANNEL_HEADER},
	    {"sequence gap", CHANNEL_ABORT, 0, 0, 0, 1, 1, CHANNEL_HEADER},
	    {"sequence again", CHANNEL_ABORT, 0, 0, 0, 1, UINT32_MAX, CHANNEL_HEADER},
	    {"longer than a record", CHANNEL_EXEC, CHANNEL_INLINE, 0, LIMIT_RECORD + 1 - CHANNEL_HEADER, 1, 0,
	     LIMIT_RECORD + 1},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		attach();
		raw_record((enum channel_type)cases[i].type, cases[i].flags, cases[i].zero, cases[i].len,
			   cases[i].id, t.peer.seq_out + cases[i].seq_off, cases[i].size);
		is_violation(cases[i].why);
		expect("");
	}
}

Test(records, values_out_of_range_are_violations)
{
	static const struct channel_exec bad[] = {
	    {.command_len = LIMIT_COMMAND + 1},
	    {.stdin_len = LIMIT_STDIN + 1},
	    {.bad = REFUSAL_LAST + 1},
	    {.bad = 255},
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		begin();
		attach();
		exec_record(1, &bad[i], 0, NULL);
		is_violation("exec");
		expect("");
	}
	begin();
	attach();
	exec_record(1, &(struct channel_exec){.bad = REFUSAL_MEMORY, .command_len = 2}, CHANNEL_INLINE, "ls");
	is_violation("bad, but inline");
	begin();
	attach();
	exec_record(1, &(struct channel_exec){.command_len = LIMIT_COMMAND, .stdin_len = LIMIT_STDIN}, 0,
		    NULL);
	passes();
	expect("exec 1;");
	cr_assert_eq(t.lost, 0);
}

Test(records, what_the_core_does_not_accept_is_a_violation)
{
	uint8_t block[CHANNEL_DRAINED_BLOCK] = {0};

	begin();
	attach();
	t.verdict = -EPROTO;
	says(CHANNEL_DRAINED, 0, 1, block, sizeof block);
	says(CHANNEL_ABORT, 0, 1, NULL, 0);
	is_violation("drained");
	expect("drained 1;out 0;");
	begin();
	attach();
	t.verdict = -EPROTO;
	says(CHANNEL_COMMAND, 0, 1, block, 10);
	is_violation("command");
}

Test(records, nothing_but_its_phase_is_taken)
{
	static const enum channel_phase phases[] = {CHANNEL_PHASE_CONFIG, CHANNEL_PHASE_JAILING,
						    CHANNEL_PHASE_CREDENTIALS, CHANNEL_PHASE_DIALLING};

	for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
		begin();
		if (i > 0)
			cr_assert_eq(records_jail(), 0);
		if (i > 1) {
			says(CHANNEL_JAILED, 0, 0, NULL, 0);
			passes();
		}
		if (i > 2)
			cr_assert_eq(records_dial(), 0);
		cr_assert_eq(records_phase(), phases[i]);
		exec_record(1, &(struct channel_exec){.command_len = 2}, CHANNEL_INLINE, "ls");
		is_violation("exec before attached");
		cr_assert(!strstr(t.trace, "exec"));
	}
}

Test(records, nothing_comes_after_closed)
{
	uint8_t block[CHANNEL_CLOSED_BLOCK];

	begin();
	attach();
	channel_encode_closed(block, &(struct channel_closed){.close_class = CHANNEL_CLOSE_EOF});
	says(CHANNEL_CLOSED, 0, 0, block, sizeof block);
	exec_record(1, &(struct channel_exec){.command_len = 2}, CHANNEL_INLINE, "ls");
	is_violation("exec after closed");
	expect("closed 11;");
}

static int push_descriptor(int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	uint8_t header[CHANNEL_HEADER];
	struct iovec iov = {header, sizeof header};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof control.bytes};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	channel_encode_header(
	    header, &(struct channel_header){.type = CHANNEL_ABORT, .req_id = 1, .seq = t.peer.seq_out});
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	return sendmsg(t.peer.fd, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

Test(records, a_descriptor_cannot_be_pushed_in)
{
	int on = 1;
	size_t before;

	begin();
	attach();
	before = open_descriptors();
	if (push_descriptor(0) == 0) /* a kernel before SO_PASSRIGHTS */
		is_violation("descriptor");
	expect("");
	begin();
	attach();
	setsockopt(t.ours, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof on);
	cr_assert_eq(push_descriptor(0), 0);
	is_violation("descriptor, where the kernel lets it through");
	expect("");
	cr_assert_leq(open_descriptors(), before);
}

/* --- the end
 * ---------------------------------------------------------------------------------------------------- */

Test(records, an_end_of_file_is_a_loss_without_violation)
{
	size_t before = open_descriptors();

	begin();
	attach();
	fd_close(&t.peer.fd);
	passes();
	cr_assert(t.lost == 1 && !t.violation && !records_is_open());
	passes();
	cr_assert_eq(t.lost, 1);
	loop_close(&t.loop);
	cr_assert_eq(open_descriptors(), before);
}

/* With our records unread the kernel reports ECONNRESET before it hands out what netd said last. */
Test(records, the_last_words_of_a_netd_that_died_are_heard)
{
	uint8_t block[CHANNEL_DRAINED_BLOCK] = {0};

	begin();
	attach();
	cr_assert_eq(records_fetch(1, 0), 0);
	exec_record(9, &(struct channel_exec){.command_len = 2}, CHANNEL_INLINE, "ls");
	says(CHANNEL_DRAINED, 0, 1, block, sizeof block);
	fd_close(&t.peer.fd);
	passes();
	expect("drained 1;out 0;"); /* but its last Exec is not started only to be killed */
	cr_assert(t.lost == 1 && !t.violation);
}

Test(records, a_send_to_a_dead_netd_is_no_loss_by_itself)
{
	int fds[3] = {0, 1, 2};

	begin();
	attach();
	fd_close(&t.peer.fd);
	cr_assert_eq(records_fetch(1, 0), -EPIPE);
	cr_assert_eq(records_started(1, fds), -EPIPE);
	records_admitted(1);
	records_drain();
	cr_assert_eq(t.lost, 0);
	passes();
	cr_assert_eq(t.lost, 1);
}

Test(records, the_next_channel_may_be_opened_from_lost)
{
	begin();
	attach();
	t.reopens = true;
	fd_close(&t.peer.fd);
	passes();
	cr_assert(t.lost == 1 && records_is_open());
	cr_assert_eq(records_phase(), CHANNEL_PHASE_CONFIG);
	cr_assert_eq(records_frames(), 0);
	t.trace[0] = '\0';
	attach();
	says(CHANNEL_ABORT, 0, 3, NULL, 0);
	passes();
	expect("abort 3;");
}

Test(records, a_callback_may_close_the_channel)
{
	uint8_t block[CHANNEL_ALIVE_BLOCK];

	begin();
	attach();
	t.closes = true;
	channel_encode_alive(block, &(struct channel_alive){0});
	says(CHANNEL_ALIVE, 0, 0, block, sizeof block);
	says(CHANNEL_ABORT, 0, 1, NULL, 0);
	passes();
	expect("alive 0;");
	cr_assert_eq(t.lost, 0, "records_close is silent");
	records_close();
	cr_assert_eq(records_phase(), CHANNEL_PHASE_CLOSED);
}

/* --- a channel that is full
 * --------------------------------------------------------------------------------- */

static unsigned fill(void)
{
	struct channel_ended e = {.outcome = {OUTCOME_EXITED, 0}};
	unsigned n = 0;

	while (records_ended(1000 + n, &e) == 0)
		n++;
	cr_assert_eq(records_ended(1, &e), -EAGAIN);
	cr_assert_gt(n, 0);
	return n;
}

Test(records, the_one_pending_answer_holds_back_all_reading)
{
	struct channel_record r;
	unsigned n;

	begin();
	attach();
	n = fill();
	t.answers = true;
	exec_record(1, &(struct channel_exec){.command_len = 2}, CHANNEL_INLINE, "ls");
	exec_record(2, &(struct channel_exec){.command_len = 2}, CHANNEL_INLINE, "ls");
	says(CHANNEL_ABORT, 0, 1, NULL, 0);
	passes();
	passes();
	expect("exec-inline 1;");
	cr_assert_eq(t.writable, 0);
	cr_assert_eq(records_fetch(1, 0), -EAGAIN, "nothing overtakes the answer");
	while (n-- > 0)
		cr_assert_eq(hears(NULL), CHANNEL_ENDED);
	passes();
	expect("writable 0;exec-inline 2;abort 1;");
	cr_assert(hears(&r) == CHANNEL_ADMITTED && r.h.req_id == 1);
	cr_assert(hears(&r) == CHANNEL_ADMITTED && r.h.req_id == 2);
	cr_assert_eq(hears(NULL), -EAGAIN);
}

Test(records, each_kind_of_answer_can_be_the_pending_one)
{
	struct outcome o = {OUTCOME_EXITED, 7};
	struct channel_record r;

	for (int kind = 0; kind < 4; kind++) {
		static const enum channel_type types[] = {CHANNEL_ADMITTED, CHANNEL_DUPLICATE, CHANNEL_REPLAY,
							  CHANNEL_REFUSED};
		unsigned n;

		begin();
		attach();
		n = fill();
		if (kind == 0)
			records_admitted(5);
		else if (kind == 1)
			records_duplicate(5);
		else if (kind == 2)
			records_replay(5, &o, true);
		else
			records_refused(5, &(struct outcome){OUTCOME_REFUSED, REFUSAL_COLLISION});
		while (n-- > 0)
			cr_assert_eq(hears(NULL), CHANNEL_ENDED);
		passes();
		cr_assert(hears(&r) == (int)types[kind] && r.h.req_id == 5);
		if (kind == 2)
			cr_assert(r.h.flags == CHANNEL_TRUNCATED && r.body[0] == OUTCOME_EXITED &&
				  buf_get_u32(r.body + 1) == 7);
		records_close();
		fd_close(&t.peer.fd);
		loop_close(&t.loop);
	}
}

Test(records, reading_goes_on_while_only_execs_are_owed)
{
	begin();
	attach();
	fill();
	says(CHANNEL_ABORT, 0, 1, NULL, 0);
	passes();
	expect("abort 1;");
}

Test(records, a_drain_is_remembered)
{
	unsigned n;

	begin();
	attach();
	n = fill();
	records_drain();
	while (n-- > 0)
		cr_assert_eq(hears(NULL), CHANNEL_ENDED);
	passes();
	cr_assert_eq(hears(NULL), CHANNEL_DRAIN);
	passes();
	cr_assert_eq(hears(NULL), -EAGAIN, "once");
	cr_assert_eq(t.writable, 1, "and nothing watches for room any more");
}

Test(records, a_netd_that_dies_under_a_pending_answer_is_lost)
{
	begin();
	attach();
	fill();
	records_admitted(1);
	fd_close(&t.peer.fd);
	passes();
	cr_assert(t.lost == 1 && !t.violation);
}

Test(records, a_flood_does_not_hold_the_loop)
{
	unsigned sent = 0;

	begin();
	attach();
	while (channel_send(&t.peer, CHANNEL_ABORT, 0, sent, NULL, 0, NULL, 0) == 0)
		sent++;
	cr_assert_gt(sent, 64);
	cr_assert_eq(loop_pass(&t.loop, 0), 0);
	cr_assert_eq(records_frames(), 64);
	for (unsigned i = 0; i <= sent / 64; i++)
		loop_pass(&t.loop, 0);
	cr_assert_eq(records_frames(), sent);
}
