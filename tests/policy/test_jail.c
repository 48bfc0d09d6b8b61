/* netd's jail for real, in children: what it may still do, what it is refused, and how a wrong call is told.
 */
#include "netd/jail.h"
#include "common/landlock.h"
#include "common/log.h"
#include "policy/policy.h"
#include "tests/lib/bound.h"
#include "tests/lib/process.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_MS 20000

static struct settings settings;

/* A body's answers beside an errno. */
#define DONE       0
#define NOT_JAILED 200

struct result {
	int status;
	char log[4096];
};

/* Runs body in a jailed child; what it logged and how it ended. */
static struct result jailed(int (*body)(void))
{
	struct result result = {.status = -1};
	struct pollfd p;
	size_t used = 0;
	ssize_t n;
	int fds[2];
	pid_t pid;

	cr_assert(pipe2(fds, O_CLOEXEC) == 0);
	pid = bound_fork();
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		log_init("netd", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
		_exit(jail_enter(&settings) == 0 ? body() : NOT_JAILED);
	}
	close(fds[1]);
	p = (struct pollfd){.fd = fds[0], .events = POLLIN};
	while (used < sizeof result.log - 1) {
		if (poll(&p, 1, DEADLINE_MS) != 1) {
			kill(pid, SIGKILL);
			break;
		}
		n = read(fds[0], result.log + used, sizeof result.log - 1 - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	close(fds[0]);
	waitpid(pid, &result.status, 0);
	return result;
}

static void expect_exit(int (*body)(void), int code)
{
	struct result r = jailed(body);

	cr_assert(WIFEXITED(r.status), "status %#x: %s", r.status, r.log);
	cr_assert(WEXITSTATUS(r.status) == code, "exit %d (%s), not %d: %s", WEXITSTATUS(r.status),
		  strerror(WEXITSTATUS(r.status)), code, r.log);
}

/* Dies of SIGSYS, and the log names the call. */
static void expect_trap(int (*body)(void), const char *call)
{
	struct result r = jailed(body);
	char wanted[64];

	snprintf(wanted, sizeof wanted, " call=%s ", call);
	cr_assert(WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGSYS, "%s: status %#x: %s", call, r.status,
		  r.log);
	cr_assert(strstr(r.log, wanted), "no '%s' in: %s", wanted, r.log);
}

/* Dies of SIGSYS without a word. */
static void expect_kill(int (*body)(void))
{
	struct result r = jailed(body);

	cr_assert(WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGSYS, "status %#x: %s", r.status, r.log);
	cr_assert(!strstr(r.log, "call="), "%s", r.log);
}

static void set_up(void)
{
	memset(&settings, 0, sizeof settings);
	settings.relay_port = 8443;
	settings.capacity = 4;
	settings.ca_fd = settings.cert_fd = settings.key_fd = -1;
}

TestSuite(jail, .init = set_up, .timeout = 60);

/* --- state --- */

static int do_nothing(void)
{
	return DONE;
}

Test(jail, says_what_is_in_force)
{
	struct result r = jailed(do_nothing);

	cr_assert(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0, "status %#x: %s", r.status, r.log);
	cr_assert(strstr(r.log, "netd level=info msg=jailed landlock_abi="), "%s", r.log);
}

/* From outside: no capability, no_new_privs, one filter, in the kernel's words. */
static int fds_ready[2];
static int wait_for_end(void)
{
	char c = 1;

	(void)!write(fds_ready[1], &c, 1);
	return poll(NULL, 0, DEADLINE_MS);
}

static void expect_line(const char *text, const char *name, const char *value)
{
	const char *at = strstr(text, name);

	cr_assert(at, "no %s", name);
	at += strlen(name);
	at += strspn(at, " \t");
	cr_assert(strncmp(at, value, strlen(value)) == 0 && at[strlen(value)] == '\n', "%s %.20s, not %s",
		  name, at, value);
}

Test(jail, leaves_no_capability_and_no_core)
{
	char path[64], text[8192];
	struct rlimit core, files;
	struct stat st;
	ssize_t n;
	pid_t pid;
	int fd;

	cr_assert(pipe2(fds_ready, O_CLOEXEC) == 0);
	pid = bound_fork();
	if (pid == 0) {
		_exit(jail_enter(&settings) == 0 ? wait_for_end() : NOT_JAILED);
	}
	cr_assert(poll(&(struct pollfd){.fd = fds_ready[0], .events = POLLIN}, 1, DEADLINE_MS) == 1);
	process_need_shown(pid);
	/* Not dumpable: the files of its folder are root's. */
	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	cr_assert(stat(path, &st) == 0 && st.st_uid == 0);
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	fd = open(path, O_RDONLY);
	n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	prlimit(pid, RLIMIT_CORE, NULL, &core);
	prlimit(pid, RLIMIT_NOFILE, NULL, &files);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	expect_line(text, "\nCapInh:", "0000000000000000");
	expect_line(text, "\nCapPrm:", "0000000000000000");
	expect_line(text, "\nCapEff:", "0000000000000000");
	expect_line(text, "\nCapAmb:", "0000000000000000");
	expect_line(text, "\nNoNewPrivs:", "1");
	expect_line(text, "\nSeccomp:", "2");
	if (getuid() != 0)
		return; /* prlimit asks for the right to trace */
	cr_assert_eq(core.rlim_max, 0);
	cr_assert_eq(files.rlim_cur, 64 + 3 * 4);
}

/* --- what netd does all day --- */

static int inputs[2], epfd;

static int work(void)
{
	char buf[16];
	int waiting = 0, one = 1, s;
	struct epoll_event e = {.events = EPOLLIN};
	void *memory;

	if (epoll_ctl(epfd, EPOLL_CTL_ADD, inputs[0], &e) < 0 || epoll_wait(epfd, &e, 1, 1000) != 1)
		return 1;
	if (ioctl(inputs[0], FIONREAD, &waiting) < 0 || waiting != 3 || read(inputs[0], buf, 3) != 3)
		return 2;
	if (fcntl(inputs[0], F_SETFL, O_NONBLOCK) < 0 || (fcntl(inputs[0], F_GETFL) & O_NONBLOCK) == 0)
		return 3;
	s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s < 0 || setsockopt(s, IPPROTO_TCP, 1, &one, sizeof one) < 0 || ioctl(s, SIOCOUTQ, &waiting) < 0)
		return 4;
	close(s);
	s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return 5;
	memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || munmap(memory, 1 << 20) < 0)
		return 6;
	memory = malloc(64 << 20);
	free(memory);
	return DONE;
}

Test(jail, lets_netd_work)
{
	epfd = epoll_create1(EPOLL_CLOEXEC);
	cr_assert(epfd >= 0 && pipe2(inputs, O_CLOEXEC) == 0);
	cr_assert(write(inputs[1], "abc", 3) == 3);
	expect_exit(work, DONE);
}

static int wait_long(void)
{
	return poll(NULL, 0, 400) == 0 ? DONE : errno;
}

/* What a stopped wait makes the kernel call is listed too. */
Test(jail, goes_on_after_a_stop)
{
	int status, fds[2];
	pid_t pid;
	char c;

	cr_assert(pipe2(fds, O_CLOEXEC) == 0);
	pid = bound_fork();
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		_exit(jail_enter(&settings) == 0 ? wait_long() : NOT_JAILED);
	}
	cr_assert(read(fds[0], &c, 1) == 1); /* the log's line: it is jailed */
	for (int i = 0; i < 5; i++) {
		kill(pid, SIGSTOP);
		cr_assert(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status), "status %#x",
			  status);
		kill(pid, SIGCONT);
	}
	cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == DONE,
		  "status %#x", status);
}

/* --- Landlock --- */

static uint16_t port;

static int dial(void)
{
	struct sockaddr_in to = {
	    .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0);

	return s >= 0 && connect(s, (struct sockaddr *)&to, sizeof to) == 0 ? DONE : errno;
}

Test(jail, connects_to_the_ports_of_its_settings_only)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (landlock_abi() < LANDLOCK_ABI_PORTS)
		cr_skip("no Landlock with ports");
	cr_assert(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 8) == 0);
	cr_assert(getsockname(listener, (struct sockaddr *)&at, &size) == 0);
	port = ntohs(at.sin_port);
	expect_exit(dial, EACCES);
	settings.relay_port = port;
	expect_exit(dial, DONE);
	settings.relay_port = 8443;
	settings.proxy_port = port;
	expect_exit(dial, EACCES); /* a port without a proxy */
	strcpy(settings.proxy_host, "proxy");
	expect_exit(dial, DONE);
}

/* --- refused calls are named --- */

#define BODY(name, expression)                                                                               \
	static int name(void)                                                                                \
	{                                                                                                    \
		return (expression) < 0 ? errno : DONE;                                                      \
	}

BODY(call_fork, syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))
BODY(call_sendmsg, sendmsg(1, &(struct msghdr){0}, 0))
BODY(call_open, open("/etc/passwd", O_RDONLY))
BODY(call_sctp, socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP))
BODY(call_ip_option, setsockopt(0, IPPROTO_IP, 1, "", 1))
BODY(call_filter_option, setsockopt(0, SOL_SOCKET, SO_ATTACH_FILTER, "", 1))
BODY(call_zerocopy, setsockopt(0, SOL_SOCKET, SO_ZEROCOPY, "", 1))
BODY(call_ulp, setsockopt(0, IPPROTO_TCP, TCP_ULP, "tls", 3))
BODY(call_md5, setsockopt(0, IPPROTO_TCP, TCP_MD5SIG, "", 1))
BODY(call_epoll, epoll_create1(0))
BODY(call_socket_unix, socket(AF_UNIX, SOCK_STREAM, 0))
BODY(call_socket_raw, socket(AF_INET, SOCK_RAW, 1))
BODY(call_bind, bind(0, NULL, 0))
BODY(call_listen, listen(0, 1))
BODY(call_async, fcntl(0, F_SETFL, O_ASYNC))
BODY(call_owner, fcntl(0, F_SETOWN, 1))
BODY(call_fioasync, ioctl(0, FIOASYNC, NULL))
BODY(call_tiocsti, ioctl(0, TIOCSTI, ""))
BODY(call_kill, syscall(SYS_kill, 1, 0))
BODY(call_tgkill, syscall(SYS_tgkill, 1, 1, SIGKILL))
BODY(call_exec_memory, (long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
BODY(call_mprotect, mprotect(NULL, 4096, PROT_EXEC))
BODY(call_ptrace, syscall(SYS_ptrace, 0, 0, 0, 0))
BODY(call_sigaction, sigaction(SIGSYS, &(struct sigaction){.sa_handler = SIG_IGN}, NULL))
BODY(call_mask, syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, NULL, 8))
BODY(call_dumpable, prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
BODY(call_unknown, syscall(4000))

Test(jail, names_the_call_that_ended_it)
{
	static const struct {
		int (*body)(void);
		const char *call;
	} traps[] = {
	    {call_fork, "clone"},          {call_sendmsg, "sendmsg"},      {call_open, "openat"},
	    {call_sctp, "socket"},         {call_ip_option, "setsockopt"}, {call_filter_option, "setsockopt"},
	    {call_zerocopy, "setsockopt"}, {call_ulp, "setsockopt"},       {call_md5, "setsockopt"},
	    {call_epoll, "epoll_create1"}, {call_socket_unix, "socket"},   {call_socket_raw, "socket"},
	    {call_bind, "bind"},           {call_listen, "listen"},        {call_async, "fcntl"},
	    {call_owner, "fcntl"},         {call_fioasync, "ioctl"},       {call_tiocsti, "ioctl"},
	    {call_kill, "kill"},           {call_tgkill, "tgkill"},        {call_exec_memory, "mmap"},
	    {call_mprotect, "mprotect"},   {call_ptrace, "ptrace"},        {call_sigaction, "rt_sigaction"},
	    {call_mask, "rt_sigprocmask"}, {call_dumpable, "prctl"},       {call_unknown, "unknown"},
	};

	for (size_t i = 0; i < sizeof traps / sizeof *traps; i++)
		expect_trap(traps[i].body, traps[i].call);
}

static int do_abort(void)
{
	abort();
}

Test(jail, names_an_abort)
{
	expect_trap(do_abort, "tgkill");
}

BODY(call_execve, syscall(SYS_execve, "/bin/sh", NULL, NULL))
BODY(call_execveat, syscall(SYS_execveat, AT_FDCWD, "/bin/sh", NULL, NULL, 0))
#if defined(__x86_64__)
BODY(call_x32, syscall(0x40000000 | SYS_read, 0, NULL, 0))
#endif

Test(jail, dies_at_once_of_what_only_an_attacker_calls)
{
	expect_kill(call_execve);
	expect_kill(call_execveat);
#if defined(__x86_64__)
	expect_kill(call_x32);
#endif
}

/* A log that nobody reads must not keep it alive. */
static int full_pipe(void)
{
	char junk[4096];

	memset(junk, 'x', sizeof junk);
	while (write(STDERR_FILENO, junk, sizeof junk) > 0)
		;
	return call_fork();
}

Test(jail, dies_though_its_log_is_full)
{
	int fds[2], status;
	pid_t pid;

	cr_assert(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
	pid = bound_fork();
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		_exit(jail_enter(&settings) == 0 ? full_pipe() : NOT_JAILED);
	}
	waitpid(pid, &status, 0);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status %#x", status);
}

/* --- and without Landlock, or under a runtime's filter --- */

Test(jail, holds_without_landlock)
{
	static const struct sock_filter insns[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	static const struct seccomp_program old_kernel = {insns, sizeof insns / sizeof *insns};
	pid_t pid = bound_fork();
	struct result r;
	int status;

	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (seccomp_load(&old_kernel) < 0)
			_exit(1);
		r = jailed(do_nothing);
		if (!strstr(r.log, "landlock_abi=0 files=no ports=no signals=no"))
			_exit(2);
		if (!WIFEXITED(r.status) || WEXITSTATUS(r.status) != DONE)
			_exit(3);
		r = jailed(call_sendmsg);
		_exit(WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGSYS ? 0 : 4);
	}
	waitpid(pid, &status, 0);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
}
