/* What a fresh netd is told over the channel. */
#ifndef EXECD_NETD_SETTINGS_H
#define EXECD_NETD_SETTINGS_H

#include "common/address.h"
#include "execd/config.h"

/* The settings, none of them secret, then JAIL. ping_ms: the keepalive interval; addresses: what earlier
 * attempts have shown. 0 or -errno. */
int netd_settings_give(const struct config *config, uint32_t ping_ms,
		       const struct address_history *addresses);

/* After JAILED: the credentials as they are now, then DIAL. 0, or -EINVAL with *ret_error set. */
int netd_settings_give_credentials(const struct config *config, struct config_secrets *secrets,
				   struct config_error *ret_error);

#endif
