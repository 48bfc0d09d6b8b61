#include "execd/audit.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"
#include "execd/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static struct {
	struct own_file file;
	bool to_log;
	bool torn; /* the last record was cut by a full disk: the next one starts on a line of its own */
	uint64_t dropped;
	uint64_t told; /* of those, in the log */
} audit = {.file = OWN_FILE_INIT};

static bool names_file(const char *setting)
{
	return setting[0] != '\0' && strcmp(setting, "log") != 0;
}

int audit_open(const char *setting)
{
	audit_close();
	audit.to_log = strcmp(setting, "log") == 0;
	return names_file(setting) ? own_file_open(&audit.file, setting, O_APPEND, 0600) : 0;
}

int audit_open_again(void)
{
	int err = audit.file.folder_fd < 0 ? 0 : own_file_open_again(&audit.file);

	if (err == 0)
		audit.torn = false;
	return err;
}

int audit_check(const char *setting)
{
	return names_file(setting) ? own_file_check(setting) : 0;
}

void audit_close(void)
{
	own_file_close(&audit.file);
	audit.to_log = audit.torn = false;
}

uint64_t audit_dropped(void)
{
	return audit.dropped;
}

static void render_hex(char out[2 * CHANNEL_FINGERPRINT + 1], const uint8_t *bytes)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < CHANNEL_FINGERPRINT; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[2 * CHANNEL_FINGERPRINT] = '\0';
}

static void append(const struct buf_text *t)
{
	ssize_t n = t->full ? -1 : write(audit.file.fd, t->at, t->used);

	if (n == (ssize_t)t->used) {
		audit.torn = false;
		if (audit.told < audit.dropped)
			log_warn("audit records lost", LOG_U64("records", audit.dropped - audit.told));
		audit.told = audit.dropped;
		return;
	}
	if (audit.told == audit.dropped)
		log_warn("SANDBOX_AUDIT cannot be written", LOG_ERR(n < 0 ? errno : ENOSPC));
	audit.torn = audit.torn || n > 0;
	audit.dropped++;
}

void audit_exec(const char *event, uint64_t req_id, uint32_t command_len,
		const uint8_t fingerprint[CHANNEL_FINGERPRINT], const struct outcome *outcome, uint64_t ms)
{
	char hex[2 * CHANNEL_FINGERPRINT + 1] = "";
	char line[PIPE_BUF];
	struct buf_text t;

	if (!audit.to_log && audit.file.fd < 0)
		return;
	if (fingerprint)
		render_hex(hex, fingerprint);
	if (audit.to_log) {
		log_info("audit", LOG_STR("event", event), LOG_U64("req_id", req_id),
			 LOG_U64("command_len", command_len), LOG_STR("fingerprint", hex),
			 LOG_STR("outcome", outcome ? outcome_reason(outcome) : "none"),
			 LOG_I64("value", outcome ? outcome->value : 0), LOG_U64("ms", ms));
		return;
	}
	buf_text_init(&t, line, sizeof line);
	buf_text_addf(&t, "%s{\"at_ms\":%llu,\"event\":\"%s\",\"req_id\":%llu,\"command_len\":%u",
		      audit.torn ? "\n" : "", (unsigned long long)clock_now_ms(), event,
		      (unsigned long long)req_id, command_len);
	if (fingerprint)
		buf_text_addf(&t, ",\"fingerprint\":\"%s\"", hex);
	if (outcome)
		buf_text_addf(&t, ",\"outcome\":\"%s\",\"value\":%u", outcome_reason(outcome),
			      outcome->value);
	buf_text_addf(&t, ",\"ms\":%llu}\n", (unsigned long long)ms);
	append(&t);
}
