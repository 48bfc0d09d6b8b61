/* What an exec costs in a slot that was started beforehand, against a bare vfork and execve of the same bash.
 * Both run `bash -c true` and wait for its end, in turns; printed are the median and the best tenth. A slot
 * does more: pipes, a session, a Landlock layer, a seccomp filter, and the proof that nothing is left. */
#include "common/clock.h"
#include "execd/config.h"
#include "execd/slots.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS 400

static struct loop loop;
static struct config config;
static bool empty;
static char path[] = "PATH=/usr/bin:/bin";
static char *environment[] = {path, NULL};

static void on_event(void *owner, const struct slot_event *e)
{
	(void)owner;
	if (e->kind == SLOT_EMPTY)
		empty = true;
}

static uint64_t bare_us(void)
{
	static char name[] = "bash", option[] = "-c", command[] = "true";
	char *argv[] = {name, option, command, NULL};
	uint64_t start = clock_now_us();
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

	if (pid == 0) {
		execve(config.bash, argv, environment);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	return clock_now_us() - start;
}

static uint64_t slot_us(void)
{
	struct slot_run run = {.command_len = 4, .given = (const uint8_t *)"true", .given_len = 4};
	int ours[3], theirs[3], slot;
	uint64_t start;

	while ((slot = slots_take()) < 0)
		loop_pass(&loop, 100);
	start = clock_now_us();
	empty = false;
	if (slots_pipes(ours, theirs) < 0 || slots_run((unsigned)slot, &run, ours, theirs) < 0)
		abort();
	for (int i = 0; i < 3; i++)
		close(theirs[i]);
	close(ours[0]);
	while (!empty)
		loop_pass(&loop, 1000);
	start = clock_now_us() - start;
	close(ours[1]);
	close(ours[2]);
	slots_release((unsigned)slot);
	return start;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void measure(const char *name, bool background_kill)
{
	static uint64_t bare[RUNS], slot[RUNS];

	config = (struct config){
	    .max_concurrent = 2,
	    .bash = "/bin/bash",
	    .command_environ = environment,
	    .background_kill = background_kill,
	    .cwd = "/",
	};
	if (loop_init(&loop) < 0 || slots_start(&loop, &config, on_event, NULL) < 0)
		abort();
	for (int i = 0; i < RUNS; i++) {
		bare[i] = bare_us();
		slot[i] = slot_us();
	}
	qsort(bare, RUNS, sizeof *bare, compare);
	qsort(slot, RUNS, sizeof *slot, compare);
	for (int part = 2; part <= 10; part += 8) {
		uint64_t b = bare[RUNS / part], s = slot[RUNS / part];

		printf("%s p%-2d  bare %4llu us  slot %4llu us  ratio %.2f\n", name, 100 / part,
		       (unsigned long long)b, (unsigned long long)s, (double)s / (double)b);
	}
	fflush(stdout);
}

/* Each in a process of its own: slots are started once. */
static void in_child(const char *name, bool background_kill)
{
	pid_t pid = fork();

	if (pid == 0) {
		measure(name, background_kill);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(void)
{
	in_child("keep", false);
	in_child("kill", true);
	return 0;
}
