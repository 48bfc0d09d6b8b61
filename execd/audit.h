/* The audit trail (SANDBOX_AUDIT): which execs came and how they ended. Never a command or its stdin: a
 * length and the fingerprint. Either in the log or in a file of JSON lines, one append each; what cannot be
 * written at once is dropped and counted, for a full disk must not stop an exec. at_ms is CLOCK_MONOTONIC. */
#ifndef EXECD_AUDIT_H
#define EXECD_AUDIT_H

#include "common/channel.h"
#include "common/outcome.h"

#include <stdint.h>

/* setting: empty (no trail), "log", or the path of a file, which is made with mode 0600 if missing. 0 or an
 * error of own_file_open. */
int audit_open(const char *setting);

/* After a rotation: what fails leaves the open one in place. 0 or the same errors. */
int audit_open_again(void);

/* Would audit_open fail? Nothing is made. */
int audit_check(const char *setting);

/* event: "start", "end", "refuse" or "replay". fingerprint and outcome may be NULL where there is none. ms:
 * how long the exec ran, for "end". Harmless when there is no trail. */
void audit_exec(const char *event, uint64_t req_id, uint32_t command_len,
		const uint8_t fingerprint[CHANNEL_FINGERPRINT], const struct outcome *outcome, uint64_t ms);

/* Records that were dropped. */
uint64_t audit_dropped(void);

void audit_close(void);

#endif
