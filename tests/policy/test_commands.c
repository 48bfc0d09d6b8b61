/* What a command meets under its policy: what works, and which errno it gets for what does not. */
#include "policy/policy.h"
#include "tests/lib/filter.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMESPACES                                                                                           \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |        \
	 CLONE_NEWNET)

/* Above the low 32 bits, where the kernel does not look. */
#define HIGH_BIT ((uint64_t)1 << 32)

struct call {
	const char *what;
	long nr;
	uint64_t args[4];
	int err; /* 0: it succeeds, or fails by itself with another errno than those of the policy */
};

/* CHILD: the index of the first call that answers otherwise, plus 1. */
static int make_calls(void *arg)
{
	const struct call *calls = arg;

	for (int i = 0; calls[i].what; i++) {
		const struct call *c = &calls[i];
		long r = syscall(c->nr, c->args[0], c->args[1], c->args[2], c->args[3], 0, 0);
		int err = r == -1 ? errno : 0;
		bool refused = err == EPERM || err == ENOSYS || err == EAFNOSUPPORT;

		if (c->err != 0 ? err != c->err : refused)
			return i + 1;
	}
	return 0;
}

static void check_calls(const struct seccomp_program *program, const struct call *calls)
{
	const struct seccomp_program *const filters[] = {program, NULL};
	int status = filter_run(filters, make_calls, (void *)(uintptr_t)calls);

	cr_assert(WIFEXITED(status), "status %#x", status);
	cr_assert(WEXITSTATUS(status) == 0, "%s", calls[WEXITSTATUS(status) - 1].what);
}

Test(commands, are_refused_what_belongs_to_the_machine)
{
	static const struct call calls[] = {
	    {"mount", SYS_mount, {0}, EPERM},
	    {"umount2", SYS_umount2, {0}, EPERM},
	    {"pivot_root", SYS_pivot_root, {0}, EPERM},
	    {"chroot", SYS_chroot, {0}, EPERM},
	    {"fsopen", SYS_fsopen, {0}, EPERM},
	    {"move_mount", SYS_move_mount, {0}, EPERM},
	    {"open_tree", SYS_open_tree, {0}, EPERM},
	    {"mount_setattr", SYS_mount_setattr, {0}, EPERM},
	    {"swapon", SYS_swapon, {0}, EPERM},
	    {"acct", SYS_acct, {0}, EPERM},
	    {"quotactl", SYS_quotactl, {0}, EPERM},
	    {"reboot", SYS_reboot, {0}, EPERM},
	    {"sethostname", SYS_sethostname, {0}, EPERM},
	    {"settimeofday", SYS_settimeofday, {0}, EPERM},
	    {"clock_settime", SYS_clock_settime, {0}, EPERM},
	    {"clock_adjtime", SYS_clock_adjtime, {0}, EPERM},
	    {"init_module", SYS_init_module, {0}, EPERM},
	    {"finit_module", SYS_finit_module, {0}, EPERM},
	    {"delete_module", SYS_delete_module, {0}, EPERM},
	    {"kexec_load", SYS_kexec_load, {0}, EPERM},
	    {"syslog", SYS_syslog, {0}, EPERM},
	    {NULL},
	};

	check_calls(&policy_commands, calls);
	check_calls(&policy_commands_ptrace, calls);
	check_calls(&policy_execd, calls);
}

Test(commands, are_refused_wide_ways_into_the_kernel)
{
	static const struct call calls[] = {
	    {"bpf", SYS_bpf, {0}, EPERM},
	    {"perf_event_open", SYS_perf_event_open, {0}, EPERM},
	    {"userfaultfd", SYS_userfaultfd, {0}, EPERM},
	    {"io_uring_setup", SYS_io_uring_setup, {0}, EPERM},
	    {"io_uring_enter", SYS_io_uring_enter, {0}, EPERM},
	    {"io_uring_register", SYS_io_uring_register, {0}, EPERM},
	    {"add_key", SYS_add_key, {0}, EPERM},
	    {"keyctl", SYS_keyctl, {0}, EPERM},
	    {"request_key", SYS_request_key, {0}, EPERM},
	    {"open_by_handle_at", SYS_open_by_handle_at, {0}, EPERM},
	    {"fanotify_init", SYS_fanotify_init, {0}, EPERM},
	    {NULL},
	};

	check_calls(&policy_commands, calls);
	check_calls(&policy_commands_ptrace, calls);
	check_calls(&policy_execd, calls);
}

Test(commands, are_refused_namespaces_but_not_forks)
{
	static const struct call calls[] = {
	    {"clone3", SYS_clone3, {0}, ENOSYS},
	    {"clone NEWUSER", SYS_clone, {CLONE_NEWUSER | SIGCHLD}, EPERM},
	    {"clone NEWNS", SYS_clone, {CLONE_NEWNS | SIGCHLD}, EPERM},
	    {"clone NEWPID", SYS_clone, {CLONE_NEWPID | SIGCHLD}, EPERM},
	    {"clone NEWNET", SYS_clone, {CLONE_NEWNET | SIGCHLD}, EPERM},
	    {"clone NEWIPC", SYS_clone, {CLONE_NEWIPC | SIGCHLD}, EPERM},
	    {"clone NEWUTS", SYS_clone, {CLONE_NEWUTS | SIGCHLD}, EPERM},
	    {"clone NEWCGROUP", SYS_clone, {CLONE_NEWCGROUP | SIGCHLD}, EPERM},
	    {"clone with high bits", SYS_clone, {HIGH_BIT | CLONE_NEWUSER | SIGCHLD}, EPERM},
	    {"unshare NEWUSER", SYS_unshare, {CLONE_NEWUSER}, EPERM},
	    {"unshare all", SYS_unshare, {NAMESPACES}, EPERM},
	    {"unshare NEWTIME", SYS_unshare, {0x80}, EPERM},
	    {"setns", SYS_setns, {0}, EPERM},
	    {"unshare FILES", SYS_unshare, {CLONE_FILES | CLONE_FS}, 0},
	    {NULL},
	};

	check_calls(&policy_commands, calls);
	check_calls(&policy_commands_ptrace, calls);
}

Test(commands, reach_no_other_process_but_by_signals)
{
	static const struct sched_param none = {0};
	const uint64_t param = (uint64_t)(uintptr_t)&none;
	pid_t self = getpid();
	const struct call calls[] = {
	    {"pidfd_getfd", SYS_pidfd_getfd, {0}, EPERM},
	    {"kcmp", SYS_kcmp, {0}, EPERM},
	    {"process_madvise", SYS_process_madvise, {0}, EPERM},
	    {"prlimit of another", SYS_prlimit64, {(uint64_t)self, RLIMIT_NOFILE, 4096}, EPERM},
	    {"prlimit with high bits",
	     SYS_prlimit64,
	     {HIGH_BIT | (uint64_t)self, RLIMIT_NOFILE, 4096},
	     EPERM},
	    {"prlimit at 2^32", SYS_prlimit64, {(uint64_t)self, RLIMIT_NOFILE, HIGH_BIT}, EPERM},
	    {"prlimit reads", SYS_prlimit64, {(uint64_t)self, RLIMIT_NOFILE, 0}, 0},
	    {"prlimit of its own", SYS_prlimit64, {0, RLIMIT_NOFILE, 0}, 0},
	    {"setpriority of another", SYS_setpriority, {PRIO_PROCESS, (uint64_t)self, 5}, EPERM},
	    {"setpriority of a group", SYS_setpriority, {PRIO_PGRP, (uint64_t)self, 5}, EPERM},
	    {"setpriority of its own group", SYS_setpriority, {PRIO_PGRP, 0, 5}, 0},
	    {"setpriority of a user", SYS_setpriority, {PRIO_USER, 0, 5}, EPERM},
	    {"setpriority of its own", SYS_setpriority, {PRIO_PROCESS, 0, 5}, 0},
	    {"ioprio_set of another", SYS_ioprio_set, {1, (uint64_t)self, 3 << 13}, EPERM},
	    {"ioprio_set of a group", SYS_ioprio_set, {2, 0, 3 << 13}, EPERM},
	    {"ioprio_set of its own", SYS_ioprio_set, {1, 0, 3 << 13}, 0},
	    {"sched_setscheduler of another", SYS_sched_setscheduler, {(uint64_t)self, SCHED_IDLE, 0}, EPERM},
	    {"sched_setparam of another", SYS_sched_setparam, {(uint64_t)self, 0}, EPERM},
	    {"sched_setattr of another", SYS_sched_setattr, {(uint64_t)self, 0}, ENOSYS},
	    {"sched_setattr of its own", SYS_sched_setattr, {0, 0}, ENOSYS},
	    {"SCHED_IDLE of its own", SYS_sched_setscheduler, {0, SCHED_IDLE, param}, EPERM},
	    {"SCHED_IDLE for itself alone",
	     SYS_sched_setscheduler,
	     {0, SCHED_IDLE | SCHED_RESET_ON_FORK, param},
	     EPERM},
	    {"SCHED_FIFO of another", SYS_sched_setscheduler, {(uint64_t)self, SCHED_FIFO, param}, EPERM},
	    {"SCHED_OTHER by number", SYS_sched_setscheduler, {(uint64_t)self, SCHED_OTHER, param}, 0},
	    {"SCHED_BATCH by number", SYS_sched_setscheduler, {(uint64_t)self, SCHED_BATCH, param}, 0},
	    {"SCHED_BATCH of its own", SYS_sched_setscheduler, {0, SCHED_BATCH, param}, 0},
	    {"sched_setaffinity", SYS_sched_setaffinity, {(uint64_t)self, 0, 0}, 0},
	    {NULL},
	};

	check_calls(&policy_commands, calls);
	check_calls(&policy_commands_ptrace, calls);
}

Test(commands, trace_only_with_the_policy_for_it)
{
	static const struct call without[] = {
	    {"ptrace", SYS_ptrace, {PTRACE_TRACEME}, EPERM},
	    {"process_vm_readv", SYS_process_vm_readv, {0}, EPERM},
	    {"process_vm_writev", SYS_process_vm_writev, {0}, EPERM},
	    {NULL},
	};
	static const struct call with[] = {
	    {"ptrace", SYS_ptrace, {PTRACE_TRACEME}, 0},
	    {"process_vm_readv", SYS_process_vm_readv, {0}, 0},
	    {"process_vm_writev", SYS_process_vm_writev, {0}, 0},
	    {NULL},
	};

	check_calls(&policy_commands, without);
	check_calls(&policy_commands_ptrace, with);
}

Test(commands, type_into_no_terminal)
{
	static const struct call calls[] = {
	    {"TIOCSTI", SYS_ioctl, {0, TIOCSTI}, EPERM},
	    {"TIOCSTI with high bits", SYS_ioctl, {0, HIGH_BIT | TIOCSTI}, EPERM},
	    {"TIOCLINUX", SYS_ioctl, {0, TIOCLINUX}, EPERM},
	    {"TIOCSETD", SYS_ioctl, {0, TIOCSETD}, EPERM},
	    {"FIONREAD", SYS_ioctl, {(uint64_t)-1, FIONREAD}, 0},
	    {"FIOASYNC, as nginx does", SYS_ioctl, {(uint64_t)-1, FIOASYNC}, 0},
	    {"TIOCGWINSZ", SYS_ioctl, {(uint64_t)-1, TIOCGWINSZ}, 0},
	    {NULL},
	};

	check_calls(&policy_commands, calls);
	check_calls(&policy_commands_ptrace, calls);
}

Test(commands, get_the_common_socket_families_only)
{
	static const struct call calls[] = {
	    {"AF_UNIX", SYS_socket, {AF_UNIX, SOCK_STREAM}, 0},
	    {"AF_INET", SYS_socket, {AF_INET, SOCK_DGRAM | SOCK_CLOEXEC}, 0},
	    {"NETLINK_ROUTE", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, 0},
	    {"NETLINK_SOCK_DIAG", SYS_socket, {AF_NETLINK, SOCK_DGRAM, NETLINK_SOCK_DIAG}, 0},
	    {"NETLINK_NETFILTER", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}, EPROTONOSUPPORT},
	    {"NETLINK_XFRM", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_XFRM}, EPROTONOSUPPORT},
	    {"NETLINK_AUDIT", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_AUDIT}, EPROTONOSUPPORT},
	    {"NETLINK_CONNECTOR", SYS_socket, {AF_NETLINK, SOCK_DGRAM, NETLINK_CONNECTOR}, EPROTONOSUPPORT},
	    {"NETLINK_GENERIC", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_GENERIC}, EPROTONOSUPPORT},
	    {"AF_ALG", SYS_socket, {AF_ALG, SOCK_SEQPACKET}, EAFNOSUPPORT},
	    {"AF_ALG with high bits", SYS_socket, {HIGH_BIT | AF_ALG, SOCK_SEQPACKET}, EAFNOSUPPORT},
	    {"AF_VSOCK", SYS_socket, {AF_VSOCK, SOCK_STREAM}, EAFNOSUPPORT},
	    {"AF_PACKET", SYS_socket, {AF_PACKET, SOCK_DGRAM}, EAFNOSUPPORT},
	    {"AF_BLUETOOTH", SYS_socket, {AF_BLUETOOTH, SOCK_RAW}, EAFNOSUPPORT},
	    {"AF_CAN", SYS_socket, {AF_CAN, SOCK_RAW}, EAFNOSUPPORT},
	    {"AF_TIPC pair", SYS_socketpair, {AF_TIPC, SOCK_STREAM}, EAFNOSUPPORT},
	    {"AF_UNSPEC", SYS_socket, {AF_UNSPEC, SOCK_STREAM}, EAFNOSUPPORT},
	    {NULL},
	};

	check_calls(&policy_commands, calls);
	check_calls(&policy_commands_ptrace, calls);
}

Test(commands, speak_tcp_udp_and_icmp_only)
{
	static const struct {
		int type, protocol;
		bool refused;
	} sockets[] = {
	    {SOCK_STREAM, 0, false},
	    {SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP, false},
	    {SOCK_DGRAM | SOCK_CLOEXEC, 0, false},
	    {SOCK_DGRAM, IPPROTO_UDP, false},
	    {SOCK_SEQPACKET, 0, true}, /* SCTP */
	    {SOCK_STREAM, IPPROTO_SCTP, true},
	    {SOCK_DCCP, 0, true},
	    {SOCK_DCCP, IPPROTO_DCCP, true},
	    {SOCK_DGRAM, 115, true},  /* L2TP */
	    {SOCK_STREAM, 262, true}, /* MPTCP: Go falls back */
	    {SOCK_DGRAM, IPPROTO_UDPLITE, true},
	    {SOCK_RAW, IPPROTO_RAW, true},
	};
	struct call calls[2 * sizeof sockets / sizeof *sockets + 1] = {0};
	size_t count = 0;

	for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++) {
		for (int family = AF_INET; family; family = family == AF_INET ? AF_INET6 : 0)
			calls[count++] = (struct call){
			    "an inet socket",
			    SYS_socket,
			    {(uint64_t)family, (uint64_t)sockets[i].type, (uint64_t)sockets[i].protocol},
			    sockets[i].refused ? EPROTONOSUPPORT : 0};
	}
	check_calls(&policy_commands, calls);
	check_calls(&policy_commands_ptrace, calls);
}

static void *thread(void *arg)
{
	return arg;
}

/* CHILD: a class that was asked for by name is set by the thread's number. */
static int start_explicitly(void *arg)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	return pthread_create(&t, &attr, thread, arg) == 0 && pthread_join(t, NULL) == 0 ? 0 : 1;
}

Test(commands, start_threads_of_the_class_that_they_have)
{
	int status = filter_run_one(&policy_commands, start_explicitly, NULL);

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
}

Test(commands, see_newer_and_unknown_calls_as_missing)
{
	static const struct call calls[] = {
		{"statmount", 457, {0}, ENOSYS},
		{"lsm_set_self_attr", 460, {0}, ENOSYS},
		{"open_tree_attr", 467, {0}, ENOSYS},
		{"not yet", 500, {0}, ENOSYS},
		{"never", 100000, {0}, ENOSYS},
#if defined(__x86_64__)
		{"x32", 0x40000000 | 1, {0}, ENOSYS},
		{"modify_ldt", SYS_modify_ldt, {0}, ENOSYS},
#endif
		{NULL},
	};

	check_calls(&policy_commands, calls);
	check_calls(&policy_commands_ptrace, calls);
}

/* CHILD */
static int work(void *arg)
{
	static int token;
	pthread_t t;
	void *result = NULL;
	int status;
	pid_t pid = fork();

	(void)arg;
	if (pid == 0)
		_exit(7);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		return 1;
	if (pthread_create(&t, NULL, thread, &token) != 0 || pthread_join(t, &result) != 0 ||
	    result != &token)
		return 2;
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	    MAP_FAILED)
		return 3;
	if (memfd_create("x", MFD_CLOEXEC) < 0)
		return 4;
	execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
	return 5;
}

Test(commands, fork_thread_map_and_execute)
{
	int status = filter_run_one(&policy_commands, work, NULL);

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 9, "status %#x", status);
}

Test(commands, may_load_a_filter_of_their_own_on_top)
{
	const struct seccomp_program *const filters[] = {&policy_execd, &policy_commands,
							 &policy_commands_ptrace, NULL};
	int status = filter_run(filters, work, NULL);

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 9, "status %#x", status);
}

/* What the container runtimes' default filters do to clone3 and namespaces, on the outside. */
Test(commands, work_below_a_container_runtimes_filter)
{
	static const struct sock_filter runtime_insns[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 1, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mount, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	static const struct seccomp_program runtime = {runtime_insns,
						       sizeof runtime_insns / sizeof *runtime_insns};
	const struct seccomp_program *const filters[] = {&runtime, &policy_execd, &policy_commands, NULL};
	int status = filter_run(filters, work, NULL);

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 9, "status %#x", status);
}
