/* What the processes of a running worker are made of, as others on the machine see them: no token, no way in,
 * no survivors. The relay here accepts and stays silent, so that a netd lives. */
#include "common/drop.h"
#include "tests/lib/peer.h"
#include "tests/lib/memory.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOKEN    "tkn-4f1c9a"
#define TOKEN_IS "SANDBOX_TOKEN=" TOKEN

static struct program p;
static char folder[] = "/tmp/processes-XXXXXX";
static char file[64];
static char address[64];
static int listener;

static void setup(void)
{
	uint16_t port = 0;

	cr_assert(mkdtemp(folder));
	snprintf(file, sizeof file, "%s/file", folder);
	listener = peer_listen(&port);
	snprintf(address, sizeof address, "RELAY_ADDR=127.0.0.1:%u", port);
}

static void teardown(void)
{
	program_kill(&p);
	unlink(file);
	rmdir(folder);
}

TestSuite(processes, .init = setup, .fini = teardown, .timeout = 60);

/* A netd has its credentials, and has come to the listener; it stays there, for nobody answers. */
static void wait_dialled(void)
{
	cr_assert(program_wait_said(&p, "msg=jailed", PROGRAM_WAIT_MS), "%s", p.said);
	peer_wait(listener, POLLIN);
	cr_assert_geq(accept4(listener, NULL, NULL, SOCK_CLOEXEC), 0);
}

/* Starts execd, below prefix (may be NULL), and waits until its netd is jailed. */
static void start(const char *program, const char *extra)
{
	const char *argv[] = {program, NULL};
	const char *environment[] = {"PATH=/usr/bin:/bin", "SANDBOX_ID=t", address, TOKEN_IS,
				     "LOG_LEVEL=debug",    extra,          NULL};

	program_start(&p, argv, environment, NULL);
	wait_dialled();
}

static void stop(void)
{
	int status;

	kill(p.pid, SIGTERM);
	status = program_wait_exit(&p, 5000);
	cr_assert_eq(status, 0, "status %x: %s", (unsigned)status, p.said);
}

static pid_t child(const char *name)
{
	pid_t pid = program_child(p.pid, name, PROGRAM_WAIT_MS);

	cr_assert_gt(pid, 0, "no %s", name);
	return pid;
}

/* Bytes that are not NUL; -EACCES where it may not be read. */
static long visible(pid_t pid, const char *what)
{
	char path[64], bytes[65536];
	long count = 0;
	ssize_t n;
	int fd;

	process_need_shown(pid);
	snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, bytes, sizeof bytes)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			count += bytes[i] != '\0';
	}
	if (n < 0)
		count = -errno;
	close(fd);
	return count;
}

Test(processes, show_no_environment)
{
	static const char *const names[] = {"netd", "warden", "slot"};
	long seen;

	start(program_built("execd"), NULL);
	seen = visible(p.pid, "environ");
	cr_assert(seen == 0 || seen == -EACCES, "execd shows %ld bytes", seen);
	for (size_t i = 0; i < 3; i++) {
		seen = visible(child(names[i]), "environ");
		cr_assert(seen == 0 || seen == -EACCES, "%s shows %ld bytes", names[i], seen);
	}
	stop();
}

Test(processes, hold_the_token_where_it_belongs_only)
{
	if (!drop_holds(CAP_SYS_PTRACE))
		cr_skip_test("needs CAP_SYS_PTRACE");
	start(program_built("execd"), NULL);
	cr_assert_eq(memory_count(p.pid, TOKEN), 1, "copies in execd: %d", memory_count(p.pid, TOKEN));
	cr_assert_eq(memory_count(child("warden"), TOKEN), 0);
	cr_assert_eq(memory_count(child("slot"), TOKEN), 0);
	stop();
	cr_assert_null(strstr(p.said, TOKEN));
}

Test(processes, hold_the_proxy_password_where_it_belongs_only)
{
	char proxy[96];

	if (!drop_holds(CAP_SYS_PTRACE))
		cr_skip_test("needs CAP_SYS_PTRACE");
	snprintf(proxy, sizeof proxy, "HTTPS_PROXY=http://usr-77b:pwd-77c@%s",
		 address + strlen("RELAY_ADDR="));
	program_start(&p, (const char *const[]){program_built("execd"), NULL},
		      (const char *const[]){"PATH=/usr/bin:/bin", proxy, NULL}, NULL);
	cr_assert_eq(memory_count(child("slot"), "pwd-77c"), 0);
	cr_assert_eq(memory_count(p.pid, "pwd-77c"), 1, "copies in execd: %d",
		     memory_count(p.pid, "pwd-77c"));
	stop();
	cr_assert_null(strstr(p.said, "pwd-77c"));
}

/* What a prctl(PR_SET_DUMPABLE, 0) shows outside: /proc/<pid> is root's. */
static bool is_shut(pid_t pid)
{
	char path[64];
	struct stat st;

	process_need_shown(pid);
	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	return stat(path, &st) == 0 && st.st_uid == 0;
}

Test(processes, cannot_be_looked_into)
{
	start(program_built("execd"), NULL);
	if (getuid() != 0) {
		cr_assert(is_shut(p.pid));
		cr_assert(is_shut(child("netd")));
		cr_assert(is_shut(child("slot")));
		cr_assert_eq(visible(child("netd"), "mem"), -EACCES);
	}
	for (int i = 0; i < 2; i++) {
		pid_t pid = i ? child("netd") : p.pid;

		cr_assert_str_eq(program_status(pid, "NoNewPrivs"), "1");
		cr_assert_str_eq(program_status(pid, "Seccomp"), "2");
	}
	stop();
}

Test(processes, have_the_capabilities_that_they_need_and_no_more)
{
	const uint64_t kept = DROP_CAP(CAP_SETUID) | DROP_CAP(CAP_SETGID) | DROP_CAP(CAP_KILL) |
			      DROP_CAP(CAP_SYS_RESOURCE) | DROP_CAP(CAP_SYS_NICE) | DROP_CAP(CAP_SETPCAP);
	uint64_t expected = kept & drop_permitted();
	bool root = drop_holds(CAP_SETPCAP);

	start(program_built("execd"), NULL);
	cr_assert_eq(strtoull(program_status(p.pid, "CapPrm"), NULL, 16), expected);
	cr_assert_eq(strtoull(program_status(p.pid, "CapEff"), NULL, 16), expected);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"netd", "warden", "slot"};
		pid_t pid = child(names[i]);

		if (i == 1)
			continue;
		cr_assert_eq(strtoull(program_status(pid, "CapPrm"), NULL, 16), 0, "%s", names[i]);
		if (root)
			cr_assert_eq(strtoull(program_status(pid, "CapBnd"), NULL, 16), 0, "%s", names[i]);
	}
	stop();
}

Test(processes, run_netd_as_nobody_when_root)
{
	char expected[64];

	if (!drop_holds(CAP_SETUID))
		cr_skip_test("needs root");
	start(program_built("execd"), NULL);
	cr_assert_str_eq(program_status(child("netd"), "Uid"), "65534\t65534\t65534\t65534");
	cr_assert_str_eq(program_status(p.pid, "Uid"), "0\t0\t0\t0");
	stop();
	start(program_built("execd"), "NETD_USER=64123:64124");
	snprintf(expected, sizeof expected, "%d\t%d\t%d\t%d", 64123, 64123, 64123, 64123);
	cr_assert_str_eq(program_status(child("netd"), "Uid"), expected);
	cr_assert_str_eq(program_status(child("netd"), "Gid"), "64124\t64124\t64124\t64124");
	cr_assert_str_eq(program_status(child("netd"), "Groups"), "");
	stop();
}

/* /proc/<pid>/exe of a netd; "" where it may not be read. */
static const char *exe_of(pid_t pid)
{
	static char target[256];
	char path[64];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	n = readlink(path, target, sizeof target - 1);
	target[n > 0 ? n : 0] = '\0';
	return target;
}

Test(processes, run_netd_from_a_sealed_copy)
{
	struct stat st;
	char path[64];

	if (!drop_holds(CAP_SYS_PTRACE))
		cr_skip_test("needs CAP_SYS_PTRACE");
	start(program_built("execd"), NULL);
	cr_assert_str_eq(exe_of(child("netd")), "/memfd:netd (deleted)");
	snprintf(path, sizeof path, "/proc/%d/exe", child("netd"));
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0111);
	stop();
}

/* Copies a program into the folder. */
static void copy(const char *from, const char *name, mode_t mode, char path[96])
{
	char bytes[65536];
	ssize_t n;
	int in, out;

	snprintf(path, 96, "%s/%s", folder, name);
	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	cr_assert(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof bytes)) > 0)
		cr_assert_eq(write(out, bytes, (size_t)n), n);
	cr_assert_eq(fchmod(out, mode), 0);
	close(in);
	close(out);
}

/* A file that a tenant may write later changes nothing. */
Test(processes, do_not_look_at_netds_file_again)
{
	char execd[96], netd[96];
	int fd;

	copy(program_built("execd"), "execd", 0755, execd);
	copy(program_built("netd"), "netd", 0755, netd);
	start(execd, NULL);
	fd = open(netd, O_WRONLY | O_TRUNC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, "#!/bin/true\n", 12), 12);
	close(fd);
	p.used = 0;
	p.said[0] = '\0';
	kill(child("netd"), SIGKILL);
	wait_dialled();
	stop();
	unlink(execd);
	unlink(netd);
}

/* A netd that may be executed but not read is executed by path: it is shut to its like all the same. */
Test(processes, run_a_netd_that_cannot_be_read)
{
	char execd[96], netd[96];

	if (getuid() == 0)
		cr_skip_test("is for the unprivileged run");
	copy(program_built("execd"), "execd", 0755, execd);
	copy(program_built("netd"), "netd", 0111, netd);
	start(execd, NULL);
	cr_assert(is_shut(child("netd")));
	stop();
	unlink(execd);
	unlink(netd);
}

Test(processes, without_netd_do_not_start)
{
	char execd[96];
	int status;

	copy(program_built("execd"), "execd", 0755, execd);
	status = program_run(&p, (const char *const[]){execd, NULL},
			     (const char *const[]){"PATH=/usr/bin:/bin", NULL}, NULL);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%x", (unsigned)status);
	cr_assert(strstr(p.said, "netd cannot be found"), "%s", p.said);
	unlink(execd);
}

/* Before its first instruction of ours: nothing to find in it, nothing it could use, and it dies with execd.
 */
Test(processes, start_netd_with_nothing_but_its_channel)
{
	static const char *const said[] = {
	    "\ndumpable 0\n",    "\nno_new_privs 1\n",     "\ndeath signal 9\n", "\ncore 0\n",
	    "\nown session 1\n", "\narguments 1 netd\n",   "\nenvironment 0\n",  "\nfolder /\n",
	    "\nodd signals 0\n", "\ndescriptors 0 1 2 3\n"};
	char execd[96], netd[96];

	copy(program_built("execd"), "execd", 0755, execd);
	copy(program_built("tests/fake_netd"), "netd", 0755, netd);
	program_start(&p, (const char *const[]){execd, NULL},
		      (const char *const[]){"PATH=/usr/bin:/bin", "SANDBOX_ID=t", TOKEN_IS, address, NULL},
		      NULL);
	cr_assert(program_wait_said(&p, "msg=\"netd failed\"", PROGRAM_WAIT_MS), "%s", p.said);
	cr_assert(strstr(p.said, "exit_code=3"));
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		cr_assert(strstr(p.said, said[i]), "no %s in: %s", said[i], p.said);
	stop();
	unlink(execd);
	unlink(netd);
}

Test(processes, come_back_when_netd_is_killed_or_stopped)
{
	pid_t before;

	start(program_built("execd"), NULL);
	before = child("netd");
	p.used = 0;
	p.said[0] = '\0';
	kill(before, SIGKILL);
	cr_assert(program_wait_said(&p, "backoff_ms=", PROGRAM_WAIT_MS));
	wait_dialled();
	cr_assert_neq(child("netd"), before);
	p.used = 0;
	p.said[0] = '\0';
	kill(child("netd"), SIGSTOP);
	wait_dialled();
	stop();
}

/* Bad system calls of a taken-over netd end it; execd says so. SIGSYS sent by hand looks the same to a
 * parent. */
Test(processes, say_when_the_policy_killed_netd)
{
	start(program_built("execd"), NULL);
	kill(child("netd"), SIGSYS);
	cr_assert(program_wait_said(&p, "SIGSYS", PROGRAM_WAIT_MS), "%s", p.said);
	stop();
}

Test(processes, all_end_when_execd_is_killed)
{
	pid_t all[3];

	start(program_built("execd"), NULL);
	all[0] = child("netd");
	all[1] = child("warden");
	all[2] = child("slot");
	kill(p.pid, SIGKILL);
	for (int i = 0; i < 3; i++)
		cr_assert(process_wait_dead(NULL, all[i], 5000), "%d", i);
}

Test(processes, all_end_by_sigterm_and_by_sigint)
{
	static const int signals[] = {SIGTERM, SIGINT};

	for (int i = 0; i < 2; i++) {
		pid_t netd, warden, slot;

		start(program_built("execd"), NULL);
		netd = child("netd");
		warden = child("warden");
		slot = child("slot");
		kill(p.pid, signals[i]);
		cr_assert_eq(program_wait_exit(&p, 5000), 0);
		cr_assert(process_wait_dead(NULL, netd, 0));
		cr_assert(process_wait_dead(NULL, warden, 0));
		cr_assert(process_wait_dead(NULL, slot, 0));
	}
}

/* The status file is written at most once in a while. */
static void wait_status(int fd, const char *wanted, char *text, size_t size)
{
	ssize_t n = 0;

	for (unsigned tries = 0; tries < PROGRAM_WAIT_MS / 20; tries++) {
		n = pread(fd, text, size - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		if (strstr(text, wanted))
			return;
		usleep(20000);
	}
	cr_assert_fail("%s does not come: %s", wanted, text);
}

Test(processes, tell_their_state_in_the_status_file)
{
	char setting[96], text[4096];
	int fd;

	snprintf(setting, sizeof setting, "STATUS_FILE=%s", file);
	start(program_built("execd"), setting);
	fd = open(file, O_RDONLY);
	cr_assert_geq(fd, 0);
	wait_status(fd, "state=dialling\nattached=0\n", text, sizeof text);
	cr_assert(strstr(text, "\ncapacity=4\n"));
	stop();
	wait_status(fd, "state=stopped\n", text, sizeof text);
	close(fd);
}
