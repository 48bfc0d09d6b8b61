#include "execd/config.h"

#include "common/no_proxy.h"
#include "execd/config_parse.h"
#include "execd/environment.h"
#include "execd/user.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

const char *const config_capabilities[] = {"bash", "rg", "base64", "file", "python3", "git", NULL};

struct reading {
	struct config *c;
	struct config_secrets *s;
	char why[256];         /* for reasons that are not static */
	const char *name;      /* as it is spelt here */
	const char *proxy;     /* the same, of HTTPS_PROXY */
	const char *bad_proxy; /* why that cannot be used; a fault only where it would be */
};

struct setting {
	const char *name;
	const char *alias; /* the other spelling, read where name is unset */
	/* NULL, or why the value is refused. */
	const char *(*take)(struct reading *r, const struct setting *s, const char *value);
	size_t at;   /* of the field in struct config */
	size_t size; /* of the field, for text */
	uint32_t min, max;
	bool blank; /* set to nothing is a value, and not unset */
};

int config_refuse(struct config_error *ret_error, const char *setting, const char *format, ...)
{
	va_list args;

	snprintf(ret_error->setting, sizeof ret_error->setting, "%s", setting);
	va_start(args, format);
	vsnprintf(ret_error->why, sizeof ret_error->why, format, args);
	va_end(args);
	ret_error->exit_code = 2;
	return -EINVAL;
}

struct config_secrets *config_secrets_map(void)
{
	struct config_secrets *s =
	    mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (s == MAP_FAILED)
		return NULL;
	if (madvise(s, sizeof *s, MADV_DONTFORK) == 0 && madvise(s, sizeof *s, MADV_DONTDUMP) == 0)
		return s;
	munmap(s, sizeof *s);
	return NULL;
}

struct drop config_drop(const struct config_user *u, uint64_t keep)
{
	return (struct drop){
	    .change_ids = u->set,
	    .uid = u->uid,
	    .gid = u->gid,
	    .groups = u->groups,
	    .group_count = u->group_count,
	    .keep = keep,
	    .ambient = keep != 0,
	};
}

static void *field(struct reading *r, const struct setting *s)
{
	return (char *)r->c + s->at;
}

static const char *take_text(struct reading *r, const struct setting *s, const char *value)
{
	size_t n = strlen(value);

	if (n >= s->size) {
		snprintf(r->why, sizeof r->why, "is longer than %zu bytes", s->size - 1);
		return r->why;
	}
	memcpy(field(r, s), value, n + 1);
	return config_check_text(value);
}

/* Nothing but blanks is no tier. */
static const char *take_tier(struct reading *r, const struct setting *s, const char *value)
{
	return take_text(r, s, value[strspn(value, " \t")] ? value : "");
}

/* What netd matches names with: printable ASCII. */
static const char *take_ascii(struct reading *r, const struct setting *s, const char *value)
{
	for (const char *at = value; *at; at++) {
		if (*at < ' ' || *at > '~')
			return "has a byte outside 0x20 to 0x7e";
	}
	return take_text(r, s, value);
}

static const char *take_number(struct reading *r, const struct setting *s, const char *value)
{
	if (!config_parse_number(value, s->min, s->max, field(r, s)))
		return NULL;
	snprintf(r->why, sizeof r->why, "must be a whole number from %u to %u", s->min, s->max);
	return r->why;
}

static const char *take_seconds(struct reading *r, const struct setting *s, const char *value)
{
	uint32_t *ms = field(r, s);
	const char *why = take_number(r, s, value);

	if (!why)
		*ms *= 1000;
	return why;
}

static const char *take_bool(struct reading *r, const struct setting *s, const char *value)
{
	return config_parse_bool(value, field(r, s));
}

static const char *take_address(struct reading *r, const struct setting *s, const char *value)
{
	(void)s;
	return config_parse_address(value, r->c->relay_host, sizeof r->c->relay_host, &r->c->relay_port);
}

static const char *take_host(struct reading *r, const struct setting *s, const char *value)
{
	return config_parse_host(value, field(r, s), s->size);
}

static const char *take_token(struct reading *r, const struct setting *s, const char *value)
{
	size_t n = strlen(value);

	(void)s;
	if (n >= sizeof r->s->token)
		return "is too long";
	memcpy(r->s->token, value, n + 1);
	return config_trim_token(r->s->token, n);
}

static const char *take_proxy(struct reading *r, const struct setting *s, const char *value)
{
	struct config_proxy p = {0};

	(void)s;
	r->proxy = r->name;
	r->bad_proxy = config_parse_proxy(value, &p);
	memcpy(r->c->proxy_host, p.host, sizeof p.host);
	r->c->proxy_port = p.port;
	memcpy(r->s->proxy_user, p.user, sizeof p.user);
	memcpy(r->s->proxy_password, p.password, sizeof p.password);
	explicit_bzero(&p, sizeof p);
	return NULL;
}

static const char *take_user(struct reading *r, const struct setting *s, const char *value)
{
	const char *why;

	return user_parse(&user_files_system, value, field(r, s), &why) < 0 ? why : NULL;
}

static const char *take_caps(struct reading *r, const struct setting *s, const char *value)
{
	static const char separators[] = ", \t";

	(void)s;
	for (const char *at = value + strspn(value, separators); *at; at += strspn(at, separators)) {
		size_t n = strcspn(at, separators);
		int cap = drop_capability_by_name(at, n);

		if (cap < 0) {
			snprintf(r->why, sizeof r->why, "names an unknown capability: %.*s",
				 (int)(n > 64 ? 64 : n), at);
			return r->why;
		}
		r->c->keep_caps |= DROP_CAP(cap);
		at += n;
	}
	return NULL;
}

static const char *take_trust(struct reading *r, const struct setting *s, const char *value)
{
	(void)s;
	r->c->trusted = strcmp(value, "trusted") == 0;
	return r->c->trusted || strcmp(value, "untrusted") == 0 ? NULL : "must be trusted or untrusted";
}

static const char *take_background(struct reading *r, const struct setting *s, const char *value)
{
	(void)s;
	r->c->background_kill = strcmp(value, "kill") == 0;
	return r->c->background_kill || strcmp(value, "keep") == 0 ? NULL : "must be keep or kill";
}

static const char *take_killer(struct reading *r, const struct setting *s, const char *value)
{
	(void)s;
	r->c->killer = strcmp(value, "landlock") == 0 ? "landlock" : "sweep";
	return strcmp(value, r->c->killer) == 0 ? NULL : "must be landlock or sweep";
}

static const char *take_log_level(struct reading *r, const struct setting *s, const char *value)
{
	(void)s;
	return log_parse_level(value, &r->c->log_level) < 0 ? "must be error, warn, info or debug" : NULL;
}

static const char *take_log_format(struct reading *r, const struct setting *s, const char *value)
{
	(void)s;
	return log_parse_format(value, &r->c->log_format) < 0 ? "must be text or json" : NULL;
}

#define AT(f)   .at = offsetof(struct config, f)
#define ROOM(f) AT(f), .size = sizeof((struct config *)0)->f
#define TEXT(f) .take = take_text, ROOM(f)

static const struct setting settings[] = {
    {.name = "LOG_LEVEL", .take = take_log_level},
    {.name = "LOG_FORMAT", .take = take_log_format},
    {.name = "RELAY_ADDR", .take = take_address},
    {.name = "RELAY_TLS", .take = take_bool, AT(relay_tls)},
    {.name = "RELAY_SERVER_NAME", .take = take_host, ROOM(server_name)},
    {.name = "RELAY_CA_FILE", TEXT(ca_file)},
    {.name = "RELAY_CERT_FILE", TEXT(cert_file)},
    {.name = "RELAY_KEY_FILE", TEXT(key_file)},
    {.name = "SSL_CERT_FILE", TEXT(ssl_cert_file)},
    {.name = "SSL_CERT_DIR", TEXT(ssl_cert_dir)},
    {.name = "HTTPS_PROXY", .alias = "https_proxy", .take = take_proxy},
    {.name = "NO_PROXY", .alias = "no_proxy", .take = take_ascii, ROOM(no_proxy)},
    {.name = "SANDBOX_ID", TEXT(sandbox_id)},
    {.name = "SANDBOX_TOKEN", .take = take_token},
    {.name = "SANDBOX_TOKEN_FILE", TEXT(token_file)},
    {.name = "SANDBOX_IMAGE", TEXT(image)},
    {.name = "SANDBOX_TRUST", .take = take_trust},
    {.name = "SANDBOX_TIER", .take = take_tier, ROOM(tier), .blank = true},
    {.name = "SANDBOX_USER", .take = take_user, AT(command_user)},
    {.name = "SANDBOX_KEEP_CAPS", .take = take_caps},
    {.name = "SANDBOX_BACKGROUND", .take = take_background},
    {.name = "SANDBOX_SECCOMP_BPF", TEXT(seccomp_file)},
    {.name = "SANDBOX_KILLER", .take = take_killer},
    {.name = "SANDBOX_CWD", TEXT(cwd)},
    {.name = "SANDBOX_AUDIT", TEXT(audit)},
    {.name = "NETD_USER", .take = take_user, AT(netd_user)},
    {.name = "WORKER_MAX_CONCURRENT",
     .take = take_number,
     AT(max_concurrent),
     .min = 1,
     .max = LIMIT_CONCURRENT},
    {.name = "WORKER_DRAIN_S", .take = take_number, AT(drain_s), .min = 0, .max = LIMIT_DRAIN_S},
    {.name = "HEARTBEAT_S", .take = take_seconds, AT(heartbeat_ms), .min = 1, .max = 3600},
    {.name = "STATUS_FILE", TEXT(status_file)},
};

const char *config_setting_name(size_t nth)
{
	return nth < sizeof settings / sizeof *settings ? settings[nth].name : NULL;
}

/* The combinations that are wrong although each value is right. */
static int check_together(const struct reading *r, struct config_error *e)
{
	const struct config *c = r->c;
	const struct config_secrets *s = r->s;

	if (s->token[0] && c->token_file[0])
		return config_refuse(e, "SANDBOX_TOKEN",
				     "and SANDBOX_TOKEN_FILE are both set; set one of them");
	if (c->key_file[0] && !c->cert_file[0])
		return config_refuse(e, "RELAY_KEY_FILE", "is set without RELAY_CERT_FILE");
	if (c->cert_file[0] && !c->key_file[0])
		return config_refuse(e, "RELAY_CERT_FILE", "is set without RELAY_KEY_FILE");
	if (!c->relay_tls) {
		const char *named = c->ca_file[0]       ? "RELAY_CA_FILE"
				    : c->cert_file[0]   ? "RELAY_CERT_FILE"
				    : c->server_name[0] ? "RELAY_SERVER_NAME"
							: NULL;

		if (named)
			return config_refuse(
			    e, named, "is set, but RELAY_TLS is off: the token would cross in the clear");
	}
	if (r->bad_proxy && !no_proxy_covers(c->no_proxy, c->relay_host, c->relay_port))
		return config_refuse(e, r->proxy, "%s", r->bad_proxy);
	return 0;
}

int config_read(char *const environ_in[], struct config *ret, struct config_secrets *ret_secrets,
		struct config_error *ret_error)
{
	struct reading r = {.c = ret, .s = ret_secrets};
	int err;

	*ret = (struct config){
	    .relay_host = "localhost",
	    .relay_port = 8443,
	    .sandbox_id = CONFIG_DEFAULT_ID,
	    .tier = CONFIG_DEFAULT_TIER,
	    .max_concurrent = 4,
	    .heartbeat_ms = LIMIT_HEARTBEAT_MS,
	    .log_level = LOG_LEVEL_INFO,
	};
	*ret_secrets = (struct config_secrets){0};
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const struct setting *s = &settings[i];
		const char *value =
		    s->blank ? environment_find(environ_in, s->name) : environment_get(environ_in, s->name);
		const char *why;

		r.name = s->name;
		if (!value && s->alias)
			value = environment_get(environ_in, r.name = s->alias);
		why = value ? s->take(&r, s, value) : NULL;
		if (why)
			return config_refuse(ret_error, r.name, "%s", why);
	}
	err = check_together(&r, ret_error);
	if (err < 0)
		return err;
	if (!ret_secrets->token[0] && !ret->token_file[0])
		memcpy(ret_secrets->token, CONFIG_DEFAULT_TOKEN, sizeof CONFIG_DEFAULT_TOKEN);
	ret->start_environ = environ_in;
	return 0;
}
