/* What execd told this netd: settings before the jail, credentials after it. */
#ifndef NETD_SETTINGS_H
#define NETD_SETTINGS_H

#include "common/address.h"
#include "common/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings {
	char relay_host[256];
	uint16_t relay_port;
	bool relay_tls;
	char server_name[256]; /* empty: relay_host */
	char sandbox_id[1024];
	char image[1024];
	char trust[16];
	char tier[256]; /* empty: no label */
	char capabilities[16][32];
	uint32_t capability_count;
	uint32_t capacity;
	uint32_t heartbeat_ms;
	uint32_t ping_ms;
	char proxy_host[256]; /* empty: none */
	uint16_t proxy_port;
	char no_proxy[4096];
	char ca_dir[4096];
	bool background_kill;
	struct address_history history; /* of the relay's addresses, or the proxy's */
	/* credentials; wiped by settings_wipe as soon as they are used */
	char token[LIMIT_TOKEN + 1];
	char proxy_user[1024];
	char proxy_password[1024];
	int ca_fd; /* -1: none */
	int cert_fd;
	int key_fd;
	struct dial_files *dial_files; /* transport_prepare's, until transport_dial takes it; NULL: none */
};

/* Every field empty, descriptors -1, defaults of contract.md. */
void settings_init(struct settings *s);

/* Takes one SET; fd (-1: none) is taken in any case. Log level and format take effect at once. Returns 0 or
 * -EINVAL with *ret_why (static) for a value that cannot be used. */
int settings_take(struct settings *s, uint8_t key, const uint8_t *value, size_t size, int fd,
		  const char **ret_why);

/* Overwrites the proxy's password, and with the token too when all is set. Closes the descriptors. */
void settings_wipe(struct settings *s, bool all);

#endif
