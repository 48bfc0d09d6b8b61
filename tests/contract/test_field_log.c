/* Why an exec died is in the log: req_id, reason, duration, bytes. */
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(field_log, .timeout = 60, .fini = stage_fini);

/* The line "ended" of an exec has come and holds each of the texts. */
static void expect_ended(struct stage *s, uint64_t req_id, const char *const *texts)
{
	char head[64], line[1024];
	const char *at;
	size_t n;

	snprintf(head, sizeof head, "msg=ended req_id=%" PRIu64 " ", req_id);
	cr_assert(worker_wait_said(&s->worker, head, STAGE_WAIT_MS), "no %s", head);
	relay_run(s->relay, 20); /* the rest of a line that came in two reads */
	at = memmem(s->worker.log.at, s->worker.log.size, head, strlen(head));
	n = (size_t)((const char *)s->worker.log.at + s->worker.log.size - at);
	n = n < sizeof line ? n : sizeof line - 1;
	memcpy(line, at, n);
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	for (; *texts; texts++)
		cr_assert(strstr(line, *texts), "no \"%s\" in \"%s\"", *texts, line);
	cr_assert(strstr(line, " ms="), "%s", line);
}

#define EXPECT(s, exec, ...) expect_ended(s, (exec)->req_id, (const char *const[]){__VA_ARGS__, NULL})

Test(field_log, tells_why_an_exec_died)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec(s, "printf 12345; kill -SEGV $$");
	stage_expect_end(exec, -1);
	EXPECT(s, exec, "reason=signal", "signal=11", "signal_name=SEGV", "bytes_out=5", "bytes_dropped=0");
	exec = stage_exec(s, "exit 7");
	stage_expect_end(exec, 7);
	EXPECT(s, exec, "reason=exit", "code=7", "bytes_out=0", "bytes_dropped=0");
	exec = stage_send(s, &(struct relay_request){.command = "sleep 9", .timeout_s = 1});
	stage_expect_error(exec, "timeout:1");
	EXPECT(s, exec, "reason=timeout", "timeout_s=1", "bytes_out=", "bytes_dropped=");
	exec = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(exec, "up\n");
	relay_abort(s->attached, exec->req_id);
	stage_expect_end(exec, -1);
	EXPECT(s, exec, "reason=abort", "bytes_out=3", "bytes_dropped=0");
	exec = stage_exec_whole(s, "head -c 8388618 /dev/zero");
	stage_expect_end(exec, 0);
	EXPECT(s, exec, "bytes_out=8388608", "bytes_dropped=10", "truncated=yes");
	exec = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(exec, "up\n");
	relay_cut(s->attached, RELAY_CUT_CLOSE);
	EXPECT(s, exec, "reason=lost");
	stage_reattach(s);
	stage_close(s);
}

/* A refusal names the limit. */
Test(field_log, names_the_limit_that_refused)
{
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	stage_send(s, &(struct relay_request){.command = "a\0b", .command_size = 3});
	cr_assert(worker_wait_said(&s->worker, "msg=refused req_id=1 why=", STAGE_WAIT_MS));
	stage_expect_end(stage_exec(s, "true"), 0);
	stage_close(s);
}
