#include "netd/settings.h"

#include "common/buf.h"
#include "common/channel.h"
#include "common/fd.h"
#include "common/log.h"

#include <errno.h>
#include <string.h>

#define DAY_MS (24u * 60u * 60u * 1000u)

void settings_init(struct settings *s)
{
	*s = (struct settings){
	    .relay_host = "localhost",
	    .relay_port = 8443,
	    .sandbox_id = "sbx-laptop-1",
	    .trust = "untrusted",
	    .capacity = 4,
	    .heartbeat_ms = LIMIT_HEARTBEAT_MS,
	    .ping_ms = LIMIT_PING_MS,
	    .ca_fd = -1,
	    .cert_fd = -1,
	    .key_fd = -1,
	};
}

/* Bytes between first and last only; 0xff as last lets everything from first on through. */
static bool bytes_within(const uint8_t *value, size_t size, uint8_t first, uint8_t last)
{
	for (size_t i = 0; i < size; i++) {
		if (value[i] < first || value[i] > last)
			return false;
	}
	return true;
}

/* RFC 3629, no NUL: what ends up in a protobuf string must be valid. */
static bool is_utf8(const uint8_t *s, size_t size)
{
	static const struct {
		uint8_t mask, lead, more;
		uint32_t least;
	} forms[] = {
	    {0x80, 0x00, 0, 1}, {0xe0, 0xc0, 1, 0x80}, {0xf0, 0xe0, 2, 0x800}, {0xf8, 0xf0, 3, 0x10000}};

	for (size_t i = 0; i < size;) {
		uint32_t c = 0;
		unsigned form = 0;

		while (form < 4 && (s[i] & forms[form].mask) != forms[form].lead)
			form++;
		if (form == 4 || size - i <= forms[form].more)
			return false;
		c = s[i++] & (uint8_t)~forms[form].mask;
		for (unsigned k = 0; k < forms[form].more; k++, i++) {
			if ((s[i] & 0xc0) != 0x80)
				return false;
			c = c << 6 | (s[i] & 0x3fu);
		}
		if (c < forms[form].least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
			return false;
	}
	return true;
}

static const char *take_text(char *at, size_t room, const uint8_t *value, size_t size)
{
	if (size >= room)
		return "too long";
	memcpy(at, value, size);
	at[size] = '\0';
	return NULL;
}

static const char *take_host(char *at, size_t room, const uint8_t *value, size_t size)
{
	return bytes_within(value, size, '!', '~') ? take_text(at, room, value, size) : "not a host name";
}

static const char *take_utf8(char *at, size_t room, const uint8_t *value, size_t size)
{
	return is_utf8(value, size) ? take_text(at, room, value, size) : "not UTF-8";
}

static const char *take_number(uint32_t *at, const uint8_t *value, uint32_t least, uint32_t most)
{
	uint32_t n = buf_get_u32(value);

	if (n < least || n > most)
		return "number out of range";
	*at = n;
	return NULL;
}

static const char *take_port(uint16_t *at, const uint8_t *value)
{
	uint32_t n;
	const char *why = take_number(&n, value, 1, 65535);

	if (!why)
		*at = (uint16_t)n;
	return why;
}

static const char *take_bool(bool *at, const uint8_t *value)
{
	uint32_t n;
	const char *why = take_number(&n, value, 0, 1);

	if (!why)
		*at = n == 1;
	return why;
}

static const char *take_capability(struct settings *s, const uint8_t *value, size_t size)
{
	const char *why;

	if (s->capability_count == sizeof s->capabilities / sizeof *s->capabilities)
		return "too many capabilities";
	if (size == 0 || !bytes_within(value, size, '!', '~'))
		return "not a capability";
	why = take_text(s->capabilities[s->capability_count], sizeof *s->capabilities, value, size);
	if (!why)
		s->capability_count++;
	return why;
}

static const char *take_trust(struct settings *s, const uint8_t *value, size_t size)
{
	if ((size == 7 && memcmp(value, "trusted", 7) == 0) ||
	    (size == 9 && memcmp(value, "untrusted", 9) == 0))
		return take_text(s->trust, sizeof s->trust, value, size);
	return "neither trusted nor untrusted";
}

static const char *take_log(uint8_t key, const uint8_t *value)
{
	uint32_t n;
	const char *why = take_number(
	    &n, value, 0, key == CHANNEL_KEY_LOG_LEVEL ? LOG_LEVEL_DEBUG : (uint32_t)LOG_FORMAT_JSON);

	if (why)
		return why;
	if (key == CHANNEL_KEY_LOG_LEVEL)
		log_init("netd", (enum log_level)n, log_format());
	else
		log_init("netd", log_level(), (enum log_format)n);
	return NULL;
}

static const char *take_fd(int *at, int *fd)
{
	if (*fd < 0)
		return "no descriptor";
	fd_close(at);
	*at = fd_steal(fd);
	return NULL;
}

static const char *take_address(struct address *at, bool *has, const uint8_t *value, size_t size)
{
	if (size != ADDRESS_BYTES)
		return "not an address";
	*at = address_from_bytes(AF_INET6, value);
	*has = true;
	return NULL;
}

static const char *take_number_key(struct settings *s, uint8_t key, const uint8_t *value)
{
	switch (key) {
	case CHANNEL_KEY_RELAY_PORT:
		return take_port(&s->relay_port, value);
	case CHANNEL_KEY_RELAY_TLS:
		return take_bool(&s->relay_tls, value);
	case CHANNEL_KEY_CAPACITY:
		return take_number(&s->capacity, value, 1, LIMIT_CONCURRENT);
	case CHANNEL_KEY_HEARTBEAT_MS:
		return take_number(&s->heartbeat_ms, value, 1, DAY_MS);
	case CHANNEL_KEY_PING_MS:
		return take_number(&s->ping_ms, value, 1, DAY_MS);
	case CHANNEL_KEY_PROXY_PORT:
		return take_port(&s->proxy_port, value);
	case CHANNEL_KEY_LOG_LEVEL:
	case CHANNEL_KEY_LOG_FORMAT:
		return take_log(key, value);
	case CHANNEL_KEY_BACKGROUND_KILL:
		return take_bool(&s->background_kill, value);
	default:
		return "unknown key";
	}
}

static const char *take_text_key(struct settings *s, uint8_t key, const uint8_t *value, size_t size)
{
	switch (key) {
	case CHANNEL_KEY_RELAY_HOST:
		return size == 0 ? "empty" : take_host(s->relay_host, sizeof s->relay_host, value, size);
	case CHANNEL_KEY_SERVER_NAME:
		return take_host(s->server_name, sizeof s->server_name, value, size);
	case CHANNEL_KEY_SANDBOX_ID:
		return size == 0 ? "empty" : take_utf8(s->sandbox_id, sizeof s->sandbox_id, value, size);
	case CHANNEL_KEY_IMAGE:
		return take_utf8(s->image, sizeof s->image, value, size);
	case CHANNEL_KEY_TRUST:
		return take_trust(s, value, size);
	case CHANNEL_KEY_TIER:
		return size == 0 ? "empty" : take_utf8(s->tier, sizeof s->tier, value, size);
	case CHANNEL_KEY_CAPABILITY:
		return take_capability(s, value, size);
	case CHANNEL_KEY_GOOD_ADDRESS:
		return take_address(&s->history.good, &s->history.has_good, value, size);
	case CHANNEL_KEY_BAD_ADDRESS:
		return take_address(&s->history.bad, &s->history.has_bad, value, size);
	case CHANNEL_KEY_PROXY_HOST:
		return take_host(s->proxy_host, sizeof s->proxy_host, value, size);
	case CHANNEL_KEY_NO_PROXY:
		return bytes_within(value, size, ' ', '~')
			   ? take_text(s->no_proxy, sizeof s->no_proxy, value, size)
			   : "not printable";
	case CHANNEL_KEY_CA_DIR:
		return bytes_within(value, size, 1, 255) ? take_text(s->ca_dir, sizeof s->ca_dir, value, size)
							 : "a NUL inside";
	case CHANNEL_KEY_TOKEN: /* a metadata value: RFC 9110 5.5, and nothing that could end the header */
		if (size == 0 || !bytes_within(value, size, ' ', '~'))
			return "not a token";
		return take_text(s->token, sizeof s->token, value, size);
	case CHANNEL_KEY_PROXY_USER: /* RFC 7617 2: no colon, no controls */
		if (memchr(value, ':', size) || !bytes_within(value, size, ' ', 255) ||
		    memchr(value, 0x7f, size))
			return "not a user name";
		return take_text(s->proxy_user, sizeof s->proxy_user, value, size);
	case CHANNEL_KEY_PROXY_PASSWORD:
		if (!bytes_within(value, size, ' ', 255) || memchr(value, 0x7f, size))
			return "not a password";
		return take_text(s->proxy_password, sizeof s->proxy_password, value, size);
	default:
		return "unknown key";
	}
}

static bool is_number(uint8_t key)
{
	return key == CHANNEL_KEY_RELAY_PORT || key == CHANNEL_KEY_RELAY_TLS || key == CHANNEL_KEY_CAPACITY ||
	       key == CHANNEL_KEY_HEARTBEAT_MS || key == CHANNEL_KEY_PING_MS ||
	       key == CHANNEL_KEY_PROXY_PORT || key == CHANNEL_KEY_LOG_LEVEL ||
	       key == CHANNEL_KEY_LOG_FORMAT || key == CHANNEL_KEY_BACKGROUND_KILL;
}

int settings_take(struct settings *s, uint8_t key, const uint8_t *value, size_t size, int fd,
		  const char **ret_why)
{
	FD_CLOSE int taken = fd;
	const char *why;

	if (key == CHANNEL_KEY_CA_FILE)
		why = take_fd(&s->ca_fd, &taken);
	else if (key == CHANNEL_KEY_CLIENT_CERT)
		why = take_fd(&s->cert_fd, &taken);
	else if (key == CHANNEL_KEY_CLIENT_KEY)
		why = take_fd(&s->key_fd, &taken);
	else if (fd >= 0)
		why = "a descriptor where none belongs";
	else if (is_number(key))
		why = size == 4 ? take_number_key(s, key, value) : "not a number";
	else
		why = take_text_key(s, key, value, size);
	if (!why)
		return 0;
	*ret_why = why;
	return -EINVAL;
}

void settings_wipe(struct settings *s, bool all)
{
	explicit_bzero(s->proxy_password, sizeof s->proxy_password);
	if (all)
		explicit_bzero(s->token, sizeof s->token);
	fd_close(&s->ca_fd);
	fd_close(&s->cert_fd);
	fd_close(&s->key_fd);
}
