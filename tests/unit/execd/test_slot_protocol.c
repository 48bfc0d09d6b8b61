#include "execd/slot/protocol.h"

#include "common/outcome.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int execd_end, slot_end;
static uint8_t buf[SLOT_ORDER_MAX];

static void pair(void)
{
	cr_assert_eq(slot_pair(&execd_end, &slot_end), 0);
}

TestSuite(slot_protocol, .init = pair, .timeout = 10);

Test(slot_protocol, an_order_arrives_as_sent)
{
	struct slot_order got, order = {
				   .type = SLOT_ORDER_PIECE,
				   .value = 0xfedcba98,
				   .bytes = (const uint8_t *)"abc",
				   .size = 3,
			       };

	cr_assert_eq(slot_order_receive(slot_end, buf, true, &got), -EAGAIN);
	cr_assert_eq(slot_order_send(execd_end, &order), 0);
	cr_assert_eq(slot_order_receive(slot_end, buf, true, &got), 1);
	cr_assert_eq(got.type, SLOT_ORDER_PIECE);
	cr_assert_eq(got.value, 0xfedcba98);
	cr_assert_eq(got.size, 3);
	cr_assert_arr_eq(got.bytes, "abc", 3);
	cr_assert_eq(got.fd_count, 0);
}

Test(slot_protocol, descriptors_arrive_with_their_order)
{
	int p[2];
	char c;
	struct slot_order got, order = {.type = SLOT_ORDER_RUN, .fd_count = SLOT_RUN_FDS};

	cr_assert_eq(pipe(p), 0);
	order.fds[0] = order.fds[1] = order.fds[2] = order.fds[3] = p[0];
	order.fds[4] = p[1];
	cr_assert_eq(slot_order_send(execd_end, &order), 0);
	cr_assert_eq(slot_order_receive(slot_end, buf, false, &got), 1);
	cr_assert_eq(got.fd_count, SLOT_RUN_FDS);
	cr_assert_eq(write(got.fds[4], "x", 1), 1);
	cr_assert_eq(read(got.fds[0], &c, 1), 1);
	for (size_t i = 0; i < SLOT_RUN_FDS; i++)
		cr_assert(fcntl(got.fds[i], F_GETFD) & FD_CLOEXEC);
}

Test(slot_protocol, the_largest_piece_fits)
{
	static uint8_t large[SLOT_ORDER_MAX];
	struct slot_order got, order = {.type = SLOT_ORDER_PIECE, .bytes = large};

	order.size = SLOT_ORDER_MAX - SLOT_ORDER_HEADER;
	cr_assert_eq(slot_order_send(execd_end, &order), 0);
	cr_assert_eq(slot_order_receive(slot_end, buf, false, &got), 1);
	cr_assert_eq(got.size, order.size);
	order.size++;
	cr_assert_eq(slot_order_send(execd_end, &order), -EINVAL);
}

Test(slot_protocol, orders_that_are_none_are_refused)
{
	static const struct {
		uint8_t bytes[9];
		size_t size;
	} bad[] = {
	    {{SLOT_ORDER_KILL, 0, 0, 0, 0, 0, 0}, 7},        {{0, 0, 0, 0, 0, 0, 0, 0}, 8},
	    {{SLOT_ORDER_LAST + 1, 0, 0, 0, 0, 0, 0, 0}, 8}, {{SLOT_ORDER_KILL, 1, 0, 0, 0, 0, 0, 0}, 8},
	    {{SLOT_ORDER_KILL, 0, 0, 1, 0, 0, 0, 0}, 8},     {{SLOT_ORDER_RUN, 0, 0, 0, 0, 0, 0, 0}, 8},
	    {{SLOT_ORDER_CLONE, 0, 0, 0, 0, 0, 0, 0}, 8},
	};
	struct slot_order got;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		cr_assert_eq(send(execd_end, bad[i].bytes, bad[i].size, 0), (ssize_t)bad[i].size);
		cr_assert_eq(slot_order_receive(slot_end, buf, false, &got), -EPROTO, "%zu", i);
	}
}

Test(slot_protocol, the_end_is_seen_on_both_sides)
{
	struct slot_order order;
	struct slot_report report = {.type = SLOT_REPORT_EMPTY};
	int other_execd, other_slot;

	cr_assert_eq(slot_pair(&other_execd, &other_slot), 0);
	close(other_slot);
	cr_assert_eq(slot_report_receive(other_execd, &report, NULL), 0);
	cr_assert_eq(slot_order_send(other_execd, &(struct slot_order){.type = SLOT_ORDER_KILL}), -EPIPE);
	close(execd_end);
	cr_assert_eq(slot_order_receive(slot_end, buf, false, &order), 0);
	cr_assert_eq(slot_report_send(slot_end, &report, true), -EPIPE);
}

Test(slot_protocol, a_report_arrives_as_sent)
{
	struct slot_report got, report = {
				    .type = SLOT_REPORT_EXITED,
				    .by_kill = true,
				    .value = 9,
				};

	cr_assert_eq(slot_report_receive(execd_end, &got, NULL), -EAGAIN);
	cr_assert_eq(slot_report_send(slot_end, &report, true), 0);
	cr_assert_eq(slot_report_receive(execd_end, &got, NULL), 1);
	cr_assert_eq(got.type, SLOT_REPORT_EXITED);
	cr_assert(got.by_kill);
	cr_assert_eq(got.value, 9);
	report = (struct slot_report){.type = SLOT_REPORT_CLONED, .value = 0x80000001, .pid = -12};
	cr_assert_eq(slot_report_send(slot_end, &report, true), 0);
	cr_assert_eq(slot_report_receive(execd_end, &got, NULL), 1);
	cr_assert(!got.by_kill);
	cr_assert_eq(got.value, 0x80000001);
	cr_assert_eq(got.pid, -12);
}

/* What a slot said before it was killed counts, also when it left orders unread. */
Test(slot_protocol, the_last_reports_of_the_dead_are_read)
{
	struct slot_report got, report = {.type = SLOT_REPORT_EXITED, .value = 7 << 8};
	bool unread = false;

	cr_assert_eq(slot_report_send(slot_end, &report, true), 0);
	cr_assert_eq(slot_order_send(execd_end, &(struct slot_order){.type = SLOT_ORDER_PING}), 0);
	close(slot_end);
	cr_assert_eq(slot_report_receive(execd_end, &got, &unread), 1);
	cr_assert(unread);
	cr_assert_eq(got.type, SLOT_REPORT_EXITED);
	cr_assert_eq(got.value, 7 << 8);
	cr_assert_eq(slot_report_receive(execd_end, &got, NULL), 0);
}

/* Of the last order only, and said once: by what is asked first. */
Test(slot_protocol, an_order_that_the_dead_had_not_read_is_told)
{
	struct slot_order order, ping = {.type = SLOT_ORDER_PING};
	struct slot_report got;
	bool unread = false;
	int other_execd, other_slot;

	cr_assert_eq(slot_order_send(execd_end, &ping), 0);
	cr_assert_eq(slot_order_receive(slot_end, buf, true, &order), 1);
	close(slot_end);
	cr_assert_eq(slot_report_receive(execd_end, &got, &unread), 0);
	cr_assert(!unread, "it had read all");
	cr_assert_eq(slot_pair(&other_execd, &other_slot), 0);
	cr_assert_eq(slot_order_send(other_execd, &ping), 0);
	close(other_slot);
	cr_assert_eq(slot_order_send(other_execd, &ping), -ECONNRESET);
	cr_assert_eq(slot_order_send(other_execd, &ping), -EPIPE);
	cr_assert_eq(slot_report_receive(other_execd, &got, &unread), 0);
	cr_assert(!unread);
	close(other_execd);
}

Test(slot_protocol, reports_that_are_none_are_refused)
{
	uint8_t good[SLOT_REPORT_SIZE], bytes[SLOT_REPORT_SIZE + 1] = {0};
	struct slot_report r = {.type = SLOT_REPORT_READY};

	slot_report_encode(good, &r);
	cr_assert_eq(slot_report_decode(good, sizeof good, &r), 0);
	cr_assert_eq(slot_report_decode(good, sizeof good - 1, &r), -EPROTO);
	memcpy(bytes, good, sizeof good);
	cr_assert_eq(slot_report_decode(bytes, sizeof bytes, &r), -EPROTO);
	for (size_t i = 1; i < 4; i++) {
		memcpy(bytes, good, sizeof good);
		bytes[i] = 2;
		cr_assert_eq(slot_report_decode(bytes, sizeof good, &r), -EPROTO, "byte %zu", i);
	}
	for (unsigned type = 0; type < 256; type++) {
		memcpy(bytes, good, sizeof good);
		bytes[0] = (uint8_t)type;
		cr_assert(type >= SLOT_REPORT_READY && type <= SLOT_REPORT_LAST
			      ? true
			      : slot_report_decode(bytes, sizeof good, &r) == -EPROTO,
			  "type %u", type);
	}
}

static bool taken(struct slot_report r)
{
	uint8_t bytes[SLOT_REPORT_SIZE];
	struct slot_report got;

	slot_report_encode(bytes, &r);
	return slot_report_decode(bytes, sizeof bytes, &got) == 0;
}

#define SAYS(...) taken((struct slot_report){__VA_ARGS__})

Test(slot_protocol, a_report_says_what_its_type_can_and_no_more)
{
	static const enum slot_report_type silent[] = {SLOT_REPORT_TOOK, SLOT_REPORT_EMPTY, SLOT_REPORT_PONG};

	for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
		cr_assert(SAYS(silent[i], .value = 0));
		cr_assert(!SAYS(silent[i], .value = 1), "%u", silent[i]);
	}
	for (unsigned type = SLOT_REPORT_READY; type <= SLOT_REPORT_LAST; type++) {
		cr_assert_eq(SAYS(type, .value = type == SLOT_REPORT_START_FAILED ? 1u << 16 : 0, .pid = 1),
			     type == SLOT_REPORT_CLONED, "%u", type);
		cr_assert(type == SLOT_REPORT_EXITED || !SAYS(type, .value = 1u << 16, .by_kill = true));
	}
	cr_assert(SAYS(SLOT_REPORT_READY, .value = 1));
	cr_assert(!SAYS(SLOT_REPORT_READY, .value = 2));
	cr_assert(SAYS(SLOT_REPORT_STARTED, .value = 4095));
	cr_assert(!SAYS(SLOT_REPORT_STARTED, .value = 4096));
	cr_assert(SAYS(SLOT_REPORT_STILL_ALIVE, .value = INT32_MAX));
	cr_assert(!SAYS(SLOT_REPORT_STILL_ALIVE, .value = 1u << 31));
	cr_assert(!SAYS(SLOT_REPORT_MINDING, .value = UINT32_MAX));
	cr_assert(!SAYS(SLOT_REPORT_CLONED, .pid = 0));
	cr_assert(SAYS(SLOT_REPORT_CLONED, .pid = -4095));
	cr_assert(!SAYS(SLOT_REPORT_CLONED, .pid = -4096));
}

Test(slot_protocol, the_end_of_a_leader_is_one_of_waitpid)
{
	static const uint32_t bad[] = {0x7f,    0x137f,     0xffff,     0x0109,    65,
				       0x10000, 0x80000000, UINT32_MAX, 0x007fffff};

	for (uint32_t code = 0; code < 256; code++)
		cr_assert(SAYS(SLOT_REPORT_EXITED, .value = code << 8), "%u", code);
	for (uint32_t sig = 1; sig <= 64; sig++) {
		cr_assert(SAYS(SLOT_REPORT_EXITED, .value = sig), "%u", sig);
		cr_assert(SAYS(SLOT_REPORT_EXITED, .value = sig | 0x80), "%u", sig);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		cr_assert(!SAYS(SLOT_REPORT_EXITED, .value = bad[i]), "%x", bad[i]);
}

Test(slot_protocol, what_failed_is_a_step_and_an_errno)
{
	static const uint32_t bad[] = {0,
				       2,
				       OUTCOME_START_VALUE(START_LAST + 1, 2),
				       OUTCOME_START_VALUE(0xffff, 2),
				       OUTCOME_START_VALUE(START_EXEC, 4096),
				       UINT32_MAX};

	cr_assert(SAYS(SLOT_REPORT_WARDEN, .value = 0));
	for (uint32_t step = START_PIPES; step <= START_LAST; step++) {
		cr_assert(SAYS(SLOT_REPORT_START_FAILED, .value = OUTCOME_START_VALUE(step, 4095)));
		cr_assert(SAYS(SLOT_REPORT_WARDEN, .value = OUTCOME_START_VALUE(step, 1)));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		cr_assert(!SAYS(SLOT_REPORT_START_FAILED, .value = bad[i]), "%x", bad[i]);
		cr_assert(bad[i] == 0 || !SAYS(SLOT_REPORT_WARDEN, .value = bad[i]), "%x", bad[i]);
	}
}

/* execd's receive must not come to own what a slot sends. */
Test(slot_protocol, execd_takes_no_descriptors)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	uint8_t bytes[SLOT_REPORT_SIZE];
	struct iovec iov = {bytes, sizeof bytes};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof control.bytes};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	struct slot_report r = {.type = SLOT_REPORT_READY};
	int fd = 0;

	slot_report_encode(bytes, &r);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	/* From Linux 6.16 on it does not even leave the sender. */
	if (sendmsg(slot_end, &m, 0) < 0)
		return;
	cr_assert_eq(slot_report_receive(execd_end, &r, NULL), -EPROTO);
}
