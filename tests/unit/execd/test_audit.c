/* The audit trail: one line an exec's step, and nothing that blocks. */
#include "execd/audit.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/audit-XXXXXX";
static char path[64];
static const uint8_t fingerprint[32] = {0xab, 1, [31] = 0xff};

static void setup(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/trail", folder);
}

static void teardown(void)
{
	audit_close();
	unlink(path);
	rmdir(folder);
}

TestSuite(audit, .init = setup, .fini = teardown);

static const char *content(void)
{
	static char text[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);

	cr_assert(n >= 0);
	close(fd);
	text[n] = '\0';
	return text;
}

/* From the second field on: the first is a time. */
static const char *after_time(const char *line)
{
	const char *comma = strchr(line, ',');

	cr_assert_eq(strncmp(line, "{\"at_ms\":", 9), 0, "%s", line);
	cr_assert(comma);
	return comma + 1;
}

Test(audit, writes_json_lines)
{
	struct outcome exited = {.kind = OUTCOME_EXITED, .value = 3};
	char first[256];
	const char *text;

	cr_assert_eq(audit_open(path), 0);
	audit_exec("start", 18446744073709551615u, 10, fingerprint, NULL, 0);
	audit_exec("end", 7, 10, NULL, &exited, 42);
	text = content();
	cr_assert_str_eq(after_time(strchr(text, '\n') + 1),
			 "\"event\":\"end\",\"req_id\":7,\"command_len\":10,\"outcome\":\"exit\",\"value\":3,"
			 "\"ms\":42}\n");
	snprintf(first, sizeof first,
		 "\"event\":\"start\",\"req_id\":18446744073709551615,\"command_len\":10,"
		 "\"fingerprint\":\"ab01%058dff\",\"ms\":0}\n",
		 0);
	cr_assert_eq(strncmp(after_time(text), first, strlen(first)), 0, "%s", text);
	cr_assert_eq(audit_dropped(), 0);
}

Test(audit, appends)
{
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(audit_open(path), 0);
		audit_exec("start", 1, 1, NULL, NULL, 0);
	}
	cr_assert(strstr(strchr(content(), '\n') + 1, "start"));
}

Test(audit, file_is_for_its_owner)
{
	struct stat st;

	cr_assert_eq(audit_open(path), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
}

Test(audit, refuses_links_and_fifos)
{
	cr_assert_eq(symlink("/tmp/elsewhere", path), 0);
	cr_assert_eq(audit_open(path), -ELOOP);
	unlink(path);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_lt(audit_open(path), 0);
	cr_assert_eq(audit_open("/dev/null"), -EINVAL);
	cr_assert_eq(audit_open("/nonexistent/trail"), -ENOENT);
}

Test(audit, without_a_trail_says_nothing)
{
	cr_assert_eq(audit_open(""), 0);
	audit_exec("start", 1, 1, fingerprint, NULL, 0);
	cr_assert_eq(access(path, F_OK), -1);
}

/* RLIMIT_FSIZE stands for the disk: a write that would go beyond is cut, then fails with EFBIG. */
Test(audit, drops_and_counts_what_does_not_fit_and_starts_anew)
{
	struct rlimit few = {150, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
	const char *last;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(audit_open(path), 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &few), 0);
	for (int i = 0; i < 4; i++)
		audit_exec("start", 1, 1, NULL, NULL, 0);
	cr_assert_geq(audit_dropped(), 2);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &all), 0);
	audit_exec("end", 2, 1, NULL, NULL, 0);
	last = strrchr(content(), '{');
	cr_assert(last > content() && last[-1] == '\n');
	cr_assert(strstr(last, "\"end\""));
}
