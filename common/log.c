#include "common/log.h"

#include "common/buf.h"
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define WRITE_MS 20u /* where a write may have to wait */

static struct {
	const char *name;
	enum log_level level;
	enum log_format format;
	bool may_wait; /* stderr could not be made ours: a write is cut short by a timer */
	bool socket;   /* stderr is one: it can be told not to wait at each write */
	bool torn;     /* the last line was taken in part: the next one starts on a line of its own */
	uint64_t dropped;
	uint64_t told; /* of those */
} log_state = {.name = "worker", .level = LOG_LEVEL_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_init(const char *name, enum log_level level, enum log_format format)
{
	socklen_t size = sizeof(int);
	int type;

	log_state.name = name;
	log_state.level = level;
	log_state.format = format;
	log_state.socket = getsockopt(STDERR_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

static void on_alarm(int number)
{
	(void)number;
}

/* Without SA_RESTART: a write that waits returns. */
static int bound_writes(void)
{
	const struct sigaction interrupt = {.sa_handler = on_alarm};

	log_state.may_wait = sigaction(SIGALRM, &interrupt, NULL) == 0;
	return log_state.may_wait ? 0 : -errno;
}

int log_own_stderr(void)
{
	int flags = fcntl(STDERR_FILENO, F_GETFL);
	FD_CLOSE int fd = -1;
	struct stat st;

	if (flags < 0 || fstat(STDERR_FILENO, &st) < 0)
		return -errno;
	if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_NONBLOCK) ||
	    (!S_ISFIFO(st.st_mode) && !isatty(STDERR_FILENO)))
		return 0;
	fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return bound_writes();
	return dup2(fd, STDERR_FILENO) < 0 ? -errno : 0;
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

/* At an interval: one signal may come before the write is entered. */
static void set_alarm(unsigned ms)
{
	struct timeval at = {.tv_usec = (suseconds_t)ms * 1000};
	struct itimerval timer = {.it_interval = at, .it_value = at};

	setitimer(ITIMER_REAL, &timer, NULL);
}

static ssize_t write_bounded(const char *line, size_t size)
{
	ssize_t n;

	if (log_state.may_wait)
		set_alarm(WRITE_MS);
	n = write(STDERR_FILENO, line, size);
	if (log_state.may_wait)
		set_alarm(0);
	return n;
}

/* poll first: stderr may be blocking all the same, where it could not be made ours. */
static bool put(const char *line, size_t size)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	ssize_t n = -1;

	if (log_state.socket)
		n = send(STDERR_FILENO, line, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
		n = write_bounded(line, size);
	if (n > 0)
		log_state.torn = (size_t)n < size;
	return n == (ssize_t)size;
}

static bool emit(enum log_level level, const char *msg, const struct log_field *fields)
{
	char line[PIPE_BUF];
	struct buf_text t;

	buf_text_init(&t, line, sizeof line - 3);
	if (log_state.torn)
		buf_text_addz(&t, "\n");
	render(&t, level, msg, fields);
	return put(line, t.used);
}

/* How many were lost before it is told right before the line that stderr takes again. */
void log_emit(enum log_level level, const char *msg, const struct log_field *fields)
{
	uint64_t lost = log_state.dropped - log_state.told;
	int saved = errno;

	if (level > log_state.level)
		return;
	if (lost > 0 && emit(LOG_LEVEL_WARN, "log lines lost", LOG_FIELDS(LOG_U64("lines", lost))))
		log_state.told += lost;
	if (log_state.told < log_state.dropped || !emit(level, msg, fields))
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
