/* A worker with a token of its own, commands that look for it, and one that hammers at /proc while netd
 * starts anew. Included once by each test program. */
#ifndef TESTS_POLICY_HAMMER_H
#define TESTS_POLICY_HAMMER_H

#include "tests/lib/outer.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char token[64];   /* in no other process and file */
static char pattern[64]; /* finds it, but not itself */

static inline struct stage *prepare(void)
{
	struct stage *s = stage_prepare();

	snprintf(token, sizeof token, "tkn-%d-z", (int)getpid());
	snprintf(pattern, sizeof pattern, "tkn-%d-[z]", (int)getpid());
	stage_relay(s, &(struct relay_options){.token = token});
	return s;
}

static inline void begin(struct stage *s, const char *setting, const char *more)
{
	worker_start(&s->worker, s->relay,
		     WORKER_SETTINGS(setting, more, "LOG_LEVEL=debug", "SANDBOX_AUDIT=log"));
	stage_reattach(s);
}

/* Whatever a command can read of processes and of the folders where secrets are put. */
static inline void search(struct stage *s)
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

static inline void expect_not_logged(struct stage *s)
{
	cr_assert(worker_said(&s->worker, "level=debug") || worker_said(&s->worker, "\"level\":\"debug\""),
		  "nothing was logged at debug");
	cr_assert(!worker_said(&s->worker, token));
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

static inline void restart_beside_a_hammer(int restarts, bool landlock)
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
	process_need_shown(s->worker.pid);
	stage_expect_end(stage_exec(s, "setsid python3 %s %s %d >%s/err 2>&1 &", path, s->folder,
				    (int)s->worker.pid, s->folder),
			 0);
	snprintf(seen, sizeof seen, "%s/seen", s->folder);
	for (int i = 0; i < restarts; i++) {
		/* Each netd was met, and each connection answers, so that the backoff stays short. */
		stage_wait_file(s, seen, i + 1);
		stage_expect_end(stage_exec(s, "true"), 0);
		process_kill(worker_netd(&s->worker), SIGKILL);
		stage_reattach(s);
	}
	stage_wait_file(s, seen, restarts + 1);
	search(s);
	stage_expect_end(
	    stage_exec(s, "touch %s/stop; cat %s/got >&2; [ ! -s %s/got ]", s->folder, s->folder, s->folder),
	    0);
	expect_not_logged(s);
	stage_close(s);
}

#endif
