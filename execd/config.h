/* execd's settings (contract.md, design.md): read once from the environment, checked, then never changed. */
#ifndef EXECD_CONFIG_H
#define EXECD_CONFIG_H

#include "common/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
	uint32_t max_concurrent;
	uint32_t heartbeat_ms;
	char token_file[4096]; /* empty: SANDBOX_TOKEN */
	char ca_file[4096];
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
	char cwd[4096];
	uint32_t drain_s;
	char status_file[4096];
	char audit[4096]; /* SANDBOX_AUDIT: empty, "log" or a file */
	enum log_level log_level;
	enum log_format log_format;
	uint32_t capability_mask; /* bit i: config_capabilities[i] is on the commands' PATH */
	char bash[4096];          /* absolute path */
	char path[4096];          /* the commands' PATH */
	int cwd_fd;               /* SANDBOX_CWD or the start folder, opened at start */
	char **command_environ;   /* scrubbed and completed, NULL-ended */
	const char *killer;       /* NULL: chosen at start; tests override by SANDBOX_KILLER */
};

/* The names that Hello.capabilities may hold, in its order; NULL-ended. */
extern const char *const config_capabilities[];

#endif
