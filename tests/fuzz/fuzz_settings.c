/* The values of execd's settings. The first byte chooses a parser, the rest is a value; what is accepted must
 * be what the rest of the program counts on. */
#include "execd/config_parse.h"

#include "execd/environment.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 8192

#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What netd and the kernel are given as a host: no blank, no control, no byte beyond ASCII. */
static void check_host(const char *host)
{
	struct in6_addr a;

	MUST(host[0] != '\0' && strlen(host) < 256);
	MUST(strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") ==
	     strlen(host));
	if (strchr(host, ':'))
		MUST(inet_pton(AF_INET6, host, &a) == 1);
}

static void check_address(const char *value)
{
	char host[256];
	uint16_t port = 0;

	if (config_parse_address(value, host, sizeof host, &port))
		return;
	MUST(port > 0 && !strstr(value, "://"));
	check_host(host);
}

static void check_proxy(const char *value)
{
	static struct config_proxy p;

	p = (struct config_proxy){0};
	if (config_parse_proxy(value, &p))
		return;
	MUST(p.port > 0);
	check_host(p.host);
	for (const char *at = p.user; *at; at++)
		MUST((unsigned char)*at >= 0x20 && *at != 0x7f && *at != ':');
	for (const char *at = p.password; *at; at++)
		MUST((unsigned char)*at >= 0x20 && *at != 0x7f);
}

static void check_number(const char *value)
{
	uint32_t n;

	if (config_parse_number(value, 1, 256, &n))
		return;
	MUST(n >= 1 && n <= 256 && strtoul(value, NULL, 10) == n);
}

/* A command must not see what a setting's name or a proxy's user could give away. */
static void check_entry(const char *value)
{
	if (!environment_allowed(value, false)) {
		MUST(!environment_allowed(value, true));
		return;
	}
	MUST(strchr(value, '=') && strncasecmp(value, "SANDBOX_", 8) != 0 &&
	     strncasecmp(value, "RELAY_", 6) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char value[VALUE_MAX];
	char host[256];
	bool yes;

	if (size == 0 || size > sizeof value)
		return 0;
	memcpy(value, data + 1, size - 1);
	value[size - 1] = '\0';
	switch (data[0] % 8) {
	case 0:
		check_address(value);
		break;
	case 1:
		check_proxy(value);
		break;
	case 2:
		check_number(value);
		break;
	case 3:
		if (!config_parse_host(value, host, sizeof host))
			check_host(host);
		break;
	case 4:
		MUST(config_parse_bool(value, &yes) || strlen(value) <= 5);
		break;
	case 5:
		MUST(config_trim_token(value, size - 1) || (value[0] && !strpbrk(value, "\r\n")));
		break;
	case 6:
		MUST(config_check_text(value) || !strpbrk(value, "\xff\xc0\x1b\n"));
		break;
	default:
		check_entry(value);
		break;
	}
	return 0;
}
