/* System V shared memory, queues and semaphores outlive every process that made or used them, and count
 * against the memory of what runs next. */
#ifndef EXECD_SLOT_SYSV_H
#define EXECD_SLOT_SYSV_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Removes those that the caller's uid has made since then (seconds of the wall clock), while no exec runs and
 * nobody else can have made them: no process of that uid is there but worker, its children and its ancestors.
 * Their number. */
uint32_t sysv_clear(time_t since, pid_t worker);

#endif
