/* Values of settings: pure functions from text. Each returns NULL, or why the value is refused (static). */
#ifndef EXECD_CONFIG_PARSE_H
#define EXECD_CONFIG_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* host:port, [v6]:port, no scheme; the host without brackets. */
const char *config_parse_address(const char *value, char *ret_host, size_t size, uint16_t *ret_port);

/* A host name or an address, for certificates. */
const char *config_parse_host(const char *value, char *ret_host, size_t size);

/* The words of Go's strconv.ParseBool, as the reference worker is configured with them. */
const char *config_parse_bool(const char *value, bool *ret);

/* Decimal digits only. */
const char *config_parse_number(const char *value, uint32_t min, uint32_t max, uint32_t *ret);

/* http://[user[:password]@]host[:port][/], user and password percent-encoded. Port 80 when it is not named.
 */
struct config_proxy {
	char host[256];
	uint16_t port;
	char user[1024];
	char password[1024];
};
const char *config_parse_proxy(const char *value, struct config_proxy *ret);

/* Takes one line end, if there is one, off a token of size bytes and a NUL, as $(cat file) would; what is
 * left must be what an HTTP header takes: 1 to LIMIT_TOKEN bytes, 0x20 to 0x7e. */
const char *config_trim_token(char *token, size_t size);

/* Well-formed UTF-8 (RFC 3629) without control characters. */
const char *config_check_text(const char *value);

#endif
