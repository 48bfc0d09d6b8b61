/* execd's side of the channel in good order, at its end, and when it is full. */
#include "tests/unit/execd/records_rig.h"

/* --- good order --- */

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
	says(CHANNEL_QUIET, 0, 9, NULL, 0);
	says(CHANNEL_GOAWAY, 0, 0, NULL, 0);
	channel_encode_alive(block, &(struct channel_alive){.held = 12});
	says(CHANNEL_ALIVE, 0, 0, block, CHANNEL_ALIVE_BLOCK);
	channel_encode_closed(block, &(struct channel_closed){.close_class = CHANNEL_CLOSE_EOF});
	says(CHANNEL_CLOSED, 0, 0, block, CHANNEL_CLOSED_BLOCK);
	passes();
	expect("exec-inline 7;exec 8;command 8;at 5;size 3;abort 18446744073709551615;drained-truncated "
	       "7;out 99;"
	       "drained 8;out 99;quiet 9;goaway 0;alive 12;closed 11;");
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
	cr_assert_eq(records_left(6), 0);
	cr_assert_eq(
	    records_ended(7, &(struct channel_ended){.outcome = o, .reading = CHANNEL_READ_KILLED}, true), 0);
	records_drain();
	cr_assert(hears(&r) == CHANNEL_ADMITTED && r.h.req_id == 1);
	cr_assert(hears(&r) == CHANNEL_DUPLICATE && r.h.req_id == 2);
	cr_assert(hears(&r) == CHANNEL_REPLAY && r.h.req_id == 3 && r.h.flags == CHANNEL_TRUNCATED);
	cr_assert(hears(&r) == CHANNEL_REFUSED && r.h.req_id == 4 && r.body[0] == OUTCOME_REFUSED);
	cr_assert(hears(&r) == CHANNEL_FETCH && r.h.req_id == 5 && buf_get_u32(r.body) == 77);
	cr_assert(hears(&r) == CHANNEL_STARTED && r.h.req_id == 6 && r.fds[2] >= 0);
	cr_assert(hears(&r) == CHANNEL_LEFT && r.h.req_id == 6 && r.h.len == 0);
	cr_assert(hears(&r) == CHANNEL_ENDED && r.h.req_id == 7 && r.h.flags == CHANNEL_TRUNCATED);
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

/* --- the end --- */

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

/* --- a channel that is full --- */

static unsigned fill(void)
{
	struct channel_ended e = {.outcome = {OUTCOME_EXITED, 0}};
	unsigned n = 0;

	while (records_ended(1000 + n, &e, false) == 0)
		n++;
	cr_assert_eq(records_ended(1, &e, false), -EAGAIN);
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
