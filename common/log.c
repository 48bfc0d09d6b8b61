#include "common/log.h"

#include "common/buf.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static struct {
	const char *name;
	enum log_level level;
	enum log_format format;
	uint64_t dropped;
} log_state = {.name = "worker", .level = LOG_LEVEL_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_init(const char *name, enum log_level level, enum log_format format)
{
	log_state.name = name;
	log_state.level = level;
	log_state.format = format;
}

int log_parse_level(const char *s, enum log_level *ret_level)
{
	for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++) {
		if (strcasecmp(s, level_names[i]) == 0) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

int log_parse_format(const char *s, enum log_format *ret_format)
{
	if (strcasecmp(s, "text") == 0)
		*ret_format = LOG_FORMAT_TEXT;
	else if (strcasecmp(s, "json") == 0)
		*ret_format = LOG_FORMAT_JSON;
	else
		return -EINVAL;
	return 0;
}

enum log_level log_level(void)
{
	return log_state.level;
}

enum log_format log_format(void)
{
	return log_state.format;
}

uint64_t log_dropped(void)
{
	return log_state.dropped;
}

const char *log_errno(int err)
{
	const char *s = strerrordesc_np(err < 0 ? -err : err);

	return s ? s : "unknown error";
}

/* A value bare when it is plain, else quoted. Bytes outside printable ASCII become \xNN (text) or \u00NN
 * (JSON): a terminal escape or a newline from a peer stays harmless. */
static void add_value(struct buf_text *t, const char *s, size_t n, bool json)
{
	bool plain = !json && n > 0;

	for (size_t i = 0; plain && i < n; i++)
		plain = s[i] > ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\' && s[i] != '=';
	if (plain) {
		buf_text_add(t, s, n);
		return;
	}
	buf_text_addz(t, "\"");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '"' || c == '\\')
			buf_text_addf(t, "\\%c", c);
		else if (c >= 0x20 && c < 0x7f)
			buf_text_add(t, &s[i], 1);
		else
			buf_text_addf(t, json ? "\\u%04x" : "\\x%02x", c);
	}
	buf_text_addz(t, "\"");
}

static void add_field(struct buf_text *t, const struct log_field *f, bool json)
{
	if (json)
		buf_text_addf(t, ",\"%s\":", f->key);
	else
		buf_text_addf(t, " %s=", f->key);
	switch (f->type) {
	case LOG_FIELD_STR:
		add_value(t, f->s ? f->s : "", f->s ? strlen(f->s) : 0, json);
		break;
	case LOG_FIELD_MEM:
		add_value(t, f->s, f->n, json);
		break;
	case LOG_FIELD_U64:
		buf_text_addf(t, "%llu", (unsigned long long)f->u);
		break;
	case LOG_FIELD_I64:
		buf_text_addf(t, "%lld", (long long)f->i);
		break;
	}
}

/* A record never exceeds PIPE_BUF, so that lines of several processes do not mix. Fields that no longer fit
 * are left out whole. */
static void render(struct buf_text *t, enum log_level level, const char *msg, const struct log_field *fields)
{
	bool json = log_state.format == LOG_FORMAT_JSON;

	if (json)
		buf_text_addf(t, "{\"process\":\"%s\",\"level\":\"%s\",\"msg\":", log_state.name,
			      level_names[level]);
	else
		buf_text_addf(t, "%s level=%s msg=", log_state.name, level_names[level]);
	add_value(t, msg, strlen(msg), json);
	for (; fields->key; fields++) {
		struct buf_text before = *t;

		add_field(t, fields, json);
		if (t->full) {
			*t = before;
			t->at[t->used] = '\0';
		}
	}
	t->size += 3;
	buf_text_addz(t, json ? "}\n" : "\n");
}

void log_emit(enum log_level level, const char *msg, const struct log_field *fields)
{
	char line[PIPE_BUF];
	struct buf_text t;
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	int saved = errno;

	if (level > log_state.level)
		return;
	buf_text_init(&t, line, sizeof line - 3);
	render(&t, level, msg, fields);
	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT) || write(STDERR_FILENO, line, t.used) < 0)
		log_state.dropped++;
	errno = saved;
}

bool log_allowed(struct log_limit *limit, uint64_t now_ms, uint64_t *ret_suppressed)
{
	uint64_t earned;

	if (limit->filled_ms == 0)
		limit->filled_ms = now_ms;
	earned = limit->per_ms > 0 ? (now_ms - limit->filled_ms) / limit->per_ms : 0;
	if (earned > 0) {
		uint64_t tokens = limit->tokens + earned;

		limit->tokens = tokens > limit->burst ? limit->burst : (uint32_t)tokens;
		limit->filled_ms += earned * limit->per_ms;
	}
	if (limit->tokens == 0) {
		limit->suppressed++;
		return false;
	}
	limit->tokens--;
	if (ret_suppressed)
		*ret_suppressed = limit->suppressed;
	limit->suppressed = 0;
	return true;
}

_Noreturn void log_fatal(int exit_code, const char *msg, const struct log_field *fields)
{
	log_emit(LOG_LEVEL_ERROR, msg, fields);
	exit(exit_code);
}
