/* A program under test as a child, its stderr collected; for tests that need no relay. Failures end the test.
 */
#ifndef TESTS_LIB_PROGRAM_H
#define TESTS_LIB_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct program {
	pid_t pid;
	int out; /* read end of its stdout and stderr */
	char said[65536];
	size_t used;
};

#define PROGRAM_WAIT_MS 10000u /* longer than anything takes that works */

/* The path of a program that was built together with this test. Static storage. */
const char *program_built(const char *name);

/* argv[0] is a path or is found on PATH; environment NULL-ended, "NAME=VALUE". prepare (may be NULL) runs in
 * the child just before the execve, which it must not return from by an assert. It dies with the test. */
void program_start(struct program *p, const char *const argv[], const char *const environment[],
		   void (*prepare)(void));

/* Reads until text was said. False at the end of the time, or of the output. */
bool program_wait_said(struct program *p, const char *text, unsigned timeout_ms);

/* Reads until it has ended. Its wait status; -1: it has not in time. */
int program_wait_exit(struct program *p, unsigned timeout_ms);

/* Starts, waits, and gives the wait status. */
int program_run(struct program *p, const char *const argv[], const char *const environment[],
		void (*prepare)(void));

/* SIGKILL for it, if it still runs. */
void program_kill(struct program *p);

/* The first child of parent whose comm is name; waits for it. 0: none in time. */
pid_t program_child(pid_t parent, const char *name, unsigned timeout_ms);

/* The value of a "Key:" line of /proc/<pid>/status, without the blanks before it. Static storage; "" where
 * there is none. */
const char *program_status(pid_t pid, const char *key);

#endif
