/* How an exec ended: decided once, then final, and in the cache from that moment on. */
#ifndef EXECD_EXEC_OUTCOME_H
#define EXECD_EXEC_OUTCOME_H

#include "execd/execs.h"
#include "execd/inflight.h"

/* counters: where decisions are counted. */
void exec_outcome_init(struct execs_counters *counters);

/* Why it is being killed, or why it never ran. The first reason stays. */
void exec_outcome_give_reason(struct exec *exec, enum outcome_kind kind, uint32_t value);

/* The same work under this id has an outcome already: it is this exec's, too. False: it has none. */
bool exec_outcome_recall(struct exec *exec);

/* Decides by the reason given; without one it counts as killed. Nothing when it is decided already. */
void exec_outcome_by_reason(struct exec *exec);

/* Decides by the leader's end: its own, unless the kill reached it first. As above. */
void exec_outcome_by_status(struct exec *exec, const struct slot_event *event);

/* Not all of its output was, or will be, handed over: a replay must say so. */
void exec_outcome_cut(struct exec *exec);

/* What is to be read of its pipes before the terminal frame. */
enum channel_reading exec_outcome_reading(const struct exec *exec);

#endif
