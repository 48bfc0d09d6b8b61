/* What execs leave behind in the log and in the audit trail: never a command, only its length and a short
 * hash. */
#ifndef EXECD_EXEC_REPORT_H
#define EXECD_EXEC_REPORT_H

#include "common/channel.h"
#include "execd/inflight.h"

#include <stdint.h>

void exec_report_start(const struct exec *exec);

/* One line for each exec that is over. drained is NULL when the stream was lost before its output was handed
 * over. */
void exec_report_end(const struct exec *exec, const struct channel_drained *drained);

/* An exec that got no entry. Rate-limited in the log: a peer can send any number of them. */
void exec_report_refused(uint64_t req_id, const struct channel_exec *exec, enum refusal refusal);
void exec_report_replay(uint64_t req_id, const struct channel_exec *exec, const struct outcome *outcome);
/* The same of an exec that had to wait for the proof of its earlier run. */
void exec_report_recalled(const struct exec *exec);

/* Other work came under an id that is done. Rate-limited. */
void exec_report_reused(uint64_t req_id);

/* Its slot was lost before it had the command; it takes another. */
void exec_report_again(const struct exec *exec);

/* An event that must not come in its state. */
void exec_report_stray(const struct exec *exec, enum exec_event event);

#endif
