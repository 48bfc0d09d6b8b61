/* A connection attempt against scripted relays: how it begins, and messages. */
#include "netd/h2_callbacks.h"
#include "tests/lib/script.h"

#include <criterion/criterion.h>
#include <string.h>

SCRIPT_WORLD

Test(attach, says_hello_first_with_a_token_that_is_never_indexed)
{
	nghttp2_hd_inflater *inflater;
	struct channel_header h;
	bool saw_token = false;
	size_t at = 24, n;
	int flags = 0;

	script_begin();
	script_response();
	script_run();
	cr_assert_eq(script_next(&h), CHANNEL_ATTACHED);
	cr_assert_eq(memcmp(script.out, "PRI * HTTP/2.0", 14), 0);
	for (;; at += 9 + n) {
		n = (size_t)script.out[at] << 16 | (size_t)script.out[at + 1] << 8 | script.out[at + 2];
		if (script.out[at + 3] == SCRIPT_HEADERS)
			break;
	}
	cr_assert_eq(script.out[at + 4] & SCRIPT_END_STREAM, 0, "never half-closed");
	nghttp2_hd_inflate_new(&inflater);
	for (size_t used = 0; !(flags & NGHTTP2_HD_INFLATE_FINAL);) {
		nghttp2_nv nv;
		ssize_t k =
		    nghttp2_hd_inflate_hd2(inflater, &nv, &flags, script.out + at + 9 + used, n - used, 1);

		cr_assert_geq(k, 0);
		used += (size_t)k;
		if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
			continue;
		cr_assert_not(saw_token, "authorization is the last");
		if (nv.namelen == 13 && memcmp(nv.name, "authorization", 13) == 0) {
			saw_token = true;
			cr_assert(nv.flags & NGHTTP2_NV_FLAG_NO_INDEX);
			cr_assert(nv.valuelen == 23 && memcmp(nv.value, "Bearer the-secret-token", 23) == 0);
		}
	}
	cr_assert(saw_token);
	nghttp2_hd_inflate_del(inflater);
	at += 9 + n;
	cr_assert_eq(script.out[at + 3], SCRIPT_DATA);
	cr_assert_eq(script.out[at + 9 + GRPC_PREFIX], 1 << 3 | 2, "WorkerFrame.hello");
	cr_assert_eq(script_settings.token[0], '\0', "wiped");
	cr_assert_eq(script_sent(H2_WIPE_FRAME, 0), 0, "what wipes it does not leave");
}

Test(attach, no_request_leaves_before_the_peer_has_said_settings)
{
	script_begin_empty();
	script_expect("silence, then the end", CHANNEL_CLOSE_EOF, GRPC_UNAVAILABLE);
	cr_assert_null(memmem(script.out, script.out_used, "sandbox", 7));
	cr_assert_leq(script.out_used, 24 + 9 + 18 + 13);
}

Test(attach, tells_peers_that_do_not_speak_http2)
{
	static const char http1[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";

	for (size_t most = 1; most < 10; most++) {
		script_begin_empty();
		script.most = most;
		script_raw(http1, sizeof http1 - 1);
		script_expect("HTTP/1.1", CHANNEL_CLOSE_NOT_HTTP2, GRPC_UNAVAILABLE);
	}
	script_begin_empty();
	script_frame(SCRIPT_PING, 0, 0, "12345678", 8);
	script_expect("no SETTINGS first", CHANNEL_CLOSE_NOT_HTTP2, GRPC_UNAVAILABLE);
	script_begin_empty();
	script_raw("220 mail.example ESMTP\r\n220 again and again\r\n", 45);
	script_expect("SMTP", CHANNEL_CLOSE_NOT_HTTP2, GRPC_UNAVAILABLE);
}

/* RELAY_SERVER_NAME is for certificates; without TLS it is not used. */
Test(attach, authority_is_the_server_name_only_with_tls)
{
	for (int tls = 0; tls <= 1; tls++) {
		char authority[64];

		script_begin();
		strcpy(script_settings.relay_host, "relay.test");
		strcpy(script_settings.server_name, "other.test");
		script_settings.relay_port = 443;
		script_settings.relay_tls = tls;
		script_response();
		script_trailers("0", "");
		script_run();
		script_end();
		script_sent_field(":authority", authority, sizeof authority);
		cr_assert_str_eq(authority, tls ? "other.test:443" : "relay.test:443");
	}
}

Test(attach, hands_execs_and_aborts_on_whatever_the_split)
{
	static const char exec[] = "\x0a\x0c\x08\x07\x12\x06"
				   "echo 1\x28\x01";
	static const size_t reads[] = {1, 2, 3, 7, 100, 16384};

	for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
		struct channel_header h;
		uint8_t bytes[64] = {0, 0, 0, 0, sizeof exec - 1};

		script_begin();
		script.most = reads[i];
		script_response();
		script_message(0, "", 0);
		script_message(0, "\x1a\x02\x08\x07", 4);
		memcpy(bytes + 5, exec, sizeof exec - 1);
		for (size_t k = 0; k < 5 + sizeof exec - 1; k++) {
			script_frame(SCRIPT_DATA, 0, 1, bytes + k, 1);
			script_frame(SCRIPT_DATA, 0, 1, "", 0);
			script_frame(SCRIPT_DATA, SCRIPT_PADDED, 1, "\3\0\0\0", 4);
		}
		script_message(0, "\x12\x02\x08\x07", 4);
		script_trailers("0", "");
		script_run();
		cr_assert_eq(script_next(&h), CHANNEL_ATTACHED);
		cr_assert_eq(script_next(&h), CHANNEL_EXEC);
		cr_assert_eq(h.req_id, 7);
		cr_assert_eq(h.flags, CHANNEL_STREAMING | CHANNEL_INLINE);
		cr_assert_eq(h.len, CHANNEL_EXEC_BLOCK + 6);
		cr_assert_eq(script_next(&h), CHANNEL_ABORT);
		cr_assert_eq(h.req_id, 7);
		cr_assert_eq(script_next(&h), CHANNEL_CLOSED);
		script_end();
	}
}

Test(attach, reads_a_message_over_the_limit_through_and_refuses_it)
{
	uint32_t size = LIMIT_MESSAGE + 1, in = size - 11;
	uint8_t head[16] = {0, (uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
			    (uint8_t)size};
	static uint8_t piece[16384];
	struct channel_header h;

	script_begin();
	script_response();
	/* Exec{req_id: 9, stdin: all the rest} */
	head[5] = 1 << 3 | 2;
	for (int i = 0; i < 4; i++)
		head[6 + i] = (uint8_t)(((size - 5) >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0));
	memcpy(head + 10, "\x08\x09\x1a", 3);
	script_frame(SCRIPT_DATA, 0, 1, head, 13);
	for (int i = 0; i < 4; i++)
		head[i] = (uint8_t)((in - 1) >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0);
	script_frame(SCRIPT_DATA, 0, 1, head, 4);
	for (in--; in > 0; in -= in < sizeof piece ? in : (uint32_t)sizeof piece)
		script_frame(SCRIPT_DATA, 0, 1, piece, in < sizeof piece ? in : sizeof piece);
	script_message(0, "\x12\x02\x08\x07", 4);
	script_trailers("0", "");
	cr_assert_eq(script_run().close_class, CHANNEL_CLOSE_STATUS);
	cr_assert_eq(script_next(&h), CHANNEL_ATTACHED);
	cr_assert_eq(script_next(&h), CHANNEL_EXEC);
	cr_assert(h.req_id == 9 && h.flags == 0 && h.len == CHANNEL_EXEC_BLOCK);
	cr_assert_eq(script_next(&h), CHANNEL_ABORT, "its neighbours live");
	cr_assert_eq(script_next(&h), CHANNEL_CLOSED);
}

Test(attach, passes_over_what_it_need_not_know)
{
	script_begin();
	script_frame(0x77, 0xff, 1, "hello", 5);
	script_frame(SCRIPT_PRIORITY, 0, 3, "\0\0\0\0\1", 5);
	script_frame(0xa, 0, 0, "\0\1ah2=", 6);
	script_response();
	script_frame(0xbb, 0, 0, "x", 1);
	script_trailers("0", "");
	script_expect("unknown frames", CHANNEL_CLOSE_STATUS, GRPC_OK);
}
