/* test-relay: our relay as a program, and its client. */
#include "common/fd.h"
#include "common/log.h"
#include "tests/relay/command.h"
#include "tests/relay/control.h"
#include "tests/relay/relay.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TOKENS_MAX 64

static const char usage[] =
    "usage: test-relay serve --listen ADDRESS:PORT [--token TOKEN] [--token-for ID=TOKEN]... [--cert FILE "
    "--key FILE\n"
    "                        [--client-ca FILE]] [--manner NAME[=VALUE]]... [--control]\n"
    "       test-relay exec --relay HOST:PORT --sandbox-id ID [--timeout S] [--stdin-file FILE] "
    "[--no-stream] COMMAND\n"
    "       test-relay prompt --relay HOST:PORT --sandbox-id ID [--timeout S]\n"
    "Without --token the token is $RELAY_TOKEN; without that only the ids of --token-for may attach.\n";

static _Noreturn void bad_usage(const char *why)
{
	fprintf(stderr, "test-relay: %s\n%s", why, usage);
	exit(2);
}

static const struct option options[] = {
    {"listen", required_argument, NULL, 'l'},    {"token", required_argument, NULL, 't'},
    {"token-for", required_argument, NULL, 'f'}, {"cert", required_argument, NULL, 'c'},
    {"key", required_argument, NULL, 'k'},       {"client-ca", required_argument, NULL, 'a'},
    {"manner", required_argument, NULL, 'm'},    {"control", no_argument, NULL, 'C'},
    {"relay", required_argument, NULL, 'r'},     {"sandbox-id", required_argument, NULL, 's'},
    {"timeout", required_argument, NULL, 'T'},   {"stdin-file", required_argument, NULL, 'i'},
    {"no-stream", no_argument, NULL, 'n'},       {NULL, 0, NULL, 0},
};

/* Takes "address:port" apart in place. */
static void take_listen(struct relay_options *o, char *text)
{
	char *colon = strrchr(text, ':'), *end;
	unsigned long port;

	if (!colon)
		bad_usage("--listen needs ADDRESS:PORT");
	port = strtoul(colon + 1, &end, 10);
	if (colon[1] == '\0' || *end || port > 65535)
		bad_usage("a bad port");
	*colon = '\0';
	if (text[0] == '[' && colon[-1] == ']')
		colon[-1] = '\0', text++;
	o->address = strcmp(text, "localhost") == 0 ? "127.0.0.1" : text;
	o->port = (uint16_t)port;
}

static void take_token_for(struct relay_options *o, struct relay_token *tokens, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals || o->token_count == TOKENS_MAX)
		bad_usage("--token-for needs ID=TOKEN");
	*equals = '\0';
	tokens[o->token_count++] = (struct relay_token){text, equals + 1};
	o->tokens = tokens;
}

struct server {
	struct relay *relay;
	struct loop_source signals;
	struct loop_source control;
	char line[256];
	size_t used;
	bool stop;
};

static void on_signal(struct loop_source *source, uint32_t events)
{
	struct server *server = source->owner;

	(void)events;
	server->stop = true;
}

static void on_control(struct loop_source *source, uint32_t events)
{
	struct server *server = source->owner;
	ssize_t n = read(source->fd, server->line + server->used, sizeof server->line - 1 - server->used);
	char *newline;

	(void)events;
	if (n <= 0) {
		loop_del(relay_loop(server->relay), source);
		return;
	}
	server->used += (size_t)n;
	server->line[server->used] = '\0';
	while ((newline = strchr(server->line, '\n'))) {
		*newline = '\0';
		puts(relay_control_line(server->relay, server->line) ? "ok" : "no");
		fflush(stdout);
		server->used -= (size_t)(newline + 1 - server->line);
		memmove(server->line, newline + 1, server->used + 1);
	}
	if (server->used == sizeof server->line - 1)
		server->used = 0;
}

static bool stopped(const void *arg)
{
	return ((const struct server *)arg)->stop;
}

static int serve(const struct relay_options *o, bool control)
{
	struct server server = {.relay = relay_start(o)};
	sigset_t set;

	if (!server.relay)
		return 1;
	prctl(PR_SET_DUMPABLE,
	      0); /* a worker's command beside us must not read the token in our environment */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	server.signals = (struct loop_source){.ready = on_signal, .owner = &server};
	server.signals.fd = signalfd(-1, &set, SFD_CLOEXEC);
	server.control = (struct loop_source){.fd = STDIN_FILENO, .ready = on_control, .owner = &server};
	if (server.signals.fd < 0 || loop_add(relay_loop(server.relay), &server.signals, EPOLLIN) < 0)
		return 1;
	if (control && loop_add(relay_loop(server.relay), &server.control, EPOLLIN) < 0)
		return 1;
	printf("listening on port %u\n", relay_port(server.relay));
	fflush(stdout);
	while (!stopped(&server))
		relay_wait(server.relay, stopped, &server, 3600 * 1000);
	if (relay_complaints(server.relay)[0])
		fprintf(stderr, "%s\n", relay_complaints(server.relay));
	relay_stop(server.relay);
	fd_close(&server.signals.fd);
	return 0;
}

int main(int argc, char **argv)
{
	static struct relay_token tokens[TOKENS_MAX];
	struct relay_options o = {.address = "127.0.0.1", .verbose = true};
	struct relay_command what = {
	    .relay = "localhost:8443", .sandbox_id = "sbx-laptop-1", .streaming = true};
	const char *verb = argc > 1 ? argv[1] : "";
	bool control = false;
	int c;

	log_init("relay", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	if (strcmp(verb, "serve") != 0 && strcmp(verb, "exec") != 0 && strcmp(verb, "prompt") != 0)
		bad_usage("serve, exec or prompt?");
	optind = 2;
	while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		switch (c) {
		case 'l':
			take_listen(&o, optarg);
			break;
		case 't':
			o.token = optarg;
			break;
		case 'f':
			take_token_for(&o, tokens, optarg);
			break;
		case 'c':
			o.cert_file = optarg;
			break;
		case 'k':
			o.key_file = optarg;
			break;
		case 'a':
			o.client_ca_file = optarg;
			break;
		case 'C':
			control = true;
			break;
		case 'r':
			what.relay = optarg;
			break;
		case 's':
			what.sandbox_id = optarg;
			break;
		case 'T':
			what.timeout_s = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'i':
			what.input_file = optarg;
			break;
		case 'n':
			what.streaming = false;
			break;
		case 'm':
			if (!relay_control_manner(&o.manners, optarg))
				bad_usage("no such manner");
			break;
		default:
			bad_usage("a bad option");
		}
	}
	if (!o.token)
		o.token = getenv("RELAY_TOKEN");
	if (!o.cert_file != !o.key_file)
		bad_usage("--cert and --key belong together");
	if (strcmp(verb, "serve") == 0)
		return serve(&o, control);
	if (strcmp(verb, "prompt") == 0)
		return relay_command_prompt(&what);
	if (optind != argc - 1)
		bad_usage("one COMMAND, quoted");
	return relay_command_run(&what, argv[optind]);
}
