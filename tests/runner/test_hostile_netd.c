/* execd beside a netd that somebody has taken over: whatever comes over the channel, it lives, keeps what it
 * had, says once what was wrong, kills that netd and goes on with the next. */
#include "common/channel.h"
#include "tests/lib/outer.h"
#include "tests/lib/siege.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

TestSuite(hostile_netd, .timeout = 120, .fini = siege_fini);

#define ROW_MS      15000
#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* One packet each: its header, its size, the first byte of its body. 1 is a request that is done, 2 one that
 * runs ("running-raw"), 3 one whose command of 100 bytes execd has asked for ("fetching-raw"). */
static const struct packet {
	const char *name, *early, *order;
	uint8_t type, flags;
	uint16_t zero;
	uint32_t len;
	uint64_t id;
	uint32_t seq_off, size;
	uint8_t first;
	const char *violation;
} packets[] = {
#define HEADER CHANNEL_HEADER
    {"one byte", NULL, "raw", CHANNEL_ABORT, 0, 0, 0, 1, 0, 1, 0, "wrong size"},
    {"short of a header", NULL, "raw", CHANNEL_ABORT, 0, 0, 0, 1, 0, HEADER - 1, 0, "wrong size"},
    {"longer than a record", NULL, "raw", CHANNEL_EXEC, 2, 0, LIMIT_RECORD + 1 - HEADER, 1, 0,
     LIMIT_RECORD + 1, 0, "record too long"},
    {"type zero", NULL, "raw", 0, 0, 0, 0, 0, 0, HEADER, 0, "unknown type"},
    {"unknown type", NULL, "raw", 200, 0, 0, 0, 0, 0, HEADER, 0, "unknown type"},
    {"our own direction", NULL, "raw", CHANNEL_ADMITTED, 0, 0, 0, 1, 0, HEADER, 0, "wrong direction"},
    {"credentials", NULL, "raw", CHANNEL_SET, CHANNEL_KEY_TOKEN, 0, 3, 0, 0, HEADER + 3, 'x',
     "wrong direction"},
    {"jailed twice", NULL, "raw", CHANNEL_JAILED, 0, 0, 0, 0, 0, HEADER, 0, "wrong phase"},
    {"attached twice", NULL, "raw", CHANNEL_ATTACHED, 0, 0, 0, 0, 0, HEADER, 0, "wrong phase"},
    {"attached before jailed", "jailing", "raw", CHANNEL_ATTACHED, 0, 0, 0, 0, 0, HEADER, 0, "wrong phase"},
    {"alive before jailed", "jailing", "raw", CHANNEL_ALIVE, 0, 0, CHANNEL_ALIVE_BLOCK, 0, 0,
     HEADER + CHANNEL_ALIVE_BLOCK, 0, "wrong phase"},
    {"goaway before attached", "dialling", "raw", CHANNEL_GOAWAY, 0, 0, 0, 0, 0, HEADER, 0, "wrong phase"},
    {"reserved bytes", NULL, "raw", CHANNEL_ABORT, 0, 1, 0, 1, 0, HEADER, 0, "reserved bytes set"},
    {"flag of abort", NULL, "raw", CHANNEL_ABORT, 1, 0, 0, 1, 0, HEADER, 0, "unknown flag"},
    {"flag of exec", NULL, "raw", CHANNEL_EXEC, 4, 0, CHANNEL_EXEC_BLOCK, 1, 0, HEADER + CHANNEL_EXEC_BLOCK,
     0, "unknown flag"},
    {"length above", NULL, "raw", CHANNEL_ABORT, 0, 0, 1, 1, 0, HEADER, 0, "wrong length"},
    {"length below", NULL, "raw", CHANNEL_ABORT, 0, 0, 0, 1, 0, HEADER + 1, 0, "wrong length"},
    {"length huge", NULL, "raw", CHANNEL_EXEC, 0, 0, UINT32_MAX, 1, 0, HEADER + CHANNEL_EXEC_BLOCK, 0,
     "wrong length"},
    {"exec too short", NULL, "raw", CHANNEL_EXEC, 0, 0, CHANNEL_EXEC_BLOCK - 1, 1, 0,
     HEADER + CHANNEL_EXEC_BLOCK - 1, 0, "wrong length"},
    {"exec with more than it says", NULL, "raw", CHANNEL_EXEC, 0, 0, CHANNEL_EXEC_BLOCK + 1, 1, 0,
     HEADER + CHANNEL_EXEC_BLOCK + 1, 0, "exec: values out of range"},
    {"exec with a command of another length", NULL, "raw", CHANNEL_EXEC, CHANNEL_INLINE, 0,
     CHANNEL_EXEC_BLOCK + 1, 1, 0, HEADER + CHANNEL_EXEC_BLOCK + 1, 0, "exec: values out of range"},
    {"drained too long", NULL, "raw", CHANNEL_DRAINED, 0, 0, CHANNEL_DRAINED_BLOCK + 1, 1, 0,
     HEADER + CHANNEL_DRAINED_BLOCK + 1, 0, "wrong length"},
    {"piece without offset", NULL, "raw", CHANNEL_COMMAND, 0, 0, 3, 1, 0, HEADER + 3, 0, "wrong length"},
    {"closed with class 0", NULL, "raw", CHANNEL_CLOSED, 0, 0, CHANNEL_CLOSED_BLOCK, 0, 0,
     HEADER + CHANNEL_CLOSED_BLOCK, 0, "closed: values out of range"},
    {"closed with a class too high", NULL, "raw", CHANNEL_CLOSED, 0, 0, CHANNEL_CLOSED_BLOCK, 0, 0,
     HEADER + CHANNEL_CLOSED_BLOCK, CHANNEL_CLOSE_LAST + 1, "closed: values out of range"},
    {"a request where none belongs", NULL, "raw", CHANNEL_GOAWAY, 0, 0, 0, 1, 0, HEADER, 0,
     "req_id where none belongs"},
    {"sequence gap", NULL, "raw", CHANNEL_ABORT, 0, 0, 0, 1, 1, HEADER, 0, "sequence gap"},
    {"sequence again", NULL, "raw", CHANNEL_ABORT, 0, 0, 0, 1, UINT32_MAX, HEADER, 0, "sequence gap"},
#define DRAINED   CHANNEL_DRAINED, 0, 0, CHANNEL_DRAINED_BLOCK
#define NOT_ENDED HEADER + CHANNEL_DRAINED_BLOCK, 0, "drained, but it has not ended"
    {"drained, of a done one", NULL, "raw", DRAINED, 1, 0, NOT_ENDED},
    {"drained, of nobody", NULL, "raw", DRAINED, 77, 0, NOT_ENDED},
    {"drained, of one that runs", NULL, "running-raw", DRAINED, 2, 0, NOT_ENDED},
    {"drained, of one that waits for its command", NULL, "fetching-raw", DRAINED, 3, 0, NOT_ENDED},
#define PIECE(bytes, id)                                                                                     \
	CHANNEL_COMMAND, 0, 0, CHANNEL_COMMAND_BLOCK + (bytes), id, 0,                                       \
	    HEADER + CHANNEL_COMMAND_BLOCK + (bytes)
#define NOT_ASKED "a piece of a command that was not asked for"
#define NO_FIT    "a piece of a command that does not fit"
    {"piece of a done one", NULL, "raw", PIECE(10, 1), 0, NOT_ASKED},
    {"piece of nobody", NULL, "raw", PIECE(10, 77), 0, NOT_ASKED},
    {"piece of one that runs", NULL, "running-raw", PIECE(10, 2), 0, NOT_ASKED},
    {"piece of another one", NULL, "fetching-raw", PIECE(10, 1), 0, NOT_ASKED},
    {"piece that is empty", NULL, "fetching-raw", PIECE(0, 3), 0, NO_FIT},
    {"piece of elsewhere", NULL, "fetching-raw", PIECE(10, 3), 1, NO_FIT},
    {"piece with too much", NULL, "fetching-raw", PIECE(101, 3), 0, NO_FIT},
};

Test(hostile_netd, no_malformed_record_harms_execd)
{
	static struct siege_row rows[COUNT(packets)];
	static char orders[COUNT(packets)][128];

	for (size_t i = 0; i < COUNT(packets); i++) {
		const struct packet *p = &packets[i];

		snprintf(orders[i], sizeof orders[i], "%s %u %u %u %u %llu %u %u %u", p->order, p->type,
			 p->flags, p->zero, p->len, (unsigned long long)p->id, p->seq_off, p->size, p->first);
		rows[i] = (struct siege_row){
		    .name = p->name, .early = p->early, .order = orders[i], .violation = p->violation};
	}
	siege(rows, COUNT(rows), ROW_MS);
}

/* Those that end by "unknown type" broke no rule before: that was sent to end them. */
static const struct siege_row deeds[] = {
    {"exec before jailed", "jailing", "exec", "wrong phase", {NULL}, false},
    {"exec before attached", "dialling", "exec", "wrong phase", {NULL}, false},
    {"exec after closed", NULL, "exec-after-closed", "wrong phase", {"msg=\"netd closed\" class=eof"}, false},
    {"a flood", NULL, "flood", "unknown type", {"hostile the timeout came in a flood"}, false},
    {"answers that it does not read", NULL, "full-exit", NULL, {"the channel is full", "why=eof"}, false},
    {"more than can wait", NULL, "many", "unknown type", {"hostile admitted 68 refused 132 asked 4"}, false},
    {"ids of others", NULL, "claims", "unknown type", {"hostile nothing was given away"}, false},
    {"its own credentials", NULL, "credentials", "unknown type", {"served all the same"}, false},
    {"a signal from its end, as another user", NULL, "async", "unknown type", {"served all the same"}, true},
    {"no more to say", NULL, "shut 1", NULL, {"why=eof", "netd does not end: killed", "signal=9"}, false},
    {"no more to hear", NULL, "shut 0", NULL, {"why=eof", "netd does not end: killed", "signal=9"}, false},
    {"shut in both ways", NULL, "shut 2", NULL, {"why=eof", "netd does not end: killed", "signal=9"}, false},
    {"an empty packet", NULL, "empty", NULL, {"why=eof", "netd does not end: killed", "signal=9"}, false},
    {"its exit", NULL, "exit 0", NULL, {"why=eof"}, false},
    {"its failure", NULL, "exit 9", NULL, {"why=eof", "msg=\"netd failed\"", "exit_code=9"}, false},
    {"its exit before jailed", "jailing", "exit 0", NULL, {"msg=\"attempt failed\" why=eof"}, false},
    {"its exit before attached", "dialling", "exit 0", NULL, {"msg=\"attempt failed\" why=eof"}, false},
    {"its crash", NULL, "signal 11", NULL, {"why=eof", "netd was killed", "signal=11"}, false},
    {"its being stopped", NULL, "signal 19", NULL, {"why=eof", "netd was killed", "signal=9"}, false},
    {"a child of it, and a violation", NULL, "fork 0", "unknown type", {NULL}, false},
    {"sendmsg in the jail", NULL, "jailed sendmsg", NULL, {"call=sendmsg", "killed by SIGSYS"}, false},
    {"an owner of its end in the jail",
     NULL,
     "jailed fcntl",
     NULL,
     {"call=fcntl", "killed by SIGSYS"},
     false},
    {"a fork in the jail", NULL, "jailed fork", NULL, {"call=clone", "killed by SIGSYS"}, false},
    {"a signal in the jail", NULL, "jailed kill", NULL, {"call=kill", "killed by SIGSYS"}, false},
};

Test(hostile_netd, no_deed_of_it_harms_execd)
{
	siege(deeds, COUNT(deeds), ROW_MS);
}

/* In a worker of its own: the sweep after another violation would find that child first. */
Test(hostile_netd, no_child_of_a_dead_one_holds_execd_up)
{
	static const struct siege_row rows[] = {
	    {"a child of it, and its exit", NULL, "fork 1", "its end outlived it", {"why=violation"}, false},
	};

	siege(rows, COUNT(rows), ROW_MS);
}

static bool kernel_has_passrights(void)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), off = 0;
	bool has = setsockopt(s, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off) == 0;

	close(s);
	return has;
}

Test(hostile_netd, no_descriptor_reaches_execd)
{
	static const struct siege_row rows[] = {
	    {"a descriptor", NULL, "push 1", "unknown type", {"nothing can be pushed"}, false},
	    {"many descriptors", NULL, "push 253", "unknown type", {"nothing can be pushed"}, false},
	    {"a socket that lingers", NULL, "linger", "unknown type", {"nothing can be pushed"}, false},
	};

	if (!kernel_has_passrights())
		cr_skip_test("no SO_PASSRIGHTS");
	siege(rows, COUNT(rows), ROW_MS);
}

/* They come as far as the socket, and no further. (A lingering one would do harm there, when it is closed:
 * that netd's jail has no sendmsg is what keeps it out.) */
Test(hostile_netd, no_descriptor_stays_in_execd_on_an_older_kernel)
{
	static const struct siege_row rows[] = {
	    {"a descriptor", NULL, "push 1", "descriptors where none belong", {NULL}, false},
	    {"many descriptors", NULL, "push 253", "descriptors where none belong", {NULL}, false},
	};

	outer_no_passrights();
	siege(rows, COUNT(rows), ROW_MS);
}

Test(hostile_netd, cannot_keep_execd_from_leaving)
{
	siege_leave_in("silence", "");
	siege_leave_in("full-stay", "the channel is full");
}
