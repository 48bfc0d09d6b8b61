/* Time since boot. The project asks for no other clock: a wall clock that jumps moves no deadline. */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>

#define CLOCK_NEVER UINT64_MAX

/* CLOCK_MONOTONIC in milliseconds. */
uint64_t clock_now_ms(void);

/* CLOCK_MONOTONIC in microseconds. */
uint64_t clock_now_us(void);

#endif
