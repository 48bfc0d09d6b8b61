/* A netd that somebody has taken over, in netd's place beside execd: tests/lib/siege.h tells it what to do.
 *
 * SANDBOX_IMAGE is a folder. Each of these processes attaches, has request 1 run or replayed, says "hostile
 * ready" on stderr with the word ran or replayed, reads one order from the FIFO "orders" there, and does
 * that. Where the folder has a file "early", "jailing ORDER" or "dialling ORDER", it removes it and does that
 * before it has attached. When an order is done it waits to be killed, deaf to all other signals.
 *
 * Orders are a word and numbers; see the table at the end. */
#include "tests/runner/hostile_talk.h"

#include "common/buf.h"
#include "common/log.h"
#include "netd/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FULL_MS 300
#define MANY    200
#define RUNNING 2u /* the id of a command that runs on and on */
#define FETCHED 3u /* of one whose command execd has to ask for */

static char folder[LIMIT_SETTING + 1];

/* Request 1: the first time it runs, later it is answered from the cache. */
static void first_request(void)
{
	char command[LIMIT_SETTING + 64];
	struct channel_record r;

	snprintf(command, sizeof command, "printf x >>%s/once", folder);
	talk_exec(1, 1, 0, command);
	if (talk_hear(&r) == CHANNEL_REPLAY) {
		talk_tell("ready replayed");
		return;
	}
	if (r.h.type != CHANNEL_ADMITTED)
		talk_fail("request 1");
	talk_serve_start(1, command);
	talk_expect(CHANNEL_ENDED);
	talk_drained(1);
	talk_tell("ready ran");
}

/* --- orders --- */

static void raw_packet(const void *packet, size_t size)
{
	if (send(CHANNEL_FD, packet, size, MSG_NOSIGNAL) != (ssize_t)size)
		talk_fail("raw");
}

/* TYPE FLAGS ZERO LEN ID SEQ_OFF SIZE FIRST: a packet of SIZE bytes with that header, whose body is FIRST and
 * zeros. */
static void do_raw(const char *arguments)
{
	static uint8_t packet[LIMIT_RECORD + 1000];
	unsigned type, flags, zero, len, seq_off, size, first;
	unsigned long id;

	if (sscanf(arguments, "%u %u %u %u %lu %u %u %u", &type, &flags, &zero, &len, &id, &seq_off, &size,
		   &first) != 8 ||
	    size > sizeof packet)
		talk_fail("order");
	channel_encode_header(packet, &(struct channel_header){.type = (enum channel_type)type,
							       .flags = (uint8_t)flags,
							       .len = len,
							       .req_id = id,
							       .seq = talk.seq_out + seq_off});
	buf_put_u16(packet + 2, (uint16_t)zero);
	packet[CHANNEL_HEADER] = (uint8_t)first;
	raw_packet(packet, size);
}

/* Ends this netd, where the order itself broke no rule. */
void hostile_violate(const char *unused)
{
	(void)unused;
	do_raw("0 0 0 0 0 0 20 0");
}

/* A command runs when the rest is done. */
static void start_running(uint32_t timeout_s)
{
	char command[LIMIT_SETTING + 64];

	snprintf(command, sizeof command, "exec -a %s/running sleep 5000", folder);
	talk_exec(RUNNING, 2, timeout_s, command);
	talk_expect(CHANNEL_ADMITTED);
	talk_serve_start(RUNNING, command);
}

static void do_running_raw(const char *arguments)
{
	start_running(0);
	do_raw(arguments);
}

/* execd has asked for a piece of FETCHED when the rest is done. */
static void do_fetching_raw(const char *arguments)
{
	talk_exec(FETCHED, 3, 0, NULL);
	talk_expect(CHANNEL_ADMITTED);
	talk_expect(CHANNEL_FETCH);
	do_raw(arguments);
}

static void do_silence(const char *unused)
{
	(void)unused;
}

/* A good request, at a bad moment. */
static void do_exec(const char *unused)
{
	char command[LIMIT_SETTING + 64];

	(void)unused;
	snprintf(command, sizeof command, "touch %s/never", folder);
	talk_exec(9, 9, 0, command);
}

static void do_exec_after_closed(const char *unused)
{
	uint8_t block[CHANNEL_CLOSED_BLOCK];

	channel_encode_closed(block, &(struct channel_closed){.close_class = CHANNEL_CLOSE_EOF});
	talk_say(CHANNEL_CLOSED, 0, 0, block, sizeof block);
	do_exec(unused);
}

/* Records that are always allowed, without a pause, while a timeout of execd's has to come. */
static void do_flood(const char *unused)
{
	static const uint8_t alive[CHANNEL_ALIVE_BLOCK];
	struct channel_record r;
	const char *why;
	unsigned long sent = 0;

	start_running(1);
	while (channel_receive(&talk, talk_buffer, &r, &why) != 1)
		sent += talk_say_within(TALK_WAIT_MS, CHANNEL_ALIVE, 0, 0, alive, sizeof alive, NULL);
	if (r.h.type != CHANNEL_ENDED)
		talk_fail("no end");
	talk_tell("the timeout came in a flood of %lu", sent);
	hostile_violate(unused);
}

/* Asks and asks, and reads no answer. */
static void fill(void)
{
	uint8_t block[CHANNEL_EXEC_BLOCK];
	struct channel_exec e = {.bad = REFUSAL_MEMORY};
	unsigned sent = 0;

	channel_encode_exec(block, &e);
	while (talk_say_within(FULL_MS, CHANNEL_EXEC, 0, 100 + sent, block, sizeof block, NULL))
		sent++;
	talk_tell("the channel is full");
}

static void do_full_exit(const char *unused)
{
	(void)unused;
	fill();
	_exit(0);
}

static void do_full_stay(const char *unused)
{
	(void)unused;
	fill();
}

/* More than wait and run together; none of the commands ever comes. */
static void do_many(const char *unused)
{
	unsigned admitted = 0, refused = 0, asked = 0;
	struct channel_record r;

	for (unsigned i = 0; i < MANY; i++)
		talk_exec(1000 + i, (uint8_t)i, 0, NULL);
	while (admitted + refused < MANY) {
		enum channel_type type = talk_hear(&r);

		admitted += type == CHANNEL_ADMITTED;
		refused += type == CHANNEL_REFUSED;
		asked += type == CHANNEL_FETCH;
	}
	talk_tell("admitted %u refused %u asked %u", admitted, refused, asked);
	hostile_violate(unused);
}

/* Ids of others: nothing to abort, one that runs, the same with other work. */
static void do_claims(const char *unused)
{
	talk_say(CHANNEL_ABORT, 0, 1, NULL, 0);
	talk_say(CHANNEL_ABORT, 0, 77, NULL, 0);
	start_running(0);
	talk_exec(RUNNING, 2, 0, "true");
	talk_expect(CHANNEL_DUPLICATE);
	talk_exec(RUNNING, 4, 0, "true");
	talk_expect(CHANNEL_REFUSED);
	talk_exec(1, 1, 0, "true");
	talk_expect(CHANNEL_REPLAY);
	talk_tell("nothing was given away");
	hostile_violate(unused);
}

/* What execd sends here kills execd, if the kernel lets it. */
static void do_async(const char *unused)
{
	if (fcntl(CHANNEL_FD, F_SETOWN, getppid()) < 0 || fcntl(CHANNEL_FD, F_SETSIG, SIGKILL) < 0 ||
	    fcntl(CHANNEL_FD, F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
		talk_fail("async");
	talk_exec(1, 1, 0, "true");
	talk_expect(CHANNEL_REPLAY);
	talk_tell("served all the same");
	hostile_violate(unused);
}

static void do_shut(const char *arguments)
{
	int how = atoi(arguments);

	shutdown(CHANNEL_FD, how);
	if (how == SHUT_RD)
		talk_exec(1, 1, 0, "true"); /* the answer finds nobody */
}

static void do_empty(const char *unused)
{
	(void)unused;
	if (send(CHANNEL_FD, "", 0, MSG_NOSIGNAL) != 0)
		talk_fail("empty");
}

static void do_exit(const char *arguments)
{
	_exit(atoi(arguments));
}

static void do_signal(const char *arguments)
{
	int number = atoi(arguments);

	signal(number, SIG_DFL);
	raise(number);
}

/* A child keeps the channel. */
static void do_fork(const char *arguments)
{
	pid_t pid = fork();

	if (pid < 0)
		talk_fail("fork");
	if (pid == 0) {
		prctl(PR_SET_NAME, "left");
		talk_stay();
	}
	if (atoi(arguments))
		_exit(0);
	hostile_violate(NULL);
}

/* As a netd that was taken over after its jail had shut. */
static void do_jailed(const char *arguments)
{
	static struct settings settings = {.capacity = 4, .relay_port = 1};
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	pid_t parent = getppid();

	if (jail_enter(&settings) < 0)
		talk_fail("jail");
	if (strcmp(arguments, "sendmsg") == 0)
		sendmsg(CHANNEL_FD, &m, 0);
	else if (strcmp(arguments, "fcntl") == 0)
		fcntl(CHANNEL_FD, F_SETOWN, 1);
	else if (strcmp(arguments, "fork") == 0)
		fork();
	else if (strcmp(arguments, "kill") == 0)
		kill(parent, SIGTERM);
	talk_fail("not jailed");
}

static const struct {
	const char *name;
	void (*run)(const char *arguments);
} orders[] = {
    {"raw", do_raw},
    {"running-raw", do_running_raw},
    {"fetching-raw", do_fetching_raw},
    {"silence", do_silence},
    {"exec", do_exec},
    {"exec-after-closed", do_exec_after_closed},
    {"flood", do_flood},
    {"full-exit", do_full_exit},
    {"full-stay", do_full_stay},
    {"many", do_many},
    {"claims", do_claims},
    {"push", hostile_push},
    {"linger", hostile_linger},
    {"credentials", hostile_credentials},
    {"async", do_async},
    {"shut", do_shut},
    {"empty", do_empty},
    {"exit", do_exit},
    {"signal", do_signal},
    {"fork", do_fork},
    {"jailed", do_jailed},
};

static _Noreturn void obey(char *order)
{
	char *arguments = order + strcspn(order, " ");

	if (*arguments)
		*arguments++ = '\0';
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
		if (strcmp(order, orders[i].name) != 0)
			continue;
		orders[i].run(arguments);
		talk_stay();
	}
	talk_fail("no such order");
}

/* The first line of a file in the folder; false: there is no such file. A FIFO is waited for. */
static bool read_line(const char *name, char *ret, size_t size)
{
	char path[LIMIT_SETTING + 64];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(ret, (int)size, f))
		talk_fail(name);
	ret[strcspn(ret, "\n")] = '\0';
	fclose(f);
	return true;
}

static void obey_early(const char *now)
{
	char line[256], path[LIMIT_SETTING + 64];
	size_t n = strlen(now);

	if (!read_line("early", line, sizeof line) || strncmp(line, now, n) != 0 || line[n] != ' ')
		return;
	snprintf(path, sizeof path, "%s/early", folder);
	unlink(path);
	obey(line + n + 1);
}

int main(void)
{
	struct channel_record r;
	char order[256];

	log_init("netd", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	for (int s = 1; s < NSIG; s++)
		signal(s, s == SIGCHLD || s == SIGSYS ? SIG_DFL : SIG_IGN);
	while (talk_hear(&r) != CHANNEL_JAIL) {
		if (r.h.type == CHANNEL_SET && r.h.flags == CHANNEL_KEY_IMAGE)
			memcpy(folder, r.body, r.h.len);
	}
	obey_early("jailing");
	talk_say(CHANNEL_JAILED, 0, 0, NULL, 0);
	talk.phase = CHANNEL_PHASE_CREDENTIALS;
	while (talk_hear(&r) != CHANNEL_DIAL)
		continue;
	talk.phase = CHANNEL_PHASE_DIALLING;
	obey_early("dialling");
	talk_say(CHANNEL_ATTACHED, 0, 0, NULL, 0);
	talk.phase = CHANNEL_PHASE_ATTACHED;
	first_request();
	if (!read_line("orders", order, sizeof order))
		talk_fail("orders");
	obey(order);
}
