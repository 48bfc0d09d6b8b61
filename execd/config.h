/* execd's settings (contract.md, design.md): read once from the environment, checked, then never changed. */
#ifndef EXECD_CONFIG_H
#define EXECD_CONFIG_H

#include "common/drop.h"
#include "common/limits.h"
#include "common/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFIG_DEFAULT_ID    "sbx-laptop-1"
#define CONFIG_DEFAULT_TOKEN "dev-token"
#define CONFIG_DEFAULT_TIER  "container"

/* An identity that a process takes; set is false where the setting is absent. */
struct config_user {
	bool set;
	uid_t uid;
	gid_t gid;
	gid_t groups[32]; /* supplementary, from /etc/group */
	unsigned group_count;
	char name[64];
	char home[256];
	char shell[256];
};

/* All strings are NUL-terminated and live as long as the process; empty where unset. */
struct config {
	char relay_host[256]; /* no brackets */
	uint16_t relay_port;
	bool relay_tls;
	char server_name[256];
	char sandbox_id[1024];
	char image[1024];
	bool trusted;
	char tier[256]; /* empty: no label */
	uint32_t max_concurrent;
	uint32_t heartbeat_ms;
	char token_file[4096];    /* empty: SANDBOX_TOKEN */
	char ca_file[4096];       /* RELAY_CA_FILE */
	char ssl_cert_file[4096]; /* SSL_CERT_FILE, used where RELAY_CA_FILE is not set */
	char ssl_cert_dir[4096];  /* SSL_CERT_DIR, the same */
	char cert_file[4096];
	char key_file[4096];
	char proxy_host[256];
	uint16_t proxy_port;
	char no_proxy[4096];
	struct config_user command_user; /* SANDBOX_USER */
	struct config_user netd_user;    /* NETD_USER, or nobody when root */
	bool background_kill;
	uint64_t keep_caps; /* bit n: capability n */
	char seccomp_file[4096];
	char cwd[4096]; /* of the commands: SANDBOX_CWD, or once settled the start folder; absolute then */
	uint32_t drain_s;
	char status_file[4096];
	char audit[4096]; /* SANDBOX_AUDIT: empty, "log" or a file */
	enum log_level log_level;
	enum log_format log_format;
	uint32_t capability_mask;   /* bit i: config_capabilities[i] is on the commands' PATH */
	char bash[4096];            /* absolute path */
	char path[4096];            /* the commands' PATH */
	char **command_environ;     /* scrubbed and completed, NULL-ended */
	const char *killer;         /* NULL: chosen at start; SANDBOX_KILLER names one */
	char *const *start_environ; /* what config_read was given; gone after config_settle */
};

/* What must not be in a core dump, in a child, or anywhere else. */
struct config_secrets {
	char token[LIMIT_TOKEN + 3]; /* of SANDBOX_TOKEN or its file; with room for a file's last line end */
	char proxy_user[1024];
	char proxy_password[1024];
};

/* Why a setting is refused. */
struct config_error {
	char setting[32];
	char why[512];
	int exit_code; /* 2, or 1 where the machine lacks something */
};

/* The names that Hello.capabilities may hold, in its order; NULL-ended. */
extern const char *const config_capabilities[];

/* The one mapping for secrets: no fork inherits it and no core dump holds it. NULL with errno. */
struct config_secrets *config_secrets_map(void);

/* The name of the nth setting, NULL after the last. */
const char *config_setting_name(size_t nth);

/* Parses and checks environ_in, which must live until config_settle. Looks at nothing but /etc/passwd and
 * /etc/group. 0, or -EINVAL with *ret_error set. */
int config_read(char *const environ_in[], struct config *ret, struct config_secrets *ret_secrets,
		struct config_error *ret_error);

/* Holds the settings against the machine: users that can really be taken, limits, bash and the other tools as
 * a command would find them; finds the start folder and makes the commands' environment. As privileged as the
 * program was started. 0, or -EINVAL with *ret_error set. */
int config_settle(struct config *config, struct config_error *ret_error);

/* Logs what is in force but unwise. */
void config_warn(const struct config *config, const struct config_secrets *secrets);

/* What a process has to drop to become user (its own, where none is set) with the capabilities keep. */
struct drop config_drop(const struct config_user *user, uint64_t keep);

/* Fills *ret_error: "setting: why". Returns -EINVAL. */
int config_refuse(struct config_error *ret_error, const char *setting, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
