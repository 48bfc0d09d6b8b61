/* The log: one line a record on stderr, key=value or JSON, the process name first. Never waits: a line that
 * stderr does not take at once is lost, counted, and told of by the next one that it takes. Never the token,
 * a command or stdin. Values are escaped here, so that nothing from outside can forge a line. No time stamp:
 * whoever collects stderr adds one. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* name: static storage, "execd", "netd", "slot". */
void log_init(const char *name, enum log_level level, enum log_format format);

/* Parses LOG_LEVEL / LOG_FORMAT, in any case. 0 or -EINVAL. */
int log_parse_level(const char *s, enum log_level *ret_level);
int log_parse_format(const char *s, enum log_format *ret_format);

enum log_level log_level(void);
enum log_format log_format(void);

/* Makes a stderr that is a terminal or a pipe ours alone and non-blocking, for this process and those that it
 * starts: poll(2) promises too much there (a terminal with room for one byte is writable, and so is a pipe
 * that others fill meanwhile), and the flag must not be set on a description that others use. Where it is not
 * ours to open (open(2) of /proc/self/fd) each write of this process is cut short after 20 ms by SIGALRM, for
 * which a handler is installed. A file stays as it is: the flag does nothing there, and the place to write at
 * is shared. 0 or -errno. */
int log_own_stderr(void);

/* Lines lost because stderr did not take them at once and whole. */
uint64_t log_dropped(void);

/* One field of a record; key NULL ends the list. */
struct log_field {
	const char *key;
	enum { LOG_FIELD_STR, LOG_FIELD_MEM, LOG_FIELD_U64, LOG_FIELD_I64 } type;
	const char *s;
	size_t n;
	uint64_t u;
	int64_t i;
};

#define LOG_STR(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_STR, .s = (v)})
#define LOG_MEM(k, v, l)                                                                                     \
	((struct log_field){.key = (k), .type = LOG_FIELD_MEM, .s = (const char *)(v), .n = (l)})
#define LOG_U64(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_U64, .u = (uint64_t)(v)})
#define LOG_I64(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_I64, .i = (int64_t)(v)})
/* errno value (positive or negative) as its message. */
#define LOG_ERR(e) LOG_STR("error", log_errno(e))

const char *log_errno(int err);

void log_emit(enum log_level level, const char *msg, const struct log_field *fields);

#define LOG_FIELDS(...)     ((const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}})
#define log_error(msg, ...) log_emit(LOG_LEVEL_ERROR, msg, LOG_FIELDS(__VA_ARGS__))
#define log_warn(msg, ...)  log_emit(LOG_LEVEL_WARN, msg, LOG_FIELDS(__VA_ARGS__))
#define log_info(msg, ...)  log_emit(LOG_LEVEL_INFO, msg, LOG_FIELDS(__VA_ARGS__))
#define log_debug(msg, ...) log_emit(LOG_LEVEL_DEBUG, msg, LOG_FIELDS(__VA_ARGS__))

/* For what a peer can trigger: burst records, then one per per_ms. */
struct log_limit {
	uint32_t burst;
	uint32_t per_ms;
	uint32_t tokens;
	uint64_t filled_ms;
	uint64_t suppressed; /* since the last that was allowed */
};

#define LOG_LIMIT_INIT(b, ms)                                                                                \
	{                                                                                                    \
		.burst = (b), .per_ms = (ms), .tokens = (b)                                                  \
	}

/* True when a record may be written now; *ret_suppressed (may be NULL) is how many were kept back before it.
 */
bool log_allowed(struct log_limit *limit, uint64_t now_ms, uint64_t *ret_suppressed);

/* Error record, then exit. fatal adds strerror(errno). Only at start, in the drop, and for our own broken
 * invariants. exit_code 2 is for bad settings. */
_Noreturn void log_fatal(int exit_code, const char *msg, const struct log_field *fields);
#define fatalx(msg, ...) log_fatal(1, msg, LOG_FIELDS(__VA_ARGS__))
#define fatal(msg, ...)  log_fatal(1, msg, LOG_FIELDS(LOG_ERR(errno) __VA_OPT__(, ) __VA_ARGS__))

#endif
