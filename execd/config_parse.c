#include "execd/config_parse.h"

#include "common/limits.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#define HOST_MAX 253u /* RFC 1035 */

const char *config_parse_number(const char *value, uint32_t min, uint32_t max, uint32_t *ret)
{
	uint64_t v = 0;
	size_t n = strspn(value, "0123456789");

	if (n == 0 || value[n] != '\0' || n > 10)
		return "must be a whole number";
	for (size_t i = 0; i < n; i++)
		v = v * 10 + (uint64_t)(value[i] - '0');
	if (v < min || v > max)
		return "is out of range";
	*ret = (uint32_t)v;
	return NULL;
}

const char *config_parse_bool(const char *value, bool *ret)
{
	static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
	static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};

	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
		bool is_yes = strcmp(value, yes[i]) == 0;

		if (is_yes || strcmp(value, no[i]) == 0) {
			*ret = is_yes;
			return NULL;
		}
	}
	return "must be 1, t, true, 0, f or false";
}

static bool is_name(const char *s, size_t n)
{
	if (n == 0 || n > HOST_MAX || s[0] == '.' || s[0] == '-')
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
			return false;
		if (i > 0 && s[i] == '.' && s[i - 1] == '.')
			return false;
	}
	return true;
}

static bool is_v6(const char *s)
{
	struct in6_addr a;

	return inet_pton(AF_INET6, s, &a) == 1;
}

const char *config_parse_host(const char *value, char *ret_host, size_t size)
{
	size_t n = strlen(value);

	if (n >= size || (!is_name(value, n) && !is_v6(value)))
		return "must be a host name or an address";
	memcpy(ret_host, value, n + 1);
	return NULL;
}

/* Splits host from port; *ret_port_text is NULL where there is none. */
static const char *split(const char *value, char *host, size_t size, const char **ret_port_text)
{
	const char *end, *after;
	size_t n;

	if (value[0] == '[') {
		end = strchr(value, ']');
		if (!end)
			return "has a [ without its ]";
		value++;
		after = end + 1;
	} else {
		end = value + strcspn(value, ":");
		after = end;
		if (*end == ':' && strchr(end + 1, ':'))
			return "must have an IPv6 address in brackets";
	}
	n = (size_t)(end - value);
	if (n >= size)
		return "has a host that is too long";
	memcpy(host, value, n);
	host[n] = '\0';
	if (*after != '\0' && *after != ':')
		return "must be host:port";
	*ret_port_text = *after == ':' ? after + 1 : NULL;
	return NULL;
}

static const char *parse_host_port(const char *value, char *ret_host, size_t size, uint16_t default_port,
				   uint16_t *ret_port)
{
	char host[HOST_MAX + 1];
	const char *port_text, *why = split(value, host, sizeof host, &port_text);
	uint32_t port = default_port;

	if (why)
		return why;
	if (value[0] == '[' ? !is_v6(host) : !is_name(host, strlen(host)))
		return value[0] == '[' ? "has no IPv6 address between its brackets"
				       : "has no usable host name";
	if (!port_text && default_port == 0)
		return "needs a port";
	if (port_text && config_parse_number(port_text, 1, 65535, &port))
		return "needs a port from 1 to 65535";
	if (strlen(host) >= size)
		return "has a host that is too long";
	memcpy(ret_host, host, strlen(host) + 1);
	*ret_port = (uint16_t)port;
	return NULL;
}

const char *config_parse_address(const char *value, char *ret_host, size_t size, uint16_t *ret_port)
{
	if (strstr(value, "://"))
		return "must be host:port, without a scheme";
	return parse_host_port(value, ret_host, size, 0, ret_port);
}

/* The value of two hexadecimal digits; -1 for anything else. */
static int hex_pair(const char *s)
{
	static const char digits[] = "0123456789abcdef";
	const char *high = s[0] ? strchr(digits, tolower((unsigned char)s[0])) : NULL;
	const char *low = high && s[1] ? strchr(digits, tolower((unsigned char)s[1])) : NULL;

	return low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

/* Undoes percent-encoding. What could end a header line is refused. */
static bool decode(const char *s, size_t n, char *ret, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		int c = (unsigned char)s[i];

		if (c == '%') {
			c = i + 2 < n ? hex_pair(s + i + 1) : -1;
			i += 2;
		}
		if (c < 0x20 || c == 0x7f || used + 1 >= size)
			return false;
		ret[used++] = (char)c;
	}
	ret[used] = '\0';
	return true;
}

static bool decode_userinfo(const char *s, size_t n, struct config_proxy *ret)
{
	const char *colon = memchr(s, ':', n);
	size_t user = colon ? (size_t)(colon - s) : n;

	/* Basic auth separates by a colon, so a user cannot have one (RFC 7617). */
	if (!decode(s, user, ret->user, sizeof ret->user) || strchr(ret->user, ':'))
		return false;
	return !colon || decode(colon + 1, n - user - 1, ret->password, sizeof ret->password);
}

const char *config_parse_proxy(const char *value, struct config_proxy *ret)
{
	static const char scheme[] = "http://";
	struct config_proxy p = {0};
	char authority[512];
	const char *at, *why;
	size_t n;

	if (strncasecmp(value, "https://", 8) == 0)
		return "must be an http:// proxy: TLS to the proxy itself is not supported";
	if (strncasecmp(value, scheme, sizeof scheme - 1) == 0)
		value += sizeof scheme - 1;
	else if (strstr(value, "://"))
		return "must be http://[user:password@]host:port";
	n = strcspn(value, "/?#");
	if (value[n] != '\0' && strcmp(value + n, "/") != 0)
		return "must not have a path";
	at = memrchr(value, '@', n);
	if (at && !decode_userinfo(value, (size_t)(at - value), &p))
		return "has a user or password that cannot be decoded";
	if (at) {
		n -= (size_t)(at + 1 - value);
		value = at + 1;
	}
	if (n >= sizeof authority)
		return "has a host that is too long";
	memcpy(authority, value, n);
	authority[n] = '\0';
	why = parse_host_port(authority, p.host, sizeof p.host, 80, &p.port);
	if (!why)
		*ret = p;
	explicit_bzero(&p, sizeof p);
	return why;
}

const char *config_trim_token(char *token, size_t size)
{
	if (size > 0 && token[size - 1] == '\n') {
		token[--size] = '\0';
		if (size > 0 && token[size - 1] == '\r')
			token[--size] = '\0';
	}
	if (size == 0)
		return "is empty";
	if (size > LIMIT_TOKEN)
		return "is too long";
	for (size_t i = 0; i < size; i++) {
		if (token[i] == '\n' || token[i] == '\r')
			return "has a newline inside";
		if (token[i] < 0x20 || token[i] > 0x7e)
			return "has a byte outside 0x20 to 0x7e";
	}
	return NULL;
}

/* Length of the well-formed sequence at s, 0 where there is none. Overlong forms, surrogates and what is
 * above U+10FFFF are not well-formed. */
static size_t sequence(const unsigned char *s)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	}
	return n;
}

const char *config_check_text(const char *value)
{
	const unsigned char *s = (const unsigned char *)value;

	while (*s) {
		size_t n = sequence(s);

		if (n == 0)
			return "is not valid UTF-8";
		if (*s < 0x20 || *s == 0x7f)
			return "has a control character inside";
		s += n;
	}
	return NULL;
}
