/* The harness's side of test-relay: one command, or a prompt. */
#ifndef TESTS_RELAY_COMMAND_H
#define TESTS_RELAY_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

struct relay_command {
	const char *relay; /* host:port */
	const char *sandbox_id;
	const char *input_file; /* stdin of the command; NULL: none, "-": our stdin */
	uint32_t timeout_s;
	bool streaming;
};

/* Runs one command: its stdout to ours, its stderr to ours, last a line `exit code N` on stderr. SIGINT
 * aborts it. 0: answered by an End; 1: by an ExecError; 2: not answered. */
int relay_command_run(const struct relay_command *what, const char *command);

/* Reads commands from stdin, one a line, and runs each. SIGINT aborts the one that runs. Returns at the end
 * of stdin. */
int relay_command_prompt(const struct relay_command *what);

#endif
