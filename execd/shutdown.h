/* The way out: what runs is killed and answered, the stream is left in good order, no process stays, and all
 * of it has an end whatever the peer, a slot or a command does (contract.md 12). */
#ifndef EXECD_SHUTDOWN_H
#define EXECD_SHUTDOWN_H

#include "common/loop.h"

#include <stdbool.h>
#include <stdint.h>

/* Begins: no new netd, no new exec; running ones have drain_ms. exit_code: what the program shall exit with.
 * A second call ends the drain. */
void shutdown_begin(struct loop *loop, uint32_t drain_ms, int exit_code);

bool shutdown_begun(void);

/* Looked at after each pass of the loop: true when nothing is left, or when the time is over. */
bool shutdown_done(int *ret_exit_code);

#endif
