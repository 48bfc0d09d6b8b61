#include "netd/settings.h"

#include "common/buf.h"
#include "common/channel.h"
#include "common/log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int take(struct settings *s, uint8_t key, const void *value, size_t size)
{
	const char *why = NULL;
	int r = settings_take(s, key, value, size, -1, &why);

	cr_assert_eq(r == 0, why == NULL);
	return r;
}

static int take_text(struct settings *s, uint8_t key, const char *value)
{
	return take(s, key, value, strlen(value));
}

static int take_number(struct settings *s, uint8_t key, uint32_t n)
{
	uint8_t bytes[4];

	buf_put_u32(bytes, n);
	return take(s, key, bytes, sizeof bytes);
}

Test(settings, defaults)
{
	struct settings s;

	settings_init(&s);
	cr_assert_str_eq(s.relay_host, "localhost");
	cr_assert_eq(s.relay_port, 8443);
	cr_assert_not(s.relay_tls);
	cr_assert_str_eq(s.sandbox_id, "sbx-laptop-1");
	cr_assert_str_eq(s.trust, "untrusted");
	cr_assert_eq(s.capacity, 4);
	cr_assert_eq(s.heartbeat_ms, LIMIT_HEARTBEAT_MS);
	cr_assert(s.ca_fd == -1 && s.cert_fd == -1 && s.key_fd == -1);
}

Test(settings, every_text_lands_in_its_field)
{
	struct settings s;

	settings_init(&s);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_RELAY_HOST, "relay.example"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_SERVER_NAME, "other.example"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_SANDBOX_ID, "sbx-\xc3\xa9"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_IMAGE, "image"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_TRUST, "trusted"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_TIER, "micro vm"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_CAPABILITY, "bash"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_CAPABILITY, "rg"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_PROXY_HOST, "proxy"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_NO_PROXY, "a, b"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_CA_DIR, "/etc/ssl"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_TOKEN, "a token"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_PROXY_USER, "us\xc3\xa9r"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_PROXY_PASSWORD, "p:w"), 0);
	cr_assert_str_eq(s.relay_host, "relay.example");
	cr_assert_str_eq(s.server_name, "other.example");
	cr_assert_str_eq(s.sandbox_id, "sbx-\xc3\xa9");
	cr_assert_str_eq(s.image, "image");
	cr_assert_str_eq(s.trust, "trusted");
	cr_assert_str_eq(s.tier, "micro vm");
	cr_assert_eq(s.capability_count, 2);
	cr_assert_str_eq(s.capabilities[1], "rg");
	cr_assert_str_eq(s.proxy_host, "proxy");
	cr_assert_str_eq(s.no_proxy, "a, b");
	cr_assert_str_eq(s.ca_dir, "/etc/ssl");
	cr_assert_str_eq(s.token, "a token");
	cr_assert_str_eq(s.proxy_user, "us\xc3\xa9r");
	cr_assert_str_eq(s.proxy_password, "p:w");
}

Test(settings, texts_below_at_and_above_their_room)
{
	static const struct {
		uint8_t key;
		size_t most;
	} cases[] = {
	    {CHANNEL_KEY_RELAY_HOST, 255},      {CHANNEL_KEY_SERVER_NAME, 255},
	    {CHANNEL_KEY_SANDBOX_ID, 1023},     {CHANNEL_KEY_IMAGE, 1023},
	    {CHANNEL_KEY_CAPABILITY, 31},       {CHANNEL_KEY_PROXY_HOST, 255},
	    {CHANNEL_KEY_NO_PROXY, 4095},       {CHANNEL_KEY_CA_DIR, 4095},
	    {CHANNEL_KEY_TOKEN, LIMIT_TOKEN},   {CHANNEL_KEY_PROXY_USER, 1023},
	    {CHANNEL_KEY_PROXY_PASSWORD, 1023}, {CHANNEL_KEY_TIER, 255},
	};
	static char text[LIMIT_TOKEN + 2];
	struct settings s;

	memset(text, 'a', sizeof text);
	settings_init(&s);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cr_assert_eq(take(&s, cases[i].key, text, cases[i].most - 1), 0);
		cr_assert_eq(take(&s, cases[i].key, text, cases[i].most), 0);
		cr_assert_eq(take(&s, cases[i].key, text, cases[i].most + 1), -EINVAL);
	}
}

Test(settings, texts_that_cannot_be_used)
{
	static const struct {
		uint8_t key;
		const char *value;
		size_t size;
	} cases[] = {
	    {CHANNEL_KEY_RELAY_HOST, "", 0},
	    {CHANNEL_KEY_RELAY_HOST, "a b", 3},
	    {CHANNEL_KEY_RELAY_HOST, "a\0b", 3},
	    {CHANNEL_KEY_RELAY_HOST, "\xc3\xa9", 2},
	    {CHANNEL_KEY_SERVER_NAME, "a\nb", 3},
	    {CHANNEL_KEY_SANDBOX_ID, "", 0},
	    {CHANNEL_KEY_SANDBOX_ID, "a\0b", 3},
	    {CHANNEL_KEY_SANDBOX_ID, "\xc3", 1},
	    {CHANNEL_KEY_SANDBOX_ID, "\x80", 1},
	    {CHANNEL_KEY_SANDBOX_ID, "\xc0\x80", 2},
	    {CHANNEL_KEY_IMAGE, "\xed\xa0\x80", 3},
	    {CHANNEL_KEY_IMAGE, "\xf4\x90\x80\x80", 4},
	    {CHANNEL_KEY_IMAGE, "\xff", 1},
	    {CHANNEL_KEY_TRUST, "", 0},
	    {CHANNEL_KEY_TRUST, "Trusted", 7},
	    {CHANNEL_KEY_TRUST, "trustedd", 8},
	    {CHANNEL_KEY_CAPABILITY, "", 0},
	    {CHANNEL_KEY_CAPABILITY, "a b", 3},
	    {CHANNEL_KEY_PROXY_HOST, "a/\x7f", 3},
	    {CHANNEL_KEY_NO_PROXY, "a\n", 2},
	    {CHANNEL_KEY_CA_DIR, "/a\0b", 4},
	    {CHANNEL_KEY_TOKEN, "", 0},
	    {CHANNEL_KEY_TOKEN, "a\nb", 3},
	    {CHANNEL_KEY_TOKEN, "a\x7f", 2},
	    {CHANNEL_KEY_TOKEN, "\xc3\xa9", 2},
	    {CHANNEL_KEY_PROXY_USER, "a:b", 3},
	    {CHANNEL_KEY_PROXY_USER, "a\rb", 3},
	    {CHANNEL_KEY_PROXY_PASSWORD, "a\0b", 3},
	    {0, "", 0},
	    {CHANNEL_KEY_LAST_SETTING + 1, "", 0},
	    {CHANNEL_KEY_LAST_CREDENTIAL + 1, "", 0},
	};
	struct settings s;

	settings_init(&s);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		cr_assert_eq(take(&s, cases[i].key, cases[i].value, cases[i].size), -EINVAL, "case %zu", i);
}

Test(settings, utf8_of_every_length_is_taken)
{
	struct settings s;

	settings_init(&s);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_IMAGE,
			       "a\xc2\x80\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"),
		     0);
}

Test(settings, numbers_below_at_and_above_their_range)
{
	static const struct {
		uint8_t key;
		uint32_t least, most;
	} cases[] = {
	    {CHANNEL_KEY_RELAY_PORT, 1, 65535},  {CHANNEL_KEY_RELAY_TLS, 0, 1},
	    {CHANNEL_KEY_CAPACITY, 1, 256},      {CHANNEL_KEY_HEARTBEAT_MS, 1, 86400000},
	    {CHANNEL_KEY_PING_MS, 1, 86400000},  {CHANNEL_KEY_PROXY_PORT, 1, 65535},
	    {CHANNEL_KEY_BACKGROUND_KILL, 0, 1}, {CHANNEL_KEY_LOG_LEVEL, 0, 3},
	    {CHANNEL_KEY_LOG_FORMAT, 0, 1},
	};
	struct settings s;

	settings_init(&s);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cr_assert_eq(take_number(&s, cases[i].key, cases[i].least), 0, "case %zu", i);
		cr_assert_eq(take_number(&s, cases[i].key, cases[i].most), 0, "case %zu", i);
		cr_assert_eq(take_number(&s, cases[i].key, cases[i].most + 1), -EINVAL, "case %zu", i);
		if (cases[i].least > 0)
			cr_assert_eq(take_number(&s, cases[i].key, cases[i].least - 1), -EINVAL, "case %zu",
				     i);
		cr_assert_eq(take(&s, cases[i].key, "abc", 3), -EINVAL);
	}
	cr_assert(s.relay_port == 65535 && s.relay_tls && s.capacity == 256 && s.background_kill);
	cr_assert_eq(log_level(), LOG_LEVEL_DEBUG);
	cr_assert_eq(log_format(), LOG_FORMAT_JSON);
}

Test(settings, sixteen_capabilities_and_no_more)
{
	struct settings s;

	settings_init(&s);
	for (int i = 0; i < 16; i++)
		cr_assert_eq(take_text(&s, CHANNEL_KEY_CAPABILITY, "x"), 0);
	cr_assert_eq(take_text(&s, CHANNEL_KEY_CAPABILITY, "x"), -EINVAL);
	cr_assert_eq(s.capability_count, 16);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

Test(settings, descriptors_are_taken_replaced_and_closed)
{
	const char *why;
	struct settings s;
	int first = dup(0), second = dup(0), stray = dup(0);

	settings_init(&s);
	cr_assert_eq(settings_take(&s, CHANNEL_KEY_CA_FILE, NULL, 0, first, &why), 0);
	cr_assert_eq(s.ca_fd, first);
	cr_assert_eq(settings_take(&s, CHANNEL_KEY_CA_FILE, NULL, 0, second, &why), 0);
	cr_assert_eq(s.ca_fd, second);
	cr_assert_not(is_open(first));
	cr_assert_eq(settings_take(&s, CHANNEL_KEY_TOKEN, (const uint8_t *)"t", 1, stray, &why), -EINVAL);
	cr_assert_not(is_open(stray));
	cr_assert_eq(settings_take(&s, CHANNEL_KEY_CLIENT_KEY, NULL, 0, -1, &why), -EINVAL);
	settings_wipe(&s, false);
	cr_assert_not(is_open(second));
	cr_assert_eq(s.ca_fd, -1);
}

Test(settings, wipe_overwrites_the_secrets)
{
	static const char nothing[sizeof((struct settings *)0)->token];
	struct settings s;

	settings_init(&s);
	take_text(&s, CHANNEL_KEY_TOKEN, "secret");
	take_text(&s, CHANNEL_KEY_PROXY_PASSWORD, "secret");
	settings_wipe(&s, false);
	cr_assert_str_eq(s.token, "secret");
	cr_assert_arr_eq(s.proxy_password, nothing, sizeof s.proxy_password);
	settings_wipe(&s, true);
	cr_assert_arr_eq(s.token, nothing, sizeof s.token);
}
