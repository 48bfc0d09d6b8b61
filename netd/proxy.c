#include "netd/proxy.h"

#include "common/no_proxy.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

bool proxy_wanted(const struct settings *settings)
{
	return settings->proxy_host[0] != '\0' &&
	       !no_proxy_covers(settings->no_proxy, settings->relay_host, settings->relay_port);
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
