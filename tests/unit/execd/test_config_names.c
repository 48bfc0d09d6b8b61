/* Which variables are meant for us, and what a misspelt one was meant to be. */
#include "execd/config_names.h"

#include "execd/config.h"

#include <criterion/criterion.h>
#include <string.h>

Test(config_names, find_the_nearest_setting)
{
	static const char *const cases[][2] = {
	    {"SANDBOX_TOKN", "SANDBOX_TOKEN"},  {"SANDBOX_TOKEN_FIEL", "SANDBOX_TOKEN_FILE"},
	    {"sandbox_token", "SANDBOX_TOKEN"}, {"SANBOX_TOKEN", "SANDBOX_TOKEN"},
	    {"REALY_TLS", "RELAY_TLS"},         {"RELAY_ADDRESS", "RELAY_ADDR"},
	    {"RELAY_CA", "RELAY_CA_FILE"},      {"RELAY_CERT", "RELAY_CERT_FILE"},
	    {"RELAY_CAFILE", "RELAY_CA_FILE"},  {"WORKER_MAX_CONCURENT", "WORKER_MAX_CONCURRENT"},
	    {"WORKER_DRAIN", "WORKER_DRAIN_S"}, {"NETDUSER", "NETD_USER"},
	    {"SANDBOX_USERS", "SANDBOX_USER"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		cr_assert_str_eq(config_names_nearest(cases[i][0], strlen(cases[i][0])), cases[i][1], "%s",
				 cases[i][0]);
}

Test(config_names, know_what_is_meant_for_us)
{
	static const char *const yes[] = {
	    "SANDBOX_TOKN",   "Sandbox_Token", "SANDBOX_",      "RELAY_X",      "WORKER_X",
	    "netd_x",         "SANBOX_TOKEN",  "SADNBOX_TOKEN", "SANDBOXTOKEN", "ANDBOX_TOKEN_FILES",
	    "WOKRER_DRAIN_S", "RELY_TLS",
	};
	static const char *const no[] = {
	    "",
	    "SANDBOX",
	    "RELAY",
	    "SANDBX_TOKNE_",
	    "MY_SANDBOX_TOKEN",
	    "LOGLEVEL",
	    "LOG_LEVELS",
	    "HTTP_PROXY",
	    "HEARTBEAT_SECONDS",
	    "STATE_FILE",
	    "NEW_USER",
	    "TOKEN",
	    "RELIES_TLS",
	    "PATH",
	};

	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
		cr_assert(config_names_is_ours(yes[i], strlen(yes[i])), "%s", yes[i]);
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		cr_assert_not(config_names_is_ours(no[i], strlen(no[i])), "%s", no[i]);
}

Test(config_names, may_be_of_any_length)
{
	char name[300];

	memset(name, 'X', sizeof name);
	for (size_t n = 0; n < sizeof name; n++) {
		cr_assert_not(config_names_is_ours(name, n));
		cr_assert_not_null(config_names_nearest(name, n));
	}
	memcpy(name, "SANDBOX_", 8);
	cr_assert(config_names_is_ours(name, sizeof name));
}
