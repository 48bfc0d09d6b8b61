/* The status file against fakes of what it tells of. */
#include "execd/status.h"

#include "common/clock.h"
#include "execd/config.h"
#include "execd/execs.h"
#include "execd/netd_proc.h"
#include "execd/shutdown.h"
#include "execd/slots.h"

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

static uint64_t now_ms = 5000;
static struct loop loop;
static struct execs_counters counters;
static struct netd_proc_view view = {.last_close = "none"};
static bool stopping;
static char folder[] = "/tmp/status-XXXXXX";
static struct config config;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

const struct execs_counters *execs_counters(void)
{
	return &counters;
}

const struct netd_proc_view *netd_proc_view(void)
{
	return &view;
}

const char *netd_proc_state_name(enum netd_proc_state state)
{
	return state == NETD_PROC_ATTACHED ? "attached" : "dialling";
}

bool shutdown_begun(void)
{
	return stopping;
}

unsigned slots_capacity(void)
{
	return 4;
}

unsigned slots_idle(void)
{
	return 3;
}

unsigned slots_minders(void)
{
	return 2;
}

static void setup(void)
{
	cr_assert(mkdtemp(folder));
	cr_assert_eq(loop_init(&loop), 0);
	snprintf(config.status_file, sizeof config.status_file, "%s/status", folder);
}

static void teardown(void)
{
	status_close();
	unlink(config.status_file);
	rmdir(folder);
}

TestSuite(status, .init = setup, .fini = teardown, .timeout = 20);

static const char *content(void)
{
	static char text[8192];
	int fd = open(config.status_file, O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);

	cr_assert(n >= 0);
	close(fd);
	text[n] = '\0';
	return text;
}

static void expect_line(const char *line)
{
	char whole[128];

	snprintf(whole, sizeof whole, "\n%s\n", line);
	cr_assert(strncmp(content(), whole + 1, strlen(whole + 1)) == 0 || strstr(content(), whole),
		  "%s not in:\n%s", line, content());
}

Test(status, tells_the_state)
{
	cr_assert_eq(status_open(&loop, &config, "sweep"), 0);
	view.state = NETD_PROC_ATTACHED;
	view.alive.held = 77;
	counters.received = 18446744073709551615u;
	status_update();
	expect_line("state=attached");
	expect_line("attached=1");
	expect_line("killer=sweep");
	expect_line("capacity=4");
	expect_line("idle=3");
	expect_line("minders=2");
	expect_line("received=18446744073709551615");
	expect_line("netd_held=77");
	view.state = NETD_PROC_DIALLING;
	status_update();
	expect_line("state=dialling");
	expect_line("attached=0");
	stopping = true;
	status_update();
	expect_line("state=stopping");
	status_close();
	expect_line("state=stopped");
}

Test(status, has_one_size_whatever_it_says)
{
	struct stat a, b;

	cr_assert_eq(status_open(&loop, &config, "landlock"), 0);
	status_update();
	cr_assert_eq(stat(config.status_file, &a), 0);
	memset(&counters, 0xff, sizeof counters);
	memset(&view.alive, 0xff, sizeof view.alive);
	status_update();
	cr_assert_eq(stat(config.status_file, &b), 0);
	cr_assert_eq(a.st_size, b.st_size);
	expect_line("cached=4294967295");
	cr_assert(strstr(content(), "\naudit_dropped="), "the last line is cut");
	cr_assert_eq(content()[b.st_size - 1], '\n');
}

Test(status, follows_counters_by_itself)
{
	cr_assert_eq(status_open(&loop, &config, "sweep"), 0);
	status_update();
	counters.started = 9;
	now_ms += 999;
	cr_assert_eq(loop_pass(&loop, 0), 0);
	expect_line("started=0");
	now_ms += 1;
	cr_assert_eq(loop_pass(&loop, 0), 0);
	expect_line("started=9");
	counters.started = 10;
	now_ms += 1000;
	cr_assert_eq(loop_pass(&loop, 0), 0);
	expect_line("started=10");
}

Test(status, replaces_what_was_there)
{
	int fd = open(config.status_file, O_WRONLY | O_CREAT, 0644);

	cr_assert_eq(ftruncate(fd, 100000), 0);
	close(fd);
	cr_assert_eq(status_open(&loop, &config, "sweep"), 0);
	status_update();
	cr_assert_lt(strlen(content()), 4096);
	expect_line("state=dialling");
}

Test(status, refuses_links_fifos_and_devices)
{
	cr_assert_eq(symlink("/tmp/elsewhere", config.status_file), 0);
	cr_assert_eq(status_open(&loop, &config, "sweep"), -ELOOP);
	unlink(config.status_file);
	cr_assert_eq(mkfifo(config.status_file, 0600), 0);
	cr_assert_lt(status_open(&loop, &config, "sweep"), 0);
	unlink(config.status_file);
	snprintf(config.status_file, sizeof config.status_file, "/dev/null");
	cr_assert_eq(status_open(&loop, &config, "sweep"), -EINVAL);
	snprintf(config.status_file, sizeof config.status_file, "%s/status", folder);
}

Test(status, without_a_setting_is_nothing)
{
	config.status_file[0] = '\0';
	cr_assert_eq(status_open(&loop, &config, "sweep"), 0);
	status_update();
	status_close();
}

/* RLIMIT_FSIZE stands for the disk. */
Test(status, survives_a_full_disk)
{
	struct rlimit none = {0, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(status_open(&loop, &config, "sweep"), 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	status_update();
	status_update();
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &all), 0);
	status_update();
	expect_line("state=dialling");
}
