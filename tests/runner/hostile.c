/* What a tenant might start to outlive its exec. usage: hostile SHAPE FILE
 *
 * Each process of a shape appends its pid (4 bytes) to FILE, again and again: a file that grows after the
 * kill shows a survivor, and so does a pid in it that lives. All end by themselves after LIFE_S, should a
 * killer fail. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIFE_S    20
#define BIRTHS    6000
#define BOMB      300
#define BOUND     400
#define SWARM     64
#define THREADS   50
#define GUARDIANS 6
#define NESTED    3

static int file = -1;
static const char *file_name;
static char self[4096];
static int *births; /* shared by all of a shape that forks */

static void mark(void)
{
	pid_t pid = getpid();

	if (write(file, &pid, sizeof pid) != sizeof pid)
		_exit(1);
}

/* CLOCK_MONOTONIC seconds at which all is over; handed down by fork and by the environment. */
static long end_s(void)
{
	static long end;
	const char *given = getenv("HOSTILE_END");
	struct timespec now;
	char text[32];

	if (end)
		return end;
	clock_gettime(CLOCK_MONOTONIC, &now);
	end = given ? strtol(given, NULL, 10) : now.tv_sec + LIFE_S;
	snprintf(text, sizeof text, "%ld", end);
	setenv("HOSTILE_END", text, 1);
	return end;
}

static void check_end(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec >= end_s())
		_exit(0);
}

static void nap(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static _Noreturn void stay(void)
{
	for (;;) {
		mark();
		check_end();
		nap(2000);
	}
}

/* Each link lives for a moment and is followed by the next. */
static _Noreturn void chain(long us)
{
	for (;;) {
		pid_t pid;

		if (__atomic_fetch_add(births, 1, __ATOMIC_SEQ_CST) >= BIRTHS)
			stay();
		pid = fork();
		if (pid > 0)
			_exit(0);
		if (pid < 0)
			nap(500);
		mark();
		check_end();
		if (us > 0)
			nap(us);
	}
}

static void leave_session(void)
{
	if (fork() != 0)
		_exit(0);
	setsid();
	if (fork() != 0)
		_exit(0);
}

static void ignore_all(void)
{
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_IGN);
}

static void plain(void)
{
	for (int i = 0; i < 3; i++)
		fork();
	stay();
}

static void stopped(void)
{
	mark();
	raise(SIGSTOP);
	stay();
}

static void immune(void)
{
	ignore_all();
	stay();
}

static void renamed(void)
{
	prctl(PR_SET_NAME, "kworker/0:1", 0, 0, 0);
	mark();
	execl("/bin/bash", "[kworker/u8:3]", "-c", "while :; do :; done", file_name, NULL);
	_exit(1);
}

static void swarm(void)
{
	for (int i = 0; i < SWARM; i++) {
		if (fork() == 0) {
			setsid();
			chain(1000);
		}
	}
	_exit(0);
}

static void tight(void)
{
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			setsid();
			chain(0);
		}
	}
	_exit(0);
}

/* Grows by doubling until BOMB processes were born, then each stays. */
static void bomb(void)
{
	ignore_all();
	while (__atomic_fetch_add(births, 1, __ATOMIC_SEQ_CST) < BOMB) {
		if (fork() == 0)
			setsid();
	}
	stay();
}

/* A bomb that a limit holds down (RLIMIT_NPROC, or HOSTILE_BOUND: a cgroup): what dies is born again by the
 * next. Unbound it is like any other. */
static void refill(void)
{
	const struct rlimit few = {BOUND, BOUND};
	bool caged = getenv("HOSTILE_BOUND");
	int most = geteuid() != 0 ? BIRTHS : BOMB;

	if (caged)
		most = INT_MAX;
	else
		setrlimit(RLIMIT_NPROC, &few);
	ignore_all();
	while (__atomic_fetch_add(births, 1, __ATOMIC_SEQ_CST) < most) {
		pid_t pid = fork();

		if (pid == 0)
			setsid();
		if (pid >= 0)
			continue;
		__atomic_fetch_sub(births, 1, __ATOMIC_SEQ_CST);
		mark();
		check_end();
		nap(500);
	}
	stay();
}

/* A bomb that a cgroup holds down, without any rest: whoever kills it has to compete with all of it for the
 * processor. HOSTILE_SETSID: each in a session of its own. */
static void tireless(void)
{
	bool alone = getenv("HOSTILE_SETSID");

	mark();
	for (;;) {
		if (fork() == 0) {
			if (alone)
				setsid();
			mark();
		}
		check_end();
	}
}

/* Every link by vfork and a fresh exec. */
static void vforks(void)
{
	mark();
	check_end();
	nap(1000);
	for (;;) {
		pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

		if (pid == 0) {
			execl(self, "hostile", "vforks", file_name, NULL);
			_exit(1);
		}
		if (pid > 0)
			_exit(0);
		nap(500);
	}
}

/* Parents that the kernel holds until their children are done. */
static void held(void)
{
	for (int i = 0; i < NESTED; i++) {
		/* As vfork(2), but with a stack and memory of its own: this child does as it likes. */
		if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) != 0)
			break;
	}
	stay();
}

/* Every link by the setsid(1) of the one before. */
static void setsids(void)
{
	mark();
	check_end();
	nap(1000);
	execlp("setsid", "setsid", "-f", self, "setsids", file_name, NULL);
	_exit(1);
}

static void *thread(void *arg)
{
	(void)arg;
	if (fork() == 0)
		stay();
	for (;;)
		pause();
	return NULL;
}

/* Children that only another thread's list of children names; the first thread is gone. */
static void threads(void)
{
	pthread_t t;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t, NULL, thread, NULL);
	syscall(SYS_exit, 0);
}

/* Whoever's parent dies becomes a parent itself. */
static void guardians(void)
{
	for (int i = 0; i < GUARDIANS; i++) {
		if (fork() != 0)
			continue;
		setsid();
		for (;;) {
			pid_t pid, parent;

			if (__atomic_fetch_add(births, 1, __ATOMIC_SEQ_CST) >= BIRTHS)
				stay();
			pid = fork();

			mark();
			check_end();
			if (pid > 0)
				waitpid(pid, NULL, 0);
			if (pid < 0)
				nap(300);
			if (pid != 0)
				continue;
			for (parent = getppid(); getppid() == parent; check_end())
				nap(50);
		}
	}
	stay();
}

static void reaper(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			setsid();
			chain(300);
		}
	}
	stay();
}

/* A brother instead of a child: the new process's parent is the slot. */
static void brother(void)
{
	for (int i = 0; i < 5; i++) {
		if (syscall(SYS_clone, CLONE_PARENT, 0, 0, 0, 0) == 0)
			stay();
	}
	stay();
}

/* As low as a process can make itself, so that it hardly runs even when killed. */
static void lowly(void)
{
	struct sched_param param = {0};

	sched_setscheduler(0, SCHED_IDLE, &param);
	plain();
}

/* As many descriptors in flight as the user may have: others of the same uid can then pass none. */
static void flights(void)
{
	enum { MANY = 200 };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int[MANY]))];
	} control;
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof control.bytes};
	int s[2], fds[MANY];

	control.align = (struct cmsghdr){
	    .cmsg_len = CMSG_LEN(sizeof fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	for (int i = 0; i < MANY; i++)
		fds[i] = file;
	memcpy(CMSG_DATA(&control.align), fds, sizeof fds);
	do {
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s) < 0)
			_exit(1);
		while (sendmsg(s[0], &m, MSG_DONTWAIT) >= 0)
			continue;
	} while (errno == EAGAIN);
	stay();
}

static const struct {
	const char *name;
	void (*run)(void);
	bool away; /* in the background, in a session of its own */
} shapes[] = {
    {"plain", plain, false},       {"daemon", plain, true},        {"stopped", stopped, true},
    {"immune", immune, true},      {"renamed", renamed, true},     {"swarm", swarm, true},
    {"tight", tight, true},        {"bomb", bomb, true},           {"vforks", vforks, true},
    {"threads", threads, true},    {"guardians", guardians, true}, {"reaper", reaper, true},
    {"brother", brother, false},   {"lowly", lowly, true},         {"flights", flights, false},
    {"refill", refill, true},      {"held", held, true},           {"setsids", setsids, false},
    {"tireless", tireless, false},
};

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
		return 2;
	file_name = argv[2];
	file = open(file_name, O_WRONLY | O_APPEND | O_CREAT, 0666);
	if (file < 0)
		return 2;
	births = mmap(NULL, sizeof *births, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (births == MAP_FAILED)
		return 2;
	end_s();
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		if (strcmp(shapes[i].name, argv[1]) != 0)
			continue;
		/* A link of vforks that was executed anew is away already. */
		if (shapes[i].away && !getenv("HOSTILE_AWAY")) {
			setenv("HOSTILE_AWAY", "1", 1);
			leave_session();
		}
		shapes[i].run();
	}
	return 2;
}
