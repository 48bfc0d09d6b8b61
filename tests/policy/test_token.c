/* The token never reaches a command. */
#include "tests/lib/outer.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(token, .timeout = 90, .fini = stage_fini);

#define RESTARTS 6

static char token[64];   /* in no other process and file */
static char pattern[64]; /* finds it, but not itself */

static struct stage *prepare(void)
{
	struct stage *s = stage_prepare();

	snprintf(token, sizeof token, "tkn-%d-z", (int)getpid());
	snprintf(pattern, sizeof pattern, "tkn-%d-[z]", (int)getpid());
	stage_relay(s, &(struct relay_options){.token = token});
	return s;
}

static void begin(struct stage *s, const char *setting, const char *more)
{
	worker_start(&s->worker, s->relay,
		     WORKER_SETTINGS(setting, more, "LOG_LEVEL=debug", "SANDBOX_AUDIT=log"));
	stage_reattach(s);
}

/* Whatever a command can read of processes and of the folders where secrets are put. */
static void search(struct stage *s)
{
	struct relay_exec *exec = stage_exec(
	    s,
	    "p='%s'; { env; set; ulimit -c; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; "
	    "for f in /proc/[0-9]*/fd/*; do [ -f $f ] && head -c 100000 $f; done; "
	    "find /run /tmp /dev/shm -maxdepth 2 -type f -size -64k -newer /proc/%d/stat -exec cat {} +; "
	    "} 2>/dev/null | grep -ac \"$p\"; find / -maxdepth 1 -name 'core*' | wc -l",
	    pattern, s->worker.pid);

	cr_assert(relay_wait_end(exec, STAGE_WAIT_MS)->kind == RELAY_END);
	stage_expect_out(exec, "0\n0\n");
}

static void expect_not_logged(struct stage *s)
{
	cr_assert(worker_said(&s->worker, "level=debug"), "nothing was logged at debug");
	cr_assert(!worker_said(&s->worker, token));
}

Test(token, of_the_environment_is_found_nowhere)
{
	struct stage *s = prepare();
	char setting[96];

	snprintf(setting, sizeof setting, "SANDBOX_TOKEN=%s", token);
	begin(s, setting, "SANDBOX_BACKGROUND=keep");
	search(s);
	expect_not_logged(s);
	stage_close(s);
}

static void put_token(struct stage *s, char path[FOLDER_PATH_MAX + 16])
{
	int fd;

	snprintf(path, FOLDER_PATH_MAX + 16, "%s/token", s->folder);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && write(fd, token, strlen(token)) == (ssize_t)strlen(token));
	close(fd);
}

Test(token, of_a_file_is_hidden_by_another_user)
{
	struct stage *s = prepare();
	char path[FOLDER_PATH_MAX + 16], setting[FOLDER_PATH_MAX + 48];

	if (geteuid() != 0)
		cr_skip_test("not root");
	put_token(s, path);
	snprintf(setting, sizeof setting, "SANDBOX_TOKEN_FILE=%s", path);
	worker_start(
	    &s->worker, s->relay,
	    WORKER_SETTINGS(setting, "SANDBOX_TOKEN=", "SANDBOX_USER=65532:65532", "LOG_LEVEL=debug"));
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "cat %s", path), 1);
	search(s);
	cr_assert(!worker_said(&s->worker, "can be read by commands"));
	expect_not_logged(s);
	stage_close(s);
}

Test(token, of_a_file_that_cannot_be_hidden_is_warned_of_by_name)
{
	struct stage *s = prepare();
	char path[FOLDER_PATH_MAX + 16], setting[FOLDER_PATH_MAX + 48];

	put_token(s, path);
	snprintf(setting, sizeof setting, "SANDBOX_TOKEN_FILE=%s", path);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting, "SANDBOX_TOKEN=", "LOG_LEVEL=debug"));
	stage_reattach(s);
	cr_assert(worker_said(&s->worker, "SANDBOX_TOKEN_FILE can be read by commands"));
	cr_assert(worker_said(&s->worker, path));
	expect_not_logged(s);
	stage_close(s);
}

/* Looks for processes of ours that let themselves be opened, as fast as it can: netd between fork, execve and
 * its jail above all. What it finds goes to got, whom it met to seen. Only this worker's count, execd and its
 * children: tests run side by side, and an execd that another test is starting is open until its main shuts
 * it. */
static const char hammer[] =
    "import os, sys\n"
    "folder, execd, names = sys.argv[1], sys.argv[2], ('execd', 'netd', 'slot', 'warden', 'memfd:netd')\n"
    "def read(p, n=65536):\n"
    "    fd = os.open(p, os.O_RDONLY | os.O_NONBLOCK)\n"
    "    try: return os.read(fd, n)\n"
    "    finally: os.close(fd)\n"
    "seen, got, me = set(), open(folder + '/got', 'ab', 0), str(os.getpid())\n"
    "out = open(folder + '/seen', 'ab', 0)\n"
    "while not os.path.exists(folder + '/stop'):\n"
    "    for p in os.listdir('/proc'):\n"
    "        if not p.isdigit() or p == me: continue\n"
    "        d = '/proc/' + p\n"
    "        for f in ('environ', 'maps', 'mem', 'fd'):\n"
    "            try:\n"
    "                if f == 'mem': os.close(os.open(d + '/mem', os.O_RDONLY)); hit = True\n"
    "                elif f == 'fd': hit = bool(os.readlink(d + '/fd/2'))\n"
    "                else: hit = bool(read(d + '/' + f))\n"
    "            except OSError: continue\n"
    "            try: name = read(d + '/comm').decode().strip()\n"
    "            except OSError: continue\n"
    "            try: parent = read(d + '/stat').decode().rsplit(')', 1)[1].split()[1]\n"
    "            except OSError: continue\n"
    "            if hit and name in names and execd in (p, parent):\n"
    "                got.write(('%s of %s %s\\n' % (f, name, p)).encode())\n"
    "        try: name = read(d + '/comm').decode().strip()\n"
    "        except OSError: continue\n"
    "        if name == 'netd' and p not in seen: seen.add(p); out.write(b'x')\n";

static void restart_beside_a_hammer(bool landlock)
{
	struct stage *s = prepare();
	char setting[96], path[FOLDER_PATH_MAX + 16], seen[FOLDER_PATH_MAX + 16];
	int fd;

	if (!landlock)
		outer_no_landlock();
	snprintf(path, sizeof path, "%s/hammer.py", s->folder);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	cr_assert(fd >= 0 && write(fd, hammer, sizeof hammer - 1) == (ssize_t)sizeof hammer - 1);
	close(fd);
	snprintf(setting, sizeof setting, "SANDBOX_TOKEN=%s", token);
	begin(s, setting, "SANDBOX_BACKGROUND=keep");
	stage_expect_end(stage_exec(s, "setsid python3 %s %s %d >%s/err 2>&1 &", path, s->folder,
				    (int)s->worker.pid, s->folder),
			 0);
	snprintf(seen, sizeof seen, "%s/seen", s->folder);
	for (int i = 0; i < RESTARTS; i++) {
		/* Each netd was met, and each connection answers, so that the backoff stays short. */
		stage_wait_file(s, seen, i + 1);
		stage_expect_end(stage_exec(s, "true"), 0);
		process_kill(worker_netd(&s->worker), SIGKILL);
		stage_reattach(s);
	}
	stage_wait_file(s, seen, RESTARTS + 1);
	search(s);
	stage_expect_end(
	    stage_exec(s, "touch %s/stop; cat %s/got >&2; [ ! -s %s/got ]", s->folder, s->folder, s->folder),
	    0);
	expect_not_logged(s);
	stage_close(s);
}

Test(token, is_safe_while_netd_starts_beside_what_was_kept)
{
	if (access("/usr/bin/python3", X_OK) < 0)
		cr_skip_test("no python3");
	restart_beside_a_hammer(true);
}

/* Only their being non-dumpable keeps them shut here. */
Test(token, is_safe_while_netd_starts_without_landlock)
{
	if (access("/usr/bin/python3", X_OK) < 0)
		cr_skip_test("no python3");
	restart_beside_a_hammer(false);
}
