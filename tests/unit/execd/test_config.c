/* Settings: what is taken, and that each bad value is refused by a line that names it. */
#include "execd/config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>

static struct config config;
static struct config_secrets secrets;
static struct config_error error;

/* Reads an environment of up to 4 entries. */
static int read_vars(const char *a, const char *b, const char *c)
{
	char *vars[] = {(char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)c, NULL};

	memset(&error, 0, sizeof error);
	return config_read(vars, &config, &secrets, &error);
}

static void expect_taken(const char *a)
{
	cr_assert_eq(read_vars(a, NULL, NULL), 0, "%s: refused: %s %s", a, error.setting, error.why);
}

/* Refused, by the name of the setting, with exit code 2 and some reason. */
static void expect_refused_with(const char *entry, const char *other)
{
	char name[64] = "";

	snprintf(name, sizeof name, "%.*s", (int)strcspn(entry, "="), entry);
	cr_assert_lt(read_vars(entry, other, NULL), 0, "%s: taken", entry);
	cr_assert_str_eq(error.setting, name, "%s: names %s", entry, error.setting);
	cr_assert_eq(error.exit_code, 2);
	cr_assert_gt(strlen(error.why), 5, "%s: says nothing", entry);
}

static void expect_refused(const char *entry)
{
	expect_refused_with(entry, NULL);
}

/* name=<n times x> */
static char *long_entry(const char *name, size_t n, char x)
{
	size_t head = strlen(name);
	char *s = malloc(head + n + 2);

	cr_assert(s);
	memcpy(s, name, head);
	s[head] = '=';
	memset(s + head + 1, x, n);
	s[head + 1 + n] = '\0';
	return s;
}

Test(config, has_the_defaults_of_the_contract)
{
	cr_assert_eq(read_vars(NULL, NULL, NULL), 0);
	cr_assert_str_eq(config.relay_host, "localhost");
	cr_assert_eq(config.relay_port, 8443);
	cr_assert_not(config.relay_tls);
	cr_assert_str_eq(config.sandbox_id, "sbx-laptop-1");
	cr_assert_str_eq(secrets.token, "dev-token");
	cr_assert_eq(config.max_concurrent, 4);
	cr_assert_eq(config.heartbeat_ms, 15000);
	cr_assert_not(config.trusted);
	cr_assert_not(config.background_kill);
	cr_assert_str_eq(config.image, "");
	cr_assert_str_eq(config.tier, "container");
	cr_assert_null(config.killer);
	cr_assert_not(config.command_user.set);
	cr_assert_not(config.netd_user.set);
	cr_assert_eq(config.keep_caps, 0);
	cr_assert_eq(config.drain_s, 0);
	cr_assert_eq(config.log_level, LOG_LEVEL_INFO);
}

Test(config, takes_empty_for_unset)
{
	expect_taken("RELAY_ADDR=");
	cr_assert_str_eq(config.relay_host, "localhost");
	expect_taken("RELAY_TLS=");
	expect_taken("WORKER_MAX_CONCURRENT=");
	expect_taken("SANDBOX_TRUST=");
	expect_taken("SANDBOX_ID=");
	cr_assert_str_eq(config.sandbox_id, "sbx-laptop-1");
	cr_assert_eq(read_vars("SANDBOX_TOKEN=", "SANDBOX_TOKEN_FILE=/x", NULL), 0);
	cr_assert_str_eq(secrets.token, "");
}

Test(config, takes_addresses)
{
	static const struct {
		const char *entry, *host;
		uint16_t port;
	} good[] = {
	    {"RELAY_ADDR=relay.example:1", "relay.example", 1},
	    {"RELAY_ADDR=relay.example.:65535", "relay.example.", 65535},
	    {"RELAY_ADDR=10.0.0.1:8443", "10.0.0.1", 8443},
	    {"RELAY_ADDR=[::1]:8443", "::1", 8443},
	    {"RELAY_ADDR=[2001:db8::7]:443", "2001:db8::7", 443},
	    {"RELAY_ADDR=my_relay-1:443", "my_relay-1", 443},
	};

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		expect_taken(good[i].entry);
		cr_assert_str_eq(config.relay_host, good[i].host);
		cr_assert_eq(config.relay_port, good[i].port);
	}
}

Test(config, refuses_bad_values_by_name)
{
	static const char *const bad[] = {
	    "RELAY_ADDR=relay.example",
	    "RELAY_ADDR=relay.example:",
	    "RELAY_ADDR=relay.example:0",
	    "RELAY_ADDR=relay.example:65536",
	    "RELAY_ADDR=relay.example:http",
	    "RELAY_ADDR=relay.example:80 ",
	    "RELAY_ADDR=:8443",
	    "RELAY_ADDR=::1:8443",
	    "RELAY_ADDR=[::1]",
	    "RELAY_ADDR=[::1",
	    "RELAY_ADDR=[::1]8443",
	    "RELAY_ADDR=[relay.example]:8443",
	    "RELAY_ADDR=http://relay.example:8443",
	    "RELAY_ADDR=https://relay.example:8443",
	    "RELAY_ADDR=relay.example:8443/path",
	    "RELAY_ADDR=user@relay.example:8443",
	    "RELAY_ADDR=re lay:8443",
	    "RELAY_ADDR=-relay:8443",
	    "RELAY_ADDR=a..b:8443",
	    "RELAY_TLS=yes",
	    "RELAY_TLS=2",
	    "RELAY_TLS=on",
	    "RELAY_TLS=tRUE",
	    "RELAY_TLS= 1",
	    "RELAY_TLS=01",
	    "RELAY_SERVER_NAME=a b",
	    "RELAY_SERVER_NAME=relay:1",
	    "WORKER_MAX_CONCURRENT=0",
	    "WORKER_MAX_CONCURRENT=257",
	    "WORKER_MAX_CONCURRENT=-1",
	    "WORKER_MAX_CONCURRENT=+4",
	    "WORKER_MAX_CONCURRENT=4.0",
	    "WORKER_MAX_CONCURRENT=0x4",
	    "WORKER_MAX_CONCURRENT=99999999999999999999",
	    "SANDBOX_ID=\xff",
	    "SANDBOX_ID=a\nb",
	    "SANDBOX_IMAGE=\xc0\x80",
	    "SANDBOX_IMAGE=\xed\xa0\x80",
	    "SANDBOX_IMAGE=\xf4\x90\x80\x80",
	    "SANDBOX_IMAGE=\xe2\x82",
	    "SANDBOX_TRUST=Trusted",
	    "SANDBOX_TRUST=no",
	    "SANDBOX_TOKEN=a\nb",
	    "SANDBOX_TOKEN=a\n\n",
	    "SANDBOX_TOKEN=a\r",
	    "SANDBOX_TOKEN=\n",
	    "SANDBOX_TOKEN=a\tb",
	    "SANDBOX_TOKEN=\x7f",
	    "SANDBOX_TOKEN=\xc3\xa9",
	    "SANDBOX_USER=no-such-user",
	    "SANDBOX_USER=:5",
	    "SANDBOX_USER=0:no-such-group",
	    "SANDBOX_USER=0:",
	    "SANDBOX_USER=4294967295",
	    "NETD_USER=no-such-user",
	    "SANDBOX_BACKGROUND=leave",
	    "SANDBOX_KEEP_CAPS=cap_everything",
	    "SANDBOX_KEEP_CAPS=cap_chown,all",
	    "SANDBOX_KILLER=kill",
	    "WORKER_DRAIN_S=-1",
	    "WORKER_DRAIN_S=3601",
	    "WORKER_DRAIN_S=5s",
	    "HEARTBEAT_S=0",
	    "HEARTBEAT_S=3601",
	    "HEARTBEAT_S=15.5",
	    "LOG_LEVEL=trace",
	    "LOG_LEVEL=INFO ",
	    "LOG_FORMAT=xml",
	    "NO_PROXY=\xff",
	    "NO_PROXY=caf\xc3\xa9",
	    "SANDBOX_CWD=\xff",
	    "STATUS_FILE=a\x1b[m",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		expect_refused(bad[i]);
}

Test(config, refuses_a_bad_proxy_by_name)
{
	static const char *const bad[] = {
	    "HTTPS_PROXY=https://proxy:8080",
	    "HTTPS_PROXY=socks5://proxy:1080",
	    "HTTPS_PROXY=http://",
	    "HTTPS_PROXY=http://proxy:0",
	    "HTTPS_PROXY=http://proxy:port",
	    "HTTPS_PROXY=http://proxy:8080/path",
	    "HTTPS_PROXY=http://us%zzer:x@proxy:8080",
	    "HTTPS_PROXY=http://user:pa%0ass@proxy:8080",
	    "HTTPS_PROXY=http://u%3as:er@proxy:8080",
	    "https_proxy=ftp://proxy:8080",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		expect_refused_with(bad[i], "RELAY_ADDR=relay.example:8443");
}

Test(config, takes_go_words_for_tls)
{
	static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
	static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};
	char entry[64];

	for (size_t i = 0; i < 6; i++) {
		snprintf(entry, sizeof entry, "RELAY_TLS=%s", yes[i]);
		expect_taken(entry);
		cr_assert(config.relay_tls);
		snprintf(entry, sizeof entry, "RELAY_TLS=%s", no[i]);
		expect_taken(entry);
		cr_assert_not(config.relay_tls);
	}
}

Test(config, takes_numbers_at_their_limits)
{
	expect_taken("WORKER_MAX_CONCURRENT=1");
	cr_assert_eq(config.max_concurrent, 1);
	expect_taken("WORKER_MAX_CONCURRENT=256");
	cr_assert_eq(config.max_concurrent, 256);
	expect_taken("HEARTBEAT_S=1");
	cr_assert_eq(config.heartbeat_ms, 1000);
	expect_taken("HEARTBEAT_S=3600");
	cr_assert_eq(config.heartbeat_ms, 3600000);
	expect_taken("WORKER_DRAIN_S=0");
	expect_taken("WORKER_DRAIN_S=3600");
	cr_assert_eq(config.drain_s, 3600);
}

Test(config, bounds_the_length_of_a_token)
{
	char *at = long_entry("SANDBOX_TOKEN", LIMIT_TOKEN, 'x'),
	     *below = long_entry("SANDBOX_TOKEN", LIMIT_TOKEN - 1, ' ');
	char *above = long_entry("SANDBOX_TOKEN", LIMIT_TOKEN + 1, 'x');

	expect_taken(below);
	expect_taken(at);
	cr_assert_eq(strlen(secrets.token), LIMIT_TOKEN);
	expect_refused(above);
	free(at);
	free(below);
	free(above);
}

/* What $(cat file) would have trimmed, and Kubernetes' Secrets are full of. */
Test(config, trims_one_line_end_of_a_token)
{
	char *at = long_entry("SANDBOX_TOKEN", LIMIT_TOKEN + 2, 'x');

	expect_taken("SANDBOX_TOKEN=tok\n");
	cr_assert_str_eq(secrets.token, "tok");
	expect_taken("SANDBOX_TOKEN= tok \r\n");
	cr_assert_str_eq(secrets.token, " tok ");
	memcpy(at + strlen(at) - 2, "\r\n", 2);
	expect_taken(at);
	cr_assert_eq(strlen(secrets.token), LIMIT_TOKEN);
	free(at);
}

Test(config, bounds_the_length_of_texts)
{
	char *at = long_entry("SANDBOX_ID", sizeof config.sandbox_id - 1, 'x');
	char *above = long_entry("SANDBOX_ID", sizeof config.sandbox_id, 'x');
	char *path = long_entry("STATUS_FILE", sizeof config.status_file, 'x');
	char *host = long_entry("RELAY_ADDR", 300, 'x');

	expect_taken(at);
	expect_refused(above);
	expect_refused(path);
	expect_refused(host);
	free(at);
	free(above);
	free(path);
	free(host);
}

Test(config, takes_utf8)
{
	expect_taken("SANDBOX_ID=caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa2 \xed\x9f\xbf \xf4\x8f\xbf\xbf");
}

Test(config, refuses_both_tokens)
{
	cr_assert_lt(read_vars("SANDBOX_TOKEN=a", "SANDBOX_TOKEN_FILE=/b", NULL), 0);
	cr_assert_str_eq(error.setting, "SANDBOX_TOKEN");
	cr_assert(strstr(error.why, "SANDBOX_TOKEN_FILE"));
}

Test(config, refuses_half_a_client_certificate)
{
	cr_assert_lt(read_vars("RELAY_KEY_FILE=/k", NULL, NULL), 0);
	cr_assert_str_eq(error.setting, "RELAY_KEY_FILE");
	cr_assert_lt(read_vars("RELAY_CERT_FILE=/c", NULL, NULL), 0);
	cr_assert_str_eq(error.setting, "RELAY_CERT_FILE");
	cr_assert_eq(read_vars("RELAY_CERT_FILE=/c", "RELAY_KEY_FILE=/k", "RELAY_TLS=1"), 0);
}

Test(config, keeps_the_proxy_password_with_the_secrets)
{
	expect_taken("HTTPS_PROXY=http://us%65r:p%40ss:w%2Frd@proxy.example:3128/");
	cr_assert_str_eq(config.proxy_host, "proxy.example");
	cr_assert_eq(config.proxy_port, 3128);
	cr_assert_str_eq(secrets.proxy_user, "user");
	cr_assert_str_eq(secrets.proxy_password, "p@ss:w/rd");
	expect_taken("https_proxy=http://[::1]:8080");
	cr_assert_str_eq(config.proxy_host, "::1");
	expect_taken("HTTPS_PROXY=proxy.example");
	cr_assert_eq(config.proxy_port, 80);
	cr_assert_eq(read_vars("https_proxy=http://lower:1", "HTTPS_PROXY=http://upper:2", NULL), 0);
	cr_assert_str_eq(config.proxy_host, "upper");
}

Test(config, takes_a_blank_tier_for_none)
{
	expect_taken("SANDBOX_TIER=");
	cr_assert_str_eq(config.tier, "");
	expect_taken("SANDBOX_TIER= \t");
	cr_assert_str_eq(config.tier, "");
	expect_taken("SANDBOX_TIER=micro vm");
	cr_assert_str_eq(config.tier, "micro vm");
	expect_refused("SANDBOX_TIER=\xff");
}

/* They say that TLS was meant; without it the token would cross in the clear. */
Test(config, refuses_what_belongs_to_tls_without_it)
{
	static const char *const meant[] = {"RELAY_CA_FILE=/ca", "RELAY_SERVER_NAME=relay.example"};
	static const char *const off[] = {NULL, "RELAY_TLS=0", "RELAY_TLS=false", "RELAY_TLS="};

	for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
		for (size_t k = 0; k < sizeof meant / sizeof *meant; k++) {
			expect_refused_with(meant[k], off[i]);
			cr_assert(strstr(error.why, "RELAY_TLS"));
		}
		cr_assert_lt(read_vars("RELAY_CERT_FILE=/c", "RELAY_KEY_FILE=/k", off[i]), 0);
		cr_assert_str_eq(error.setting, "RELAY_CERT_FILE");
	}
	for (size_t k = 0; k < sizeof meant / sizeof *meant; k++)
		cr_assert_eq(read_vars(meant[k], "RELAY_TLS=1", NULL), 0, "%s", error.why);
	expect_taken("SSL_CERT_FILE=/ca");
}

Test(config, refuses_a_proxy_only_where_it_would_be_used)
{
	static const char *const covered[][2] = {
	    {"RELAY_ADDR=localhost:8443", "NO_PROXY="},
	    {"RELAY_ADDR=[::1]:8443", "NO_PROXY="},
	    {"RELAY_ADDR=relay.example:8443", "NO_PROXY=.internal,.example"},
	    {"RELAY_ADDR=relay.example:8443", "no_proxy=*"},
	    {"RELAY_ADDR=10.1.2.3:8443", "NO_PROXY=10.0.0.0/8"},
	};

	for (size_t i = 0; i < sizeof covered / sizeof *covered; i++) {
		cr_assert_eq(read_vars("HTTPS_PROXY=socks5://u:p@proxy:1080", covered[i][0], covered[i][1]),
			     0, "%s %s: %s", covered[i][0], covered[i][1], error.why);
		cr_assert_str_eq(config.proxy_host, "");
		cr_assert_str_eq(secrets.proxy_password, "");
	}
	cr_assert_lt(read_vars("RELAY_ADDR=relay.example:8443", "https_proxy=socks5://proxy:1080",
			       "NO_PROXY=relay.example:443"),
		     0);
	cr_assert_str_eq(error.setting, "https_proxy");
}

Test(config, takes_capability_names)
{
	expect_taken("SANDBOX_KEEP_CAPS=CAP_CHOWN, net_raw cap_sys_ptrace");
	cr_assert_eq(config.keep_caps,
		     DROP_CAP(CAP_CHOWN) | DROP_CAP(CAP_NET_RAW) | DROP_CAP(CAP_SYS_PTRACE));
}

Test(config, takes_the_words_of_ours)
{
	expect_taken("SANDBOX_TRUST=trusted");
	cr_assert(config.trusted);
	expect_taken("SANDBOX_BACKGROUND=kill");
	cr_assert(config.background_kill);
	expect_taken("SANDBOX_BACKGROUND=keep");
	cr_assert_not(config.background_kill);
	expect_taken("SANDBOX_KILLER=sweep");
	cr_assert_str_eq(config.killer, "sweep");
	expect_taken("SANDBOX_KILLER=landlock");
	cr_assert_str_eq(config.killer, "landlock");
	expect_taken("LOG_LEVEL=debug");
	cr_assert_eq(config.log_level, LOG_LEVEL_DEBUG);
	expect_taken("LOG_LEVEL=INFO");
	cr_assert_eq(config.log_level, LOG_LEVEL_INFO);
	expect_taken("LOG_LEVEL=Debug");
	cr_assert_eq(config.log_level, LOG_LEVEL_DEBUG);
	expect_taken("LOG_FORMAT=JSON");
	cr_assert_eq(config.log_format, LOG_FORMAT_JSON);
	expect_taken("LOG_FORMAT=json");
	cr_assert_eq(config.log_format, LOG_FORMAT_JSON);
	cr_assert_eq(read_vars("RELAY_SERVER_NAME=relay.example", "RELAY_TLS=1", NULL), 0);
	cr_assert_str_eq(config.server_name, "relay.example");
}

Test(config, never_echoes_a_secret)
{
	cr_assert_lt(read_vars("SANDBOX_TOKEN=s3cr3t\n\n", NULL, NULL), 0);
	cr_assert_null(strstr(error.why, "s3cr3t"));
	cr_assert_lt(read_vars("HTTPS_PROXY=http://u:s3cr3t@:1", "RELAY_ADDR=relay.example:1", NULL), 0);
	cr_assert_null(strstr(error.why, "s3cr3t"));
}

Test(config, maps_the_secrets_for_this_process_only)
{
	struct config_secrets *s = config_secrets_map();

	cr_assert(s);
	memcpy(s->token, "x", 2);
	cr_assert_eq(s->token[0], 'x');
}
