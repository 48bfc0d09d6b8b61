/* Nothing that holds a secret leaves a core, whatever limit it was started with and whatever kills it. */
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(core, .timeout = 60, .fini = stage_fini);

static char folder[FOLDER_PATH_MAX];

/* CHILD: as one of whom cores are wanted. */
static void want_cores(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) < 0)
		_exit(126);
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_CORE, &limit) < 0 || chdir(folder) < 0)
		_exit(126);
}

static unsigned cores_in(const char *path)
{
	DIR *d = opendir(path);
	unsigned count = 0;

	cr_assert(d);
	for (struct dirent *e; (e = readdir(d));)
		count += strncmp(e->d_name, "core", 4) == 0;
	closedir(d);
	return count;
}

/* Another program in the same place does leave one, or the test proves nothing. */
static void need_cores(void)
{
	char pattern[128] = "", made[FOLDER_PATH_MAX];
	int status;
	pid_t pid;

	folder_read("/proc/sys/kernel/core_pattern", pattern, sizeof pattern);
	if (geteuid() != 0 || strcmp(pattern, "core\n") != 0)
		cr_skip_test("core_pattern names no file here, or not root");
	pid = fork();
	if (pid == 0) {
		want_cores();
		signal(SIGABRT, SIG_DFL);
		raise(SIGABRT);
		_exit(1);
	}
	cr_assert(waitpid(pid, &status, 0) == pid);
	folder_join(made, folder, "core");
	if (!WCOREDUMP(status) || unlink(made) < 0)
		cr_skip_test("no cores here");
}

/* RLIMIT_CORE is 0, hard for netd; and given one by root (CAP_SYS_RESOURCE) they leave none all the same, for
 * they are not dumpable. */
static void give_limit(pid_t pid, bool hard_too)
{
	const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	char path[64], text[4096];
	char soft[32] = "", hard[32] = "";
	const char *line;

	cr_assert_gt(pid, 0);
	snprintf(path, sizeof path, "/proc/%d/limits", pid);
	cr_assert_gt(folder_read(path, text, sizeof text), 0);
	line = strstr(text, "Max core file size");
	cr_assert(line && sscanf(line, "Max core file size %31s %31s", soft, hard) == 2, "%s", text);
	cr_assert(strcmp(soft, "0") == 0 && (!hard_too || strcmp(hard, "0") == 0), "%d may leave a core",
		  pid);
	prlimit(pid, RLIMIT_CORE, &all, NULL);
}

static void end_by(struct stage *s, const char *name, int signal_number)
{
	pid_t pid = process_child(s->worker.pid, name);

	give_limit(pid, true);
	process_kill(pid, signal_number);
	cr_assert(process_wait_dead(s->relay, pid, STAGE_WAIT_MS));
}

Test(core, is_left_by_none_of_the_worker)
{
	static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
	struct stage *s = stage_prepare();
	unsigned before = cores_in("/");

	memcpy(folder, s->folder, sizeof folder);
	need_cores();
	worker_start_prepared(&s->worker, s->relay, WORKER_SETTINGS(), want_cores);
	stage_reattach(s);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		/* A frame resets the backoff. */
		stage_expect_end(stage_exec(s, "exit 4"), 4);
		end_by(s, "netd", signals[i]);
		stage_reattach(s);
	}
	stage_expect_end(stage_exec(s, "cd %s && kill -ABRT $$", s->folder), -1);
	/* These block all signals; only what they do themselves could kill them so. */
	give_limit(process_child(s->worker.pid, "slot"), false);
	give_limit(process_child(s->worker.pid, "warden"), false);
	give_limit(s->worker.pid, false);
	process_kill(s->worker.pid, SIGABRT);
	cr_assert(worker_wait_exit(&s->worker, STAGE_WAIT_MS));
	cr_assert(WIFSIGNALED(s->worker.wait_status) && !WCOREDUMP(s->worker.wait_status));
	cr_assert_eq(cores_in(folder), 0);
	cr_assert_eq(cores_in("/"), before);
	stage_leave(s);
}

/* Is text in the memory of that process from from to to? */
static bool holds(int mem, unsigned long from, unsigned long to, const char *text)
{
	static char bytes[1 << 16];
	size_t n = strlen(text);

	for (; from < to; from += sizeof bytes - n) {
		ssize_t got =
		    pread(mem, bytes, to - from < sizeof bytes ? to - from : sizeof bytes, (off_t)from);

		if (got > 0 && memmem(bytes, (size_t)got, text, n))
			return true;
	}
	return false;
}

/* The writable mappings of a process that hold text; those of them that neither a core nor a fork has, by
 * VmFlags of smaps: dd is MADV_DONTDUMP, dc MADV_DONTFORK. */
struct copies {
	unsigned all, hidden;
};

static struct copies copies_in(pid_t pid, const char *text)
{
	struct copies found = {0};
	unsigned long from = 0, to = 0;
	char path[64], line[512];
	FILE *maps;
	int mem;

	snprintf(path, sizeof path, "/proc/%d/smaps", pid);
	maps = fopen(path, "re");
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	if (!maps || mem < 0)
		cr_skip_test("the worker's memory may not be read");
	while (fgets(line, sizeof line, maps)) {
		unsigned long a, b;

		if (sscanf(line, "%lx-%lx ", &a, &b) == 2) {
			from = a;
			to = b;
		} else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " wr ") &&
			   holds(mem, from, to, text)) {
			found.all++;
			found.hidden += strstr(line, " dd ") && strstr(line, " dc ");
		}
	}
	fclose(maps);
	close(mem);
	return found;
}

/* What netd got is sent and wiped; execd keeps it for the next. */
Test(core, would_hold_no_token)
{
	char token[64], setting[80];
	struct copies found;
	struct stage *s;

	if (geteuid() != 0)
		cr_skip_test("not root");
	s = stage_prepare();
	snprintf(token, sizeof token, "tkn-%d-core", (int)getpid());
	snprintf(setting, sizeof setting, "SANDBOX_TOKEN=%s", token);
	stage_relay(s, &(struct relay_options){.token = token});
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "exit 4"), 4);
	found = copies_in(s->worker.pid, token);
	cr_assert_eq(found.all, 1);
	cr_assert_eq(found.hidden, 1);
	cr_assert_eq(copies_in(worker_netd(&s->worker), token).all, 0);
	stage_close(s);
}

/* One that asks for a core gets its own memory, which has held nothing of the worker's. */
Test(core, of_a_command_holds_no_token)
{
	char token[64], setting[80], path[FOLDER_PATH_MAX];
	struct stage *s = stage_prepare();
	struct stat st;
	int core;

	memcpy(folder, s->folder, sizeof folder);
	need_cores();
	snprintf(token, sizeof token, "tkn-%d-core", (int)getpid());
	snprintf(setting, sizeof setting, "SANDBOX_TOKEN=%s", token);
	stage_relay(s, &(struct relay_options){.token = token});
	worker_start_prepared(&s->worker, s->relay, WORKER_SETTINGS(setting), want_cores);
	stage_reattach(s);
	stage_expect_end(stage_exec(s, "cd %s && ulimit -c unlimited && kill -ABRT $$", s->folder), -1);
	folder_join(path, s->folder, "core");
	core = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(core >= 0 && fstat(core, &st) == 0 && st.st_size > 4096);
	cr_assert(holds(core, 0, (unsigned long)st.st_size, "ulimit -c unlimited"));
	cr_assert_not(holds(core, 0, (unsigned long)st.st_size, token));
	close(core);
	unlink(path);
	stage_close(s);
}
