#include "netd/proxy.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(proxy, this_host_is_never_reached_through_it)
{
	static const char *const local[] = {"localhost", "a.localhost", "127.0.0.1",
					    "127.9.9.9", "::1",         "[::1]"};
	static const char *const remote[] = {"relay.example.com", "192.0.2.1", "2001:db8::1"};
	struct settings s;

	settings_init(&s);
	strcpy(s.relay_host, "relay.example.com");
	cr_assert_not(proxy_wanted(&s));
	strcpy(s.proxy_host, "proxy.example.com");
	s.proxy_port = 3128;
	for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
		strcpy(s.relay_host, local[i]);
		cr_assert_not(proxy_wanted(&s), "%s", local[i]);
	}
	for (size_t i = 0; i < sizeof remote / sizeof *remote; i++) {
		strcpy(s.relay_host, remote[i]);
		cr_assert(proxy_wanted(&s), "%s", remote[i]);
	}
	strcpy(s.no_proxy, "2001:db8::1");
	cr_assert_not(proxy_wanted(&s));
}

Test(proxy, request_names_the_target)
{
	char out[PROXY_REQUEST_MAX];
	struct settings s;
	size_t n;

	settings_init(&s);
	strcpy(s.relay_host, "relay.example.com");
	s.relay_port = 443;
	n = proxy_request(&s, out);
	cr_assert_eq(n, strlen(out));
	cr_assert_str_eq(out, "CONNECT relay.example.com:443 HTTP/1.1\r\nHost: relay.example.com:443\r\n"
			      "User-Agent: sandbox-worker/" WORKER_VERSION "\r\n\r\n");
	strcpy(s.relay_host, "2001:db8::1");
	proxy_request(&s, out);
	cr_assert(strncmp(out, "CONNECT [2001:db8::1]:443 HTTP/1.1\r\n", 36) == 0);
}

Test(proxy, request_carries_the_credentials)
{
	char out[PROXY_REQUEST_MAX];
	struct settings s;

	settings_init(&s);
	strcpy(s.proxy_user, "Aladdin");
	strcpy(s.proxy_password, "open sesame"); /* RFC 7617 2 */
	proxy_request(&s, out);
	cr_assert_not_null(
	    strstr(out, "\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"));
}

Test(proxy, the_longest_request_fits)
{
	char out[PROXY_REQUEST_MAX];
	struct settings s;
	size_t n;

	settings_init(&s);
	memset(s.relay_host, 'a', sizeof s.relay_host - 1);
	s.relay_port = 65535;
	memset(s.proxy_user, 'u', sizeof s.proxy_user - 1);
	memset(s.proxy_password, 'p', sizeof s.proxy_password - 1);
	n = proxy_request(&s, out);
	cr_assert_lt(n, sizeof out);
	cr_assert_str_eq(out + n - 4, "\r\n\r\n");
}

/* Every split into two reads must give the same; the result is that of the last. */
static int take(const char *answer, size_t size, size_t *ret_taken, char *why_text, size_t why_size)
{
	int first = -1;

	for (size_t cut = 0; cut <= size; cut++) {
		struct proxy_reply reply;
		struct buf_text why;
		size_t taken, more = 0;
		int done;

		buf_text_init(&why, why_text, why_size);
		proxy_reply_init(&reply);
		done = proxy_reply_take(&reply, answer, cut, &taken, &why);
		if (done == 0) {
			cr_assert_eq(taken, cut);
			done = proxy_reply_take(&reply, answer + cut, size - cut, &more, &why);
		}
		if (cut == 0)
			first = done;
		cr_assert_eq(done, first, "cut at %zu", cut);
		*ret_taken = taken + more;
	}
	return first;
}

Test(proxy, answers)
{
	static const struct {
		const char *answer;
		int done;
		size_t left; /* bytes that belong to the tunnel */
		const char *why;
	} cases[] = {
	    {"HTTP/1.1 200 Connection established\r\n\r\n", 1, 0, ""},
	    {"HTTP/1.0 200 OK\r\nVia: x\r\n\r\n", 1, 0, ""},
	    {"HTTP/1.1 200\n\n", 1, 0, ""},
	    {"HTTP/1.1 299 x\r\nContent-Length: 3\r\n\r\nabc", 1, 3, ""},
	    {"HTTP/1.1 200 OK\r\n\r\n\r\n\r\n", 1, 4, ""},
	    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 x\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\nPRI", 1, 3,
	     ""},
	    {"HTTP/1.1 200 OK\r\nA: b\r\n", 0, 0, ""},
	    {"HTTP/1.1 100 Continue\r\n\r\n", 0, 0, ""},
	    {"HTTP/1.1 407 Proxy Authentication Required\r\n", -EPROTO, 0,
	     "the proxy refused: 407 Proxy Authentication Required (are the user and the password in "
	     "HTTPS_PROXY "
	     "right?)"},
	    {"HTTP/1.1 403 Forbidden\r\n\r\n", -EPROTO, 0, "the proxy refused: 403 Forbidden"},
	    {"HTTP/1.1 502\n", -EPROTO, 0, "the proxy refused: 502"},
	    {"HTTP/1.1 101 Switching\r\n", -EPROTO, 0, "the proxy refused: 101 Switching"},
	    {"HTTP/1.1 301 Moved\r\n", -EPROTO, 0, "the proxy refused: 301 Moved"},
	    {"HTTP/1.1 2000 OK\r\n", -EPROTO, 0, "the proxy does not speak HTTP/1"},
	    {"HTTP/1.1 20 OK\r\n", -EPROTO, 0, "the proxy does not speak HTTP/1"},
	    {"HTTP/1.1\r\n", -EPROTO, 0, "the proxy does not speak HTTP/1"},
	    {"HTTP/2 200 OK\r\n", -EPROTO, 0, "the proxy does not speak HTTP/1"},
	    {"\r\n", -EPROTO, 0, "the proxy does not speak HTTP/1"},
	    {"SSH-2.0", -EPROTO, 0, "the proxy does not speak HTTP/1"},
	};
	char why[256];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t size = strlen(cases[i].answer), taken;

		cr_assert_eq(take(cases[i].answer, size, &taken, why, sizeof why), cases[i].done, "%s",
			     cases[i].answer);
		cr_assert_str_eq(why, cases[i].why);
		if (cases[i].done == 1)
			cr_assert_eq(taken, size - cases[i].left, "%s", cases[i].answer);
	}
}

/* An answer of exactly size bytes. */
static int take_long(size_t size)
{
	static char answer[PROXY_REPLY_MAX + 2];
	struct proxy_reply reply;
	struct buf_text why;
	char text[256];
	size_t taken;

	memset(answer, 'x', sizeof answer);
	memcpy(answer, "HTTP/1.1 200 OK\r\n", 17);
	memcpy(answer + size - 4, "\r\n\r\n", 4);
	buf_text_init(&why, text, sizeof text);
	proxy_reply_init(&reply);
	return proxy_reply_take(&reply, answer, size, &taken, &why);
}

Test(proxy, answer_below_at_and_above_its_limit)
{
	cr_assert_eq(take_long(PROXY_REPLY_MAX - 1), 1);
	cr_assert_eq(take_long(PROXY_REPLY_MAX), 1);
	cr_assert_eq(take_long(PROXY_REPLY_MAX + 1), -EPROTO);
}
