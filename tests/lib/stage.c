#include "tests/lib/stage.h"

#include "common/clock.h"
#include "tests/lib/slow.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct stage only;
static struct stage *current; /* &only while a test uses it */

struct stage *stage_prepare(void)
{
	struct stage *stage = &only;

	cr_assert(!current, "one stage at a time");
	*stage = (struct stage){0};
	process_adopt_orphans();
	stage->relay = relay_start(&(struct relay_options){.token = "token"});
	cr_assert(stage->relay);
	folder_make(stage->folder);
	snprintf(stage->mark, sizeof stage->mark, "5000.%07d", (int)getpid());
	current = stage;
	return stage;
}

void stage_relay(struct stage *stage, const struct relay_options *options)
{
	relay_stop(stage->relay);
	stage->relay = relay_start(options);
	cr_assert(stage->relay);
}

struct stage *stage_begin(const char *const *settings)
{
	struct stage *stage = stage_prepare();

	worker_start(&stage->worker, stage->relay, settings);
	return stage;
}

struct stage *stage_open(const char *const *settings)
{
	struct stage *stage = stage_begin(settings);

	stage_reattach(stage);
	return stage;
}

void stage_reattach(struct stage *stage)
{
	unsigned before = stage->attached ? stage->attached->number : 0;

	stage->attached = relay_wait_attached(stage->relay, before, STAGE_WAIT_MS);
	cr_assert(stage->attached, "no worker has attached; complaints: %s", relay_complaints(stage->relay));
}

static void end(struct stage *stage)
{
	worker_free(&stage->worker);
	relay_stop(stage->relay);
	folder_remove(stage->folder);
	current = NULL;
}

void stage_leave(struct stage *stage)
{
	cr_assert(worker_wait_exit(&stage->worker, STAGE_WAIT_MS), "the worker lives");
	cr_assert(process_wait_no_children(stage->relay, 2000), "processes were left behind");
	cr_assert_str_empty(relay_complaints(stage->relay));
	end(stage);
}

void stage_close(struct stage *stage)
{
	cr_assert(worker_stop(&stage->worker), "the worker did not leave in 5 s");
	cr_assert(WIFEXITED(stage->worker.wait_status) && WEXITSTATUS(stage->worker.wait_status) == 0,
		  "wait status %x", (unsigned)stage->worker.wait_status);
	stage_leave(stage);
}

void stage_fini(void)
{
	struct stage *stage = current;

	if (!stage)
		return;
	if (stage->worker.pid > 0) {
		worker_kill(&stage->worker);
		fprintf(stderr, "--- log of the worker\n%.*s---\n", (int)stage->worker.log.size,
			(const char *)stage->worker.log.at);
		process_wait_no_children(stage->relay, 2000);
	}
	fprintf(stderr, "--- complaints of the relay: %s\n", relay_complaints(stage->relay));
	end(stage);
}

struct relay_exec *stage_send(struct stage *stage, const struct relay_request *request)
{
	struct relay_request r = *request;

	if (r.req_id == 0)
		r.req_id = ++stage->last_id;
	return relay_exec(stage->attached, &r);
}

static struct relay_exec *send_format(struct stage *stage, bool streaming, const char *format, va_list ap)
{
	struct relay_exec *exec;
	char *command = NULL;

	cr_assert(vasprintf(&command, format, ap) >= 0);
	exec = stage_send(stage, &(struct relay_request){.command = command, .streaming = streaming});
	free(command);
	return exec;
}

struct relay_exec *stage_exec(struct stage *stage, const char *format, ...)
{
	struct relay_exec *exec;
	va_list ap;

	va_start(ap, format);
	exec = send_format(stage, true, format, ap);
	va_end(ap);
	return exec;
}

struct relay_exec *stage_exec_whole(struct stage *stage, const char *format, ...)
{
	struct relay_exec *exec;
	va_list ap;

	va_start(ap, format);
	exec = send_format(stage, false, format, ap);
	va_end(ap);
	return exec;
}

void stage_expect_end(struct relay_exec *exec, int32_t exit_code)
{
	const struct relay_terminal *t = relay_wait_end(exec, STAGE_WAIT_MS);

	cr_assert(t->kind != RELAY_NONE, "%" PRIu64 " was not answered", exec->req_id);
	cr_assert(t->kind == RELAY_END, "%" PRIu64 ": ExecError %s", exec->req_id, t->message);
	cr_assert_eq(t->exit_code, exit_code, "%" PRIu64 ": exit code %d, not %d; stderr: %.*s", exec->req_id,
		     t->exit_code, exit_code, (int)exec->err.size, (const char *)exec->err.at);
}

void stage_expect_error(struct relay_exec *exec, const char *message)
{
	const struct relay_terminal *t = relay_wait_end(exec, STAGE_WAIT_MS);

	cr_assert(t->kind != RELAY_NONE, "%" PRIu64 " was not answered", exec->req_id);
	cr_assert(t->kind == RELAY_ERROR, "%" PRIu64 ": End with code %d", exec->req_id, t->exit_code);
	cr_assert_str_eq(t->message, message);
}

static void expect(const struct relay_bytes *bytes, const char *text)
{
	const char *at = bytes->at ? (const char *)bytes->at : "";

	cr_assert(bytes->size == strlen(text) && memcmp(at, text, bytes->size) == 0, "\"%.*s\", not \"%s\"",
		  (int)bytes->size, at, text);
}

void stage_expect_out(const struct relay_exec *exec, const char *text)
{
	expect(&exec->out, text);
}

void stage_expect_err(const struct relay_exec *exec, const char *text)
{
	expect(&exec->err, text);
}

void stage_wait_out(struct relay_exec *exec, const char *text)
{
	size_t size = strlen(text);

	cr_assert(relay_wait_bytes(exec, size, STAGE_WAIT_MS), "%" PRIu64 ": no \"%s\"", exec->req_id, text);
	cr_assert(memcmp(exec->out.at, text, size) == 0, "\"%.*s\", not \"%s\"", (int)exec->out.size,
		  (const char *)exec->out.at, text);
}

void stage_expect_seq(const struct relay_exec *exec, unsigned count)
{
	const uint8_t *at = exec->out.at, *end = at + exec->out.size;
	char line[16];

	for (unsigned i = 1; i <= count; i++) {
		int n = snprintf(line, sizeof line, "%u\n", i);

		cr_assert(end - at >= n && memcmp(at, line, (size_t)n) == 0, "line %u", i);
		at += n;
	}
	cr_assert(at == end, "%td bytes more", end - at);
}

/* Files say nothing when they grow, so they are asked. */
void stage_wait_file(struct stage *stage, const char *path, off_t size)
{
	uint64_t deadline = clock_now_ms() + slow_ms(STAGE_WAIT_MS);

	while (folder_size(path) < size) {
		cr_assert(clock_now_ms() < deadline, "%s: %lld bytes", path, (long long)folder_size(path));
		relay_run(stage->relay, 5);
	}
}
