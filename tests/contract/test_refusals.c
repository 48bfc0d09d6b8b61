/* contract.md 4: what is refused, in its words. */
#include "tests/lib/stage.h"

#include "common/limits.h"
#include "tests/relay/wire.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(refusals, .timeout = 60, .fini = stage_fini);

static void expect_error_with(struct relay_exec *exec, const char *part)
{
	const struct relay_terminal *t = relay_wait_end(exec, STAGE_WAIT_MS);

	cr_assert_eq(t->kind, RELAY_ERROR);
	cr_assert(strstr(t->message, part), "\"%s\" has no \"%s\"", t->message, part);
	cr_assert_eq(exec->chunk_count, 0);
}

Test(refusals, name_what_cannot_run_and_leave_the_stream)
{
	uint8_t *zeros = calloc(1, LIMIT_MESSAGE + 1024);
	struct relay_exec *exec;
	struct stage *s;

	cr_assert(zeros);
	memset(zeros, ' ', LIMIT_MESSAGE + 1024);
	s = stage_open(WORKER_SETTINGS());
	exec = stage_send(
	    s, &(struct relay_request){.command = "echo a\0b", .command_size = 8, .streaming = true});
	expect_error_with(exec, "NUL");
	exec = stage_send(
	    s, &(struct relay_request){.command = (char *)zeros, .command_size = LIMIT_COMMAND + 1});
	expect_error_with(exec, "1 MiB");
	exec = stage_send(
	    s, &(struct relay_request){.command = "cat", .input = zeros, .input_size = LIMIT_STDIN + 1});
	expect_error_with(exec, "16 MiB");
	exec = stage_send(
	    s, &(struct relay_request){.command = "cat", .input = zeros, .input_size = LIMIT_MESSAGE});
	expect_error_with(exec, "refused");
	exec = stage_exec(s, "echo alive");
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "alive\n");
	cr_assert(s->attached->stream, "the stream was lost");
	free(zeros);
	stage_close(s);
}

/* A refusal is not cached: the same id may run later. */
Test(refusals, are_not_cached)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = relay_exec(s->attached,
			  &(struct relay_request){.req_id = 5, .command = "a\0b", .command_size = 3});
	expect_error_with(exec, "NUL");
	exec = relay_exec(s->attached, &(struct relay_request){.req_id = 5, .command = "exit 3"});
	stage_expect_end(exec, 3);
	stage_close(s);
}

Test(refusals, tell_a_collision_and_the_first_goes_on)
{
	struct relay_request request = {.req_id = 9, .streaming = true}, other[4];
	char command[FOLDER_PATH_MAX + 64];
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	snprintf(command, sizeof command, "echo up; while [ ! -e '%s/go' ]; do sleep 0.02; done; exit 4",
		 s->folder);
	request.command = command;
	for (unsigned i = 0; i < 4; i++)
		other[i] = request;
	other[0].command = "echo other";
	other[1].input = "x", other[1].input_size = 1;
	other[2].timeout_s = 60;
	other[3].streaming = false;
	exec = relay_exec(s->attached, &request);
	stage_wait_out(exec, "up\n");
	for (unsigned i = 0; i < 4; i++)
		relay_exec_again(exec, s->attached, &other[i]);
	cr_assert(relay_wait_terminals(exec, 4, STAGE_WAIT_MS));
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(exec->terminal[i].kind, RELAY_ERROR);
		cr_assert(strncmp(exec->terminal[i].message, "req_id collision: ", 18) == 0, "%s",
			  exec->terminal[i].message);
	}
	folder_touch(s->folder, "go");
	cr_assert(relay_wait_terminals(exec, 5, STAGE_WAIT_MS));
	cr_assert_eq(exec->terminal[4].kind, RELAY_END);
	cr_assert_eq(exec->terminal[4].exit_code, 4);
	stage_expect_out(exec, "up\n");
	stage_close(s);
}

/* bash is found at start; here it is gone later, and comes back. */
Test(refusals, name_the_step_of_a_failed_start_and_do_not_cache_it)
{
	struct relay_request request = {.req_id = 12, .command = "exit 3"};
	char bash[FOLDER_PATH_MAX], away[FOLDER_PATH_MAX], path[FOLDER_PATH_MAX * 2];
	struct relay_exec *exec;
	struct stage *s;

	s = stage_prepare();
	folder_join(bash, s->folder, "bash");
	folder_join(away, s->folder, "away");
	folder_copy("/bin/bash", bash, 0700);
	snprintf(path, sizeof path, "PATH=%s:%s", s->folder, getenv("PATH"));
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(path));
	stage_reattach(s);
	cr_assert(rename(bash, away) == 0);
	exec = relay_exec(s->attached, &request);
	stage_expect_error(exec, "could not start: bash: No such file or directory");
	cr_assert(rename(away, bash) == 0);
	exec = relay_exec(s->attached, &request);
	stage_expect_end(exec, 3);
	stage_close(s);
}

/* None has read a byte when the last has come. */
Test(refusals, leave_the_default_concurrency_the_largest_input_for_each)
{
	uint8_t *data = calloc(1, LIMIT_STDIN);
	struct relay_exec *exec[4];
	char command[512];
	struct stage *s;

	cr_assert(data);
	s = stage_open(WORKER_SETTINGS());
	snprintf(command, sizeof command, "echo up; while [ ! -e '%s/go' ]; do sleep 0.02; done; wc -c",
		 s->folder);
	for (unsigned i = 0; i < 4; i++)
		exec[i] = stage_send(
		    s, &(struct relay_request){
			   .command = command, .input = data, .input_size = LIMIT_STDIN, .streaming = true});
	for (unsigned i = 0; i < 4; i++)
		stage_wait_out(exec[i], "up\n");
	snprintf(command, sizeof command, "%s/go", s->folder);
	close(open(command, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	for (unsigned i = 0; i < 4; i++) {
		stage_expect_end(exec[i], 0);
		stage_expect_out(exec[i], "up\n16777216\n");
	}
	free(data);
	stage_close(s);
}

/* Beyond LIMIT_HELD of commands and stdin held for what waits. */
Test(refusals, say_busy_when_too_much_is_held)
{
	enum { EACH = 15 << 20 };
	uint8_t *data = calloc(1, EACH);
	struct relay_exec *running, *waiting[5];
	struct stage *s;

	cr_assert(data);
	s = stage_open(WORKER_SETTINGS("WORKER_MAX_CONCURRENT=1"));
	running = stage_exec(s, "echo up; exec sleep %s", s->mark);
	stage_wait_out(running, "up\n");
	for (unsigned i = 0; i < 5; i++) {
		waiting[i] = stage_send(
		    s, &(struct relay_request){.command = "wc -c", .input = data, .input_size = EACH});
	}
	cr_assert(relay_wait_terminals(waiting[4], 1, 30000));
	stage_expect_error(waiting[4], "busy: memory");
	cr_assert_eq(waiting[3]->terminal_count, 0);
	relay_abort(s->attached, running->req_id);
	for (unsigned i = 0; i < 4; i++) {
		stage_expect_end(waiting[i], 0);
		stage_expect_out(waiting[i], "15728640\n");
	}
	free(data);
	stage_close(s);
}

/* Unknown fields and members, an empty frame, an Exec in pieces of one byte: all is read as the wire says. */
Test(refusals, do_not_fall_on_what_is_new_on_the_wire)
{
	static const uint8_t unknown_member[] = {0x7a, 0x03, 'n', 'e', 'w'}; /* field 15 */
	struct relay_request request = {.req_id = 77, .command = "echo new", .streaming = true};
	struct relay_bytes exec_bytes = {0}, frame = {0};
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	relay_send_message(s->attached, NULL, 0);
	relay_send_message(s->attached, unknown_member, sizeof unknown_member);
	relay_byte_frames(s->attached, true);
	exec = stage_exec(s, "echo bytewise");
	stage_expect_end(exec, 0);
	relay_byte_frames(s->attached, false);

	/* workspace_key = 6 and a field 1000. */
	exec = relay_exec(s->attached, &request);
	stage_expect_end(exec, 0);
	relay_wire_exec(&exec_bytes, &request);
	relay_wire_string(&exec_bytes, 6, "key", 3);
	relay_wire_number(&exec_bytes, 1000, 5);
	relay_wire_message(&frame, 1, &exec_bytes);
	exec->deliveries++;
	relay_send_message(s->attached, frame.at, frame.size);
	cr_assert(relay_wait_terminals(exec, 2, STAGE_WAIT_MS));
	cr_assert_eq(exec->terminal[1].kind, RELAY_END);
	stage_expect_out(exec, "new\n");
	relay_bytes_free(&exec_bytes);
	relay_bytes_free(&frame);
	stage_close(s);
}
