#include "tests/relay/command.h"

#include "common/clock.h"
#include "common/fd.h"
#include "proto/sandbox/v1/sandbox.pb-c.h"
#include "tests/relay/client.h"
#include "tests/relay/relay.h"
#include "tests/relay/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define EXEC_PATH  "/sandbox.v1.SandboxExec/Exec"
#define ABORT_PATH "/sandbox.v1.SandboxExec/Abort"

struct session {
	const struct relay_command *what;
	struct loop loop;
	struct relay_client client;
	struct loop_source interrupt;
	struct relay_call exec;
	struct relay_call abort;
	uint64_t req_id;
	unsigned interrupts;
	bool aborting;
	enum { WAITING, ENDED, FAILED } answer;
	int32_t exit_code;
	bool truncated;
	char error[512];
};

static void on_event(struct relay_call *call, const uint8_t *at, size_t size)
{
	struct session *s = call->owner;
	Sandbox__V1__ExecEvent *event = sandbox__v1__exec_event__unpack(NULL, size, at);

	if (!event)
		return;
	switch (event->event_case) {
	case SANDBOX__V1__EXEC_EVENT__EVENT_CHUNK:
		fd_write_full(event->chunk->stream == SANDBOX__V1__STREAM__STREAM_STDERR ? STDERR_FILENO
											 : STDOUT_FILENO,
			      event->chunk->data.data, event->chunk->data.len);
		break;
	case SANDBOX__V1__EXEC_EVENT__EVENT_END:
		s->answer = ENDED;
		s->exit_code = event->end->exit_code;
		s->truncated = event->end->truncated;
		break;
	case SANDBOX__V1__EXEC_EVENT__EVENT_ERROR:
		s->answer = FAILED;
		snprintf(s->error, sizeof s->error, "%s", event->error->message);
		break;
	default:
		break;
	}
	sandbox__v1__exec_event__free_unpacked(event, NULL);
}

static void send_abort(struct session *s)
{
	struct relay_bytes message = {0};

	if (s->aborting)
		return;
	s->aborting = true;
	relay_wire_string(&message, 1, s->what->sandbox_id, strlen(s->what->sandbox_id));
	relay_wire_number(&message, 2, s->req_id);
	s->abort = (struct relay_call){0};
	relay_client_call(&s->client, &s->abort, ABORT_PATH, &message);
	relay_bytes_free(&message);
}

static void on_interrupt(struct loop_source *source, uint32_t events)
{
	struct session *s = source->owner;
	struct signalfd_siginfo info;

	(void)events;
	if (read(source->fd, &info, sizeof info) == sizeof info)
		s->interrupts++;
}

static int session_open(struct session *s, const struct relay_command *what)
{
	sigset_t set;
	int r = loop_init(&s->loop);

	if (r < 0)
		return r;
	s->what = what;
	r = relay_client_open(&s->client, &s->loop, what->relay);
	if (r < 0)
		return r;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	s->interrupt = (struct loop_source){.ready = on_interrupt, .owner = s};
	s->interrupt.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->interrupt.fd < 0 ? -errno : loop_add(&s->loop, &s->interrupt, EPOLLIN);
}

static void session_close(struct session *s)
{
	relay_client_close(&s->client);
	fd_close(&s->interrupt.fd);
	loop_close(&s->loop);
}

static void request(struct session *s, const char *command, const struct relay_bytes *input)
{
	struct relay_bytes exec = {0}, message = {0};

	/* As real harnesses do: up to 2^53. */
	if (getrandom(&s->req_id, sizeof s->req_id, 0) != sizeof s->req_id)
		abort();
	s->req_id = (s->req_id >> 11) + 1;
	relay_wire_exec(&exec, &(struct relay_request){.req_id = s->req_id,
						       .command = command,
						       .input = input->at,
						       .input_size = input->size,
						       .timeout_s = s->what->timeout_s,
						       .streaming = s->what->streaming});
	relay_wire_string(&message, 1, s->what->sandbox_id, strlen(s->what->sandbox_id));
	relay_wire_message(&message, 2, &exec);
	s->exec = (struct relay_call){.message = on_event, .owner = s};
	relay_client_call(&s->client, &s->exec, EXEC_PATH, &message);
	relay_bytes_free(&exec);
	relay_bytes_free(&message);
}

static void report(const struct session *s)
{
	if (s->answer == ENDED && s->truncated)
		fprintf(stderr, "stdout truncated\n");
	if (s->answer == ENDED)
		fprintf(stderr, "exit code %" PRId32 "\n", s->exit_code);
	else if (s->answer == FAILED)
		fprintf(stderr, "not run to its end: %s\n", s->error);
	else if (s->client.over)
		fprintf(stderr, "no answer: the connection to the relay was lost\n");
	else
		fprintf(stderr, "no answer: grpc-status %d %s\n", s->exec.grpc_status, s->exec.grpc_message);
}

static int run(struct session *s, const char *command, const struct relay_bytes *input)
{
	on_interrupt(&s->interrupt, 0); /* one that was meant for nothing that runs now */
	s->answer = WAITING;
	s->aborting = s->truncated = false;
	s->interrupts = 0;
	request(s, command, input);
	while (!s->exec.done && !s->client.over) {
		loop_pass(&s->loop, -1);
		if (s->interrupts == 1)
			send_abort(s);
		if (s->interrupts >= 2)
			break;
	}
	while (s->exec.done && s->aborting && !s->abort.done && !s->client.over)
		loop_pass(&s->loop, -1);
	report(s);
	relay_client_finish(&s->exec);
	relay_client_finish(&s->abort);
	return s->answer == ENDED ? 0 : s->answer == FAILED ? 1 : 2;
}

static int read_input(const char *file, struct relay_bytes *ret)
{
	FD_CLOSE int opened = -1;
	int fd = STDIN_FILENO;
	uint8_t piece[64 * 1024];
	ssize_t n;

	if (!file)
		return 0;
	if (strcmp(file, "-") != 0) {
		opened = open(file, O_RDONLY | O_CLOEXEC);
		if (opened < 0) {
			fprintf(stderr, "%s: %s\n", file, strerror(errno));
			return -errno;
		}
		fd = opened;
	}
	while ((n = read(fd, piece, sizeof piece)) > 0)
		relay_bytes_add(ret, piece, (size_t)n);
	return n < 0 ? -errno : 0;
}

int relay_command_run(const struct relay_command *what, const char *command)
{
	struct relay_bytes input = {0};
	struct session s = {0};
	int r = 2;

	if (read_input(what->input_file, &input) < 0 || session_open(&s, what) < 0)
		return r;
	r = run(&s, command, &input);
	session_close(&s);
	relay_bytes_free(&input);
	return r;
}

int relay_command_prompt(const struct relay_command *what)
{
	static const struct relay_bytes nothing;
	struct session s = {0};
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	if (session_open(&s, what) < 0)
		return 2;
	for (;;) {
		uint64_t start;

		fprintf(stderr, "%s> ", what->sandbox_id);
		n = getline(&line, &room, stdin);
		if (n < 0)
			break;
		if (n > 0 && line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (line[0] == '\0')
			continue;
		start = clock_now_ms();
		run(&s, line, &nothing);
		fprintf(stderr, "%" PRIu64 " ms\n", clock_now_ms() - start);
		if (s.client.over)
			break;
	}
	free(line);
	fprintf(stderr, "\n");
	session_close(&s);
	return s.client.over ? 2 : 0;
}
