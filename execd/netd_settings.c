#include "execd/netd_settings.h"

#include "execd/credentials.h"
#include "execd/records.h"

#include <string.h>

/* Keeps the first error; empty means unset, which is what netd starts from. */
static void give(int *err, enum channel_key key, const char *value)
{
	if (*err == 0 && value[0])
		*err = records_set(key, value, strlen(value));
}

static void give_u32(int *err, enum channel_key key, uint32_t value)
{
	if (*err == 0)
		*err = records_set_u32(key, value);
}

static void give_fd(int *err, enum channel_key key, int fd)
{
	if (*err == 0 && fd >= 0)
		*err = records_set_fd(key, fd);
}

static void give_address(int *err, enum channel_key key, bool has, const struct address *a)
{
	uint8_t bytes[ADDRESS_BYTES];

	address_to_bytes(a, bytes);
	if (*err == 0 && has)
		*err = records_set(key, bytes, sizeof bytes);
}

int netd_settings_give(const struct config *c, uint32_t ping_ms, const struct address_history *addresses)
{
	int err = 0;

	give_u32(&err, CHANNEL_KEY_LOG_LEVEL, c->log_level);
	give_u32(&err, CHANNEL_KEY_LOG_FORMAT, c->log_format);
	give(&err, CHANNEL_KEY_RELAY_HOST, c->relay_host);
	give_u32(&err, CHANNEL_KEY_RELAY_PORT, c->relay_port);
	give_u32(&err, CHANNEL_KEY_RELAY_TLS, c->relay_tls);
	give(&err, CHANNEL_KEY_SERVER_NAME, c->server_name);
	give(&err, CHANNEL_KEY_SANDBOX_ID, c->sandbox_id);
	give(&err, CHANNEL_KEY_IMAGE, c->image);
	give(&err, CHANNEL_KEY_TRUST, c->trusted ? "trusted" : "untrusted");
	give(&err, CHANNEL_KEY_TIER, c->tier);
	for (unsigned i = 0; config_capabilities[i]; i++) {
		if (c->capability_mask & 1u << i)
			give(&err, CHANNEL_KEY_CAPABILITY, config_capabilities[i]);
	}
	give_u32(&err, CHANNEL_KEY_CAPACITY, c->max_concurrent);
	give_u32(&err, CHANNEL_KEY_HEARTBEAT_MS, c->heartbeat_ms);
	give_u32(&err, CHANNEL_KEY_PING_MS, ping_ms);
	if (c->proxy_host[0]) {
		give(&err, CHANNEL_KEY_PROXY_HOST, c->proxy_host);
		give_u32(&err, CHANNEL_KEY_PROXY_PORT, c->proxy_port);
		give(&err, CHANNEL_KEY_NO_PROXY, c->no_proxy);
	}
	give_address(&err, CHANNEL_KEY_GOOD_ADDRESS, addresses->has_good, &addresses->good);
	give_address(&err, CHANNEL_KEY_BAD_ADDRESS, addresses->has_bad, &addresses->bad);
	give(&err, CHANNEL_KEY_CA_DIR, credentials_ca_folders(c));
	give_u32(&err, CHANNEL_KEY_BACKGROUND_KILL, c->background_kill);
	return err < 0 ? err : records_jail();
}

int netd_settings_give_credentials(const struct config *config, struct config_secrets *secrets,
				   struct config_error *ret_error)
{
	__attribute__((cleanup(credentials_close))) struct credentials files = {-1, -1, -1};
	int err = credentials_read_token(config, secrets, ret_error);

	if (err == 0)
		err = credentials_open(config, credentials_bundles, &files, ret_error);
	if (err < 0)
		return err;
	give(&err, CHANNEL_KEY_TOKEN, secrets->token);
	give(&err, CHANNEL_KEY_PROXY_USER, secrets->proxy_user);
	give(&err, CHANNEL_KEY_PROXY_PASSWORD, secrets->proxy_password);
	give_fd(&err, CHANNEL_KEY_CA_FILE, files.ca_fd);
	give_fd(&err, CHANNEL_KEY_CLIENT_CERT, files.cert_fd);
	give_fd(&err, CHANNEL_KEY_CLIENT_KEY, files.key_fd);
	if (err == 0)
		err = records_dial();
	return err < 0
		   ? config_refuse(ret_error, "credentials", "netd does not take them: %s", log_errno(err))
		   : 0;
}
