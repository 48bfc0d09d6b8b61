#include "netd/grpc.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const code_names[] = {
    "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
};

/* The prefix is complete. Nothing is allocated for a message that will not be taken. */
static int begin(struct grpc_reader *r)
{
	r->length = (uint32_t)r->prefix[1] << 24 | (uint32_t)r->prefix[2] << 16 |
		    (uint32_t)r->prefix[3] << 8 | r->prefix[4];
	r->used = 0;
	if (r->prefix[0] != 0)
		return -EBADMSG;
	if (r->length > LIMIT_MESSAGE_SKIP)
		return -EMSGSIZE;
	if (r->length > LIMIT_MESSAGE) {
		frames_skim_init(&r->skim);
		return 0;
	}
	if (r->length == 0)
		return 0;
	r->message = malloc(r->length);
	return r->message ? 0 : -ENOMEM;
}

static size_t take_prefix(struct grpc_reader *r, const uint8_t *at, size_t size)
{
	size_t n = GRPC_PREFIX - r->prefix_used;

	if (n > size)
		n = size;
	memcpy(r->prefix + r->prefix_used, at, n);
	r->prefix_used += n;
	return n;
}

static size_t take_body(struct grpc_reader *r, const uint8_t *at, size_t size)
{
	size_t n = r->length - r->used;

	if (n > size)
		n = size;
	if (r->message)
		memcpy(r->message + r->used, at, n);
	else if (n > 0)
		frames_skim_feed(&r->skim, at, n);
	r->used += n;
	return n;
}

int grpc_reader_feed(struct grpc_reader *r, const uint8_t *at, size_t size, size_t *ret_used)
{
	size_t used = 0;

	if (r->prefix_used < GRPC_PREFIX) {
		used = take_prefix(r, at, size);
		if (r->prefix_used == GRPC_PREFIX) {
			int err = begin(r);

			if (err < 0)
				return err;
		}
	}
	if (r->prefix_used == GRPC_PREFIX)
		used += take_body(r, at + used, size - used);
	*ret_used = used;
	if (r->prefix_used < GRPC_PREFIX || r->used < r->length)
		return GRPC_STEP_MORE;
	r->prefix_used = 0;
	return r->message || r->length == 0 ? GRPC_STEP_MESSAGE : GRPC_STEP_SKIPPED;
}

uint8_t *grpc_reader_take(struct grpc_reader *r, size_t *ret_size)
{
	uint8_t *message = r->message;

	*ret_size = r->length;
	r->message = NULL;
	return message;
}

bool grpc_reader_inside(const struct grpc_reader *r)
{
	return r->prefix_used > 0;
}

void grpc_reader_free(struct grpc_reader *r)
{
	free(r->message);
	*r = (struct grpc_reader){0};
}

uint8_t grpc_code_parse(const uint8_t *at, size_t size)
{
	unsigned code = 0;

	if (size < 1 || size > 2)
		return GRPC_UNKNOWN;
	for (size_t i = 0; i < size; i++) {
		if (at[i] < '0' || at[i] > '9')
			return GRPC_UNKNOWN;
		code = code * 10 + (unsigned)(at[i] - '0');
	}
	return code <= GRPC_LAST ? (uint8_t)code : GRPC_UNKNOWN;
}

uint8_t grpc_code_of_http(unsigned http_status)
{
	switch (http_status) {
	case 400:
	case 431:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

uint8_t grpc_code_of_reset(uint32_t h2_error)
{
	switch (h2_error) {
	case NGHTTP2_REFUSED_STREAM:
		return GRPC_UNAVAILABLE;
	case NGHTTP2_CANCEL:
		return GRPC_CANCELLED;
	case NGHTTP2_ENHANCE_YOUR_CALM:
		return GRPC_RESOURCE_EXHAUSTED;
	case NGHTTP2_INADEQUATE_SECURITY:
		return GRPC_PERMISSION_DENIED;
	default:
		return GRPC_INTERNAL;
	}
}

const char *grpc_code_name(uint8_t code)
{
	return code <= GRPC_LAST ? code_names[code] : "none";
}

static int hex(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

size_t grpc_message_decode(const uint8_t *message, size_t n, char *at, size_t size)
{
	size_t used = 0;

	if (size == 0)
		return 0;
	for (size_t i = 0; i < n && used + 1 < size; i++) {
		if (message[i] == '%' && n - i > 2 && hex(message[i + 1]) >= 0 && hex(message[i + 2]) >= 0) {
			at[used++] = (char)(hex(message[i + 1]) << 4 | hex(message[i + 2]));
			i += 2;
		} else {
			at[used++] = (char)message[i];
		}
	}
	at[used] = '\0';
	return used;
}

bool grpc_content_type(const uint8_t *at, size_t size)
{
	static const char want[] = "application/grpc";
	size_t n = sizeof want - 1;

	if (size < n || strncasecmp((const char *)at, want, n) != 0)
		return false;
	return size == n || at[n] == '+' || at[n] == ';';
}
