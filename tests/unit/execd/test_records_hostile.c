/* A netd that breaks the rules of the channel, each in turn: it is lost, exactly once, and nothing of it
 * reaches the core. */
#include "tests/unit/execd/records_rig.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

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
	    {"quiet with a body", CHANNEL_QUIET, 0, 0, 1, 1, 0, CHANNEL_HEADER + 1},
	    {"quiet with a flag", CHANNEL_QUIET, 1, 0, 0, 1, 0, CHANNEL_HEADER},
	    {"left is ours to say", CHANNEL_LEFT, 0, 0, 0, 1, 0, CHANNEL_HEADER},
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
