/* Why an exec died is in the log: req_id, reason, duration, bytes. */
#include "tests/lib/stage.h"

#include "common/limits.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(field_log, .timeout = 60, .fini = stage_fini);

/* The line that begins so has come; the whole of it, until the next call. */
static const char *line_of(struct stage *s, const char *head)
{
	static char line[1024];
	const char *at;
	size_t n;

	cr_assert(worker_wait_said(&s->worker, head, STAGE_WAIT_MS), "no %s", head);
	relay_run(s->relay, 20); /* the rest of a line that came in two reads */
	at = memmem(s->worker.log.at, s->worker.log.size, head, strlen(head));
	n = (size_t)((const char *)s->worker.log.at + s->worker.log.size - at);
	n = n < sizeof line ? n : sizeof line - 1;
	memcpy(line, at, n);
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* Texts that begin with "no " must not be there, the others must. */
static void expect_line(struct stage *s, const char *head, const char *const *texts)
{
	const char *line = line_of(s, head);

	for (; *texts; texts++) {
		if (strncmp(*texts, "no ", 3) == 0)
			cr_assert(!strstr(line, *texts + 3), "\"%s\" in \"%s\"", *texts + 3, line);
		else
			cr_assert(strstr(line, *texts), "no \"%s\" in \"%s\"", *texts, line);
	}
}

static void expect_ended(struct stage *s, uint64_t req_id, const char *const *texts)
{
	char head[64];

	snprintf(head, sizeof head, "msg=ended req_id=%" PRIu64 " ", req_id);
	expect_line(s, head, texts);
}

#define EXPECT(s, exec, ...)                                                                                 \
	expect_ended(s, (exec)->req_id, (const char *const[]){" ms=", "hash=", __VA_ARGS__, NULL})
#define EXPECT_LINE(s, head, ...) expect_line(s, head, (const char *const[]){__VA_ARGS__, NULL})

Test(field_log, tells_the_exit_or_the_signal)
{
	static const struct {
		const char *command, *signal, *name;
	} rows[] = {
	    {"kill -SEGV $$", "signal=11 ", "signal_name=SEGV "},
	    {"kill -KILL $$", "signal=9 ", "signal_name=KILL "},
	    {"kill -TERM $$", "signal=15 ", "signal_name=TERM "},
	    {"kill -ABRT $$", "signal=6 ", "signal_name=ABRT "},
	    {"kill -BUS $$", "signal=7 ", "signal_name=BUS "},
	    {"kill -SYS $$", "signal=31 ", "signal_name=SYS "},
	};
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		exec = stage_exec(s, "printf 12345; %s", rows[i].command);
		stage_expect_end(exec, -1);
		EXPECT(s, exec, "reason=signal ", rows[i].signal, rows[i].name, "bytes_out=5 ",
		       "bytes_dropped=0 ", "no limit=", "no oom=");
	}
	exec = stage_exec(s, "exit 7");
	stage_expect_end(exec, 7);
	EXPECT(s, exec, "reason=exit ", "code=7 ", "bytes_out=0 ", "bytes_dropped=0 ", "no signal");
	stage_close(s);
}

/* A limit that the command ran into by itself. */
Test(field_log, names_the_limit_that_killed)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "ulimit -f 1; exec head -c 100000 /dev/zero >'%s/f'", s->folder);
	stage_expect_end(exec, -1);
	EXPECT(s, exec, "reason=signal ", "signal_name=XFSZ ", "limit=RLIMIT_FSIZE ");
	exec = stage_exec(s, "kill -XCPU $$");
	stage_expect_end(exec, -1);
	EXPECT(s, exec, "reason=signal ", "signal_name=XCPU ", "limit=RLIMIT_CPU ");
	stage_close(s);
}

Test(field_log, tells_what_was_dropped)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec_whole(s, "head -c 8388618 /dev/zero");
	stage_expect_end(exec, 0);
	EXPECT(s, exec, "reason=exit ", "bytes_out=8388608 ", "bytes_dropped=10 ", "truncated=yes");
	EXPECT_LINE(s, "msg=\"output was cut\" req_id=1 ", "stdout_dropped=10 ", "stderr_dropped=0");
	exec = stage_exec_whole(s, "printf 12345; head -c 8388708 /dev/zero >&2");
	stage_expect_end(exec, 0);
	EXPECT(s, exec, "bytes_out=8388613 ", "bytes_dropped=100 ", "no truncated");
	EXPECT_LINE(s, "msg=\"output was cut\" req_id=2 ", "stdout_dropped=0 ", "stderr_dropped=100");
	exec = stage_send(s, &(struct relay_request){.command = "yes", .timeout_s = 1});
	stage_expect_error(exec, "timeout:1");
	EXPECT(s, exec, "reason=timeout ", "timeout_s=1 ", "bytes_out=8388608 ", "truncated=yes",
	       "no dropped=0 ");
	stage_close(s);
}

static unsigned long number_of(struct stage *s, uint64_t req_id, const char *key)
{
	char head[64];
	const char *at;

	snprintf(head, sizeof head, "msg=ended req_id=%" PRIu64 " ", req_id);
	at = strstr(line_of(s, head), key);
	cr_assert(at, "no %s", key);
	return strtoul(at + strlen(key), NULL, 10);
}

/* What was left behind is waited for, and so is a place: neither is time that the command ran. */
Test(field_log, tells_what_the_relay_waited_and_what_the_command_ran)
{
	struct relay_exec *first, *second;
	uint64_t waited;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("SANDBOX_BACKGROUND=kill", "WORKER_MAX_CONCURRENT=1"));
	first = stage_exec(s, "sleep %s & exit 3", s->mark);
	second = stage_exec(s, "exit 4");
	stage_expect_end(first, 3);
	stage_expect_end(second, 4);
	waited = first->terminal[0].at_ms - first->sent_ms;
	cr_assert_geq(number_of(s, first->req_id, " ms="), LIMIT_QUIET_MS);
	cr_assert_leq(number_of(s, first->req_id, " ms="), waited + 100);
	cr_assert_lt(number_of(s, first->req_id, " ran_ms="),
		     number_of(s, first->req_id, " ms=") - LIMIT_QUIET_MS + 50);
	cr_assert_geq(number_of(s, second->req_id, " ms="), LIMIT_QUIET_MS - 100);
	cr_assert_leq(number_of(s, second->req_id, " ran_ms="),
		      number_of(s, second->req_id, " ms=") - LIMIT_QUIET_MS + 100);
	stage_close(s);
}

/* What came from elsewhere: the relay, the stream, our own processes. */
Test(field_log, tells_who_ended_it)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	exec = stage_send(s, &(struct relay_request){.command = "printf 123; sleep 9", .timeout_s = 1});
	stage_expect_error(exec, "timeout:1");
	EXPECT(s, exec, "reason=timeout ", "timeout_s=1 ", "bytes_out=3 ", "bytes_dropped=0 ");
	exec = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(exec, "up\n");
	relay_abort(s->attached, exec->req_id);
	stage_expect_end(exec, -1);
	EXPECT(s, exec, "reason=abort ", "bytes_out=3 ", "bytes_dropped=0 ");
	exec = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(exec, "up\n");
	process_kill(process_child(s->worker.pid, "slot"), SIGKILL);
	stage_expect_end(exec, -1);
	EXPECT(s, exec, "reason=slot ", "bytes_out=3 ");
	exec = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(exec, "up\n");
	relay_cut(s->attached, RELAY_CUT_CLOSE);
	EXPECT(s, exec, "reason=lost ");
	stage_reattach(s);
	exec = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(exec, "up\n");
	process_kill(s->worker.pid, SIGTERM);
	stage_expect_end(exec, -1);
	EXPECT(s, exec, "reason=shutdown ", "bytes_out=3 ");
	stage_close(s);
}

Test(field_log, is_the_same_as_json)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS("LOG_FORMAT=json"));
	exec = stage_exec(s, "printf 12345; kill -SEGV $$");
	stage_expect_end(exec, -1);
	EXPECT_LINE(s, "\"msg\":\"ended\",\"req_id\":1,",
		    "\"reason\":\"signal\",\"signal\":11,\"signal_name\":\"SEGV\",",
		    "\"ms\":", "\"bytes_out\":5,\"bytes_dropped\":0,");
	stage_close(s);
}

/* A refusal names the limit. */
Test(field_log, names_the_limit_that_refused)
{
	static char longest[LIMIT_COMMAND + 1];
	struct relay_exec *running;
	struct stage *s;

	memset(longest, ' ', sizeof longest);
	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	stage_send(s, &(struct relay_request){.command = "a\0b", .command_size = 3});
	EXPECT_LINE(s, "msg=refused req_id=1 ", "why=\"command refused: it holds a NUL byte\"");
	stage_send(s, &(struct relay_request){.command = longest, .command_size = sizeof longest});
	EXPECT_LINE(s, "msg=refused req_id=2 ", "why=\"command refused: it is longer than 1 MiB\"");
	running = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(running, "up\n");
	for (unsigned i = 0; i < LIMIT_WAITING + 1; i++)
		stage_exec(s, "true");
	EXPECT_LINE(s, "msg=refused req_id=68 ", "why=\"busy: queue full\"");
	relay_exec_again(running, s->attached,
			 &(struct relay_request){.req_id = running->req_id, .command = "other"});
	EXPECT_LINE(s, "msg=refused req_id=3 ", "why=\"req_id collision: ");
	stage_close(s);
}
