/* What the process that runs this may do to others. usage: tenant NAME=PID[:PROC]...
 * PROC: its number in /proc, where that is of another pid namespace.
 *
 * One line for each: NAME and, of each group below, a letter where anything of it is allowed, else '.', then
 * in brackets what was allowed. Nothing is done but asked for: signal 0, a limit set to what it is. */
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t in_proc; /* of whom is tried now */

static int answer(long r)
{
	return r < 0 ? -errno : 0;
}

static int by_kill(pid_t pid)
{
	return answer(kill(pid, 0));
}

static int by_tgkill(pid_t pid)
{
	return answer(syscall(SYS_tgkill, pid, pid, 0));
}

static int by_queue(pid_t pid)
{
	siginfo_t info = {.si_code = SI_QUEUE};

	return answer(syscall(SYS_rt_sigqueueinfo, pid, 0, &info));
}

static int by_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), r;

	if (fd < 0)
		return -errno;
	r = answer(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
	close(fd);
	return r;
}

static int seize(pid_t pid)
{
	int r = answer(ptrace(PTRACE_SEIZE, pid, 0, 0));

	if (r == 0 && ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0 && waitpid(pid, NULL, __WALL) == pid)
		ptrace(PTRACE_DETACH, pid, 0, 0);
	return r;
}

/* EFAULT: there is nothing at this address, but it was looked for. */
static int vm(pid_t pid, long call)
{
	char byte = 0;
	struct iovec here = {&byte, 1}, there = {(void *)8, 1};
	int r = answer(syscall(call, pid, &here, 1, &there, 1, 0));

	return r == -EFAULT ? 0 : r;
}

static int vm_read(pid_t pid)
{
	return vm(pid, SYS_process_vm_readv);
}

static int vm_write(pid_t pid)
{
	return vm(pid, SYS_process_vm_writev);
}

static int get_fd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), r;

	if (fd < 0)
		return -errno;
	r = answer(syscall(SYS_pidfd_getfd, fd, 0, 0));
	close(fd);
	return r;
}

static int open_file(const char *name, int flags)
{
	char path[64], byte;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", in_proc, name);
	fd = open(path, flags);
	if (fd < 0)
		return -errno;
	n = flags & O_WRONLY ? 0 : read(fd, &byte, 1);
	close(fd);
	/* Some ask only now; of an emptied one there is nothing to read. */
	return n < 0 && errno != EIO && errno != EISDIR ? -errno
	       : n == 0 && !(flags & O_WRONLY)          ? -ENODATA
							: 0;
}

static int follow(const char *name)
{
	char path[64], target[256];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/%s", in_proc, name);
	n = readlink(path, target, sizeof target);
	/* Linux 5.10 answers a forbidden look at a namespace with nothing, and no error. */
	return n == 0 ? -ENODATA : answer(n);
}

#define READS(name)                                                                                          \
	static int read_##name(pid_t pid)                                                                    \
	{                                                                                                    \
		(void)pid;                                                                                   \
		return open_file(#name, O_RDONLY);                                                           \
	}
#define FOLLOWS(name)                                                                                        \
	static int follow_##name(pid_t pid)                                                                  \
	{                                                                                                    \
		(void)pid;                                                                                   \
		return follow(#name);                                                                        \
	}

READS(environ)
READS(mem)
READS(maps)
READS(auxv)
READS(io)
READS(syscall)
FOLLOWS(exe)
FOLLOWS(root)
FOLLOWS(cwd)

static int write_mem(pid_t pid)
{
	(void)pid;
	return open_file("mem", O_WRONLY);
}

static int follow_fd(pid_t pid)
{
	(void)pid;
	return follow("fd/0");
}

static int follow_ns(pid_t pid)
{
	(void)pid;
	return follow("ns/net");
}

static int limit(pid_t pid)
{
	struct rlimit files;

	if (prlimit(pid, RLIMIT_NOFILE, NULL, &files) < 0 && getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	return answer(prlimit(pid, RLIMIT_NOFILE, &files, NULL));
}

static int renice(pid_t pid)
{
	errno = 0;
	return answer(setpriority(PRIO_PROCESS, (id_t)pid, getpriority(PRIO_PROCESS, (id_t)pid)));
}

/* The normal class and the batch class may be set; here it is the flag that is asked for. */
static int schedule(pid_t pid)
{
	struct sched_param param = {0};

	return answer(sched_setscheduler(pid, SCHED_OTHER | SCHED_RESET_ON_FORK, &param));
}

static int set_param(pid_t pid)
{
	struct sched_param param = {0};

	return answer(sched_setparam(pid, &param));
}

static int io_priority(pid_t pid)
{
	return answer(
	    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, pid, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 4)));
}

static int bind_cpu(pid_t pid)
{
	cpu_set_t set;

	if (sched_getaffinity(pid, sizeof set, &set) < 0)
		return -errno;
	return answer(sched_setaffinity(pid, sizeof set, &set));
}

static int oom_score(pid_t pid)
{
	(void)pid;
	return open_file("oom_score_adj", O_WRONLY);
}

static int autogroup(pid_t pid)
{
	(void)pid;
	return open_file("autogroup", O_WRONLY);
}

static const struct {
	char group;
	const char *name;
	int (*try)(pid_t pid);
} tries[] = {
    {'s', "kill", by_kill},
    {'s', "tgkill", by_tgkill},
    {'s', "sigqueue", by_queue},
    {'s', "pidfd_send_signal", by_pidfd},
    {'t', "ptrace", seize},
    {'t', "process_vm_readv", vm_read},
    {'t', "process_vm_writev", vm_write},
    {'t', "pidfd_getfd", get_fd},
    {'t', "mem", read_mem},
    {'t', "mem for writing", write_mem},
    {'l', "environ", read_environ},
    {'l', "maps", read_maps},
    {'l', "auxv", read_auxv},
    {'l', "io", read_io},
    {'l', "syscall", read_syscall},
    {'l', "exe", follow_exe},
    {'l', "root", follow_root},
    {'l', "cwd", follow_cwd},
    {'l', "fd/0", follow_fd},
    {'l', "ns/net", follow_ns},
    {'p', "prlimit", limit},
    {'p', "setpriority", renice},
    {'p', "sched_setscheduler", schedule},
    {'p', "sched_setparam", set_param},
    {'p', "ioprio_set", io_priority},
    {'c', "sched_setaffinity", bind_cpu},
    {'o', "oom_score_adj", oom_score},
    {'o', "autogroup", autogroup},
};

#define GROUPS "stlpco"

static void look(const char *name, pid_t pid)
{
	char allowed[1024] = "", letters[] = "......";

	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		if (tries[i].try(pid) < 0)
			continue;
		letters[strchr(GROUPS, tries[i].group) - GROUPS] = tries[i].group;
		snprintf(allowed + strlen(allowed), sizeof allowed - strlen(allowed), " %s", tries[i].name);
	}
	printf("%s %s [%s ]\n", name, letters, allowed);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *is = strchr(argv[i], '=');

		if (!is || (kill((pid_t)atoi(is + 1), 0) < 0 && errno == ESRCH))
			return 2;
		*is = '\0';
		in_proc = (pid_t)atoi(strchr(is + 1, ':') ? strchr(is + 1, ':') + 1 : is + 1);
		look(argv[i], (pid_t)atoi(is + 1));
	}
	return 0;
}
