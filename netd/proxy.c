#include "netd/proxy.h"

#include "netd/address.h"
#include "netd/resolve.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct entry {
	char host[256];
	uint16_t port; /* 0: any */
	unsigned bits; /* of a network; 0: none */
};

static bool parse_number(const char *s, unsigned most, unsigned *ret)
{
	char *end;
	unsigned long n;

	if (*s < '0' || *s > '9')
		return false;
	n = strtoul(s, &end, 10);
	if (*end != '\0' || n > most)
		return false;
	*ret = (unsigned)n;
	return true;
}

/* name, name:port, address, [v6]:port, address/bits. A colon that is not the only one belongs to a v6
 * address. */
static bool split(const char *text, size_t size, struct entry *ret)
{
	struct entry e = {0};
	char *slash, *colon;
	unsigned number;

	if (size == 0 || size >= sizeof e.host)
		return false;
	memcpy(e.host, text, size);
	slash = strchr(e.host, '/');
	if (slash) {
		*slash = '\0';
		if (!parse_number(slash + 1, 128, &e.bits))
			return false;
		*ret = e;
		return true;
	}
	colon = strrchr(e.host, ':');
	if (colon && (colon == strchr(e.host, ':') || (colon > e.host && colon[-1] == ']'))) {
		if (!parse_number(colon + 1, 65535, &number))
			return false;
		*colon = '\0';
		e.port = (uint16_t)number;
	}
	*ret = e;
	return true;
}

static size_t name_length(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && name[n - 1] == '.' ? n - 1 : n;
}

static bool name_matches(const char *pattern, const char *host)
{
	bool below_only = pattern[0] == '.' || strncmp(pattern, "*.", 2) == 0;
	size_t n, h = name_length(host);

	if (below_only)
		pattern += pattern[0] == '.' ? 1 : 2;
	n = name_length(pattern);
	if (n == 0 || n > h || strncasecmp(host + h - n, pattern, n) != 0)
		return false;
	return h == n ? !below_only : host[h - n - 1] == '.';
}

static bool entry_matches(const struct entry *e, bool network, const char *host,
			  const struct address *address, uint16_t port)
{
	struct address other;

	if (e->port != 0 && e->port != port)
		return false;
	if (strcmp(e->host, "*") == 0)
		return true;
	if (address_parse(e->host, &other) == 0) {
		unsigned whole = other.any.sa_family == AF_INET ? 32 : 128;

		return address && address_in_network(address, &other, network ? e->bits : whole);
	}
	return !network && !address && name_matches(e->host, host);
}

bool proxy_is_excluded(const char *no_proxy, const char *host, uint16_t port)
{
	struct address literal;
	const struct address *address = address_parse(host, &literal) == 0 ? &literal : NULL;
	const char *p = no_proxy;

	while (*p) {
		size_t n;
		struct entry e;

		p += strspn(p, ", \t");
		n = strcspn(p, ", \t");
		if (split(p, n, &e) && entry_matches(&e, memchr(p, '/', n) != NULL, host, address, port))
			return true;
		p += n;
	}
	return false;
}

bool proxy_wanted(const struct settings *settings)
{
	struct address literal;

	if (settings->proxy_host[0] == '\0' || resolve_is_localhost(settings->relay_host))
		return false;
	if (address_parse(settings->relay_host, &literal) == 0 && address_is_loopback(&literal))
		return false;
	return !proxy_is_excluded(settings->no_proxy, settings->relay_host, settings->relay_port);
}

size_t proxy_request(const struct settings *settings, char out[PROXY_REQUEST_MAX])
{
	char target[300], plain[sizeof settings->proxy_user + sizeof settings->proxy_password + 1];
	unsigned char coded[4 * (sizeof plain / 3 + 1) + 1];
	bool v6 = strchr(settings->relay_host, ':') && settings->relay_host[0] != '[';
	int n;

	snprintf(target, sizeof target, "%s%s%s:%u", v6 ? "[" : "", settings->relay_host, v6 ? "]" : "",
		 settings->relay_port);
	n = snprintf(out, PROXY_REQUEST_MAX,
		     "CONNECT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: sandbox-worker/%s\r\n", target, target,
		     WORKER_VERSION);
	if (settings->proxy_user[0] != '\0' || settings->proxy_password[0] != '\0') {
		int size =
		    snprintf(plain, sizeof plain, "%s:%s", settings->proxy_user, settings->proxy_password);

		EVP_EncodeBlock(coded, (const unsigned char *)plain, size);
		n += snprintf(out + n, PROXY_REQUEST_MAX - (size_t)n, "Proxy-Authorization: Basic %s\r\n",
			      coded);
		explicit_bzero(plain, sizeof plain);
		explicit_bzero(coded, sizeof coded);
	}
	n += snprintf(out + n, PROXY_REQUEST_MAX - (size_t)n, "\r\n");
	return (size_t)n;
}

void proxy_reply_init(struct proxy_reply *reply)
{
	*reply = (struct proxy_reply){.in_status_line = true};
}

/* "HTTP/1.x SP 3DIGIT", then a space or nothing. */
static bool parse_status(const char *line, uint16_t *ret)
{
	unsigned n = 0;

	if (strncmp(line, "HTTP/1.", 7) != 0 || line[7] < '0' || line[7] > '9' || line[8] != ' ')
		return false;
	for (unsigned i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return false;
		n = n * 10 + (unsigned)(line[i] - '0');
	}
	if (line[12] != '\0' && line[12] != ' ')
		return false;
	*ret = (uint16_t)n;
	return true;
}

static int not_http(struct buf_text *why)
{
	buf_text_addz(why, "the proxy does not speak HTTP/1");
	return -EPROTO;
}

static int refuse(const struct proxy_reply *reply, struct buf_text *why)
{
	buf_text_addf(why, "the proxy refused: %s", reply->line + 9);
	if (reply->status == 407)
		buf_text_addz(why, " (are the user and the password in HTTPS_PROXY right?)");
	return -EPROTO;
}

/* At the end of a line. 1: the final header block is over; 0: go on; -EPROTO. */
static int line_over(struct proxy_reply *reply, struct buf_text *why)
{
	if (reply->in_status_line) {
		if (!parse_status(reply->line, &reply->status))
			return not_http(why);
		reply->in_status_line = false;
		reply->line_empty = true;
		return reply->status >= 300 || reply->status == 101 || reply->status < 100
			   ? refuse(reply, why)
			   : 0;
	}
	if (!reply->line_empty) {
		reply->line_empty = true;
		return 0;
	}
	if (reply->status >= 200)
		return 1;
	reply->in_status_line = true; /* that was a 1xx block */
	reply->line_used = 0;
	memset(reply->line, 0, sizeof reply->line);
	return 0;
}

/* Garbage is found at its first byte: it may never bring a line's end. */
static int add_to_line(struct proxy_reply *reply, char c, struct buf_text *why)
{
	static const char version[] = "HTTP/1.";

	if (c == '\r')
		return 0;
	reply->line_empty = false;
	if (!reply->in_status_line)
		return 0;
	if (reply->line_used < sizeof version - 1 && c != version[reply->line_used])
		return not_http(why);
	if (reply->line_used < sizeof reply->line - 1)
		reply->line[reply->line_used++] = c;
	return 0;
}

int proxy_reply_take(struct proxy_reply *reply, const char *bytes, size_t size, size_t *ret_taken,
		     struct buf_text *why)
{
	for (size_t i = 0; i < size; i++) {
		int done = 0;

		if (reply->seen++ == PROXY_REPLY_MAX) {
			buf_text_addf(why, "the proxy's answer is longer than %u bytes", PROXY_REPLY_MAX);
			return -EPROTO;
		}
		if (bytes[i] == '\n')
			done = line_over(reply, why);
		else
			done = add_to_line(reply, bytes[i], why);
		if (done < 0)
			return done;
		if (done == 1) {
			*ret_taken = i + 1;
			return 1;
		}
	}
	*ret_taken = size;
	return 0;
}
