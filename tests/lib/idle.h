/* A worker behind a proxy that cuts idle streams: the two scenes of row 27, with any figures. */
#ifndef TESTS_LIB_IDLE_H
#define TESTS_LIB_IDLE_H

#include "tests/lib/stage.h"

#include <stdint.h>

/* Nothing to do for idle_ms, through a proxy that cuts after limit_ms: the same connection, and it works. */
void idle_keeps_the_connection(const char *heartbeat, uint32_t limit_ms, uint32_t idle_ms);

/* The stream is cut, and the worker attaches again. How many PINGs there were until the cut. */
unsigned idle_loses_the_connection(const char *heartbeat, uint32_t limit_ms);

#endif
