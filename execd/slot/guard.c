#include "execd/slot/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH      AUDIT_ARCH_X86_64
#define NR_BEYOND 0x40000000u /* x32 */
#else
#define ARCH      AUDIT_ARCH_AARCH64
#define NR_BEYOND UINT32_MAX
#endif

#define LOAD(field)          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define EQUAL(k, yes, no)    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), (yes), (no))
#define AT_LEAST(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)(k), (yes), (no))
#define RETURN(what)         BPF_STMT(BPF_RET | BPF_K, (what))
#define ALLOW                RETURN(SECCOMP_RET_ALLOW)
#define ANSWER(err)          RETURN(SECCOMP_RET_ERRNO | (err))

/* Falls out of its end with the pid that a call names. */
static const struct sock_filter calls[] = {
    LOAD(arch),
    EQUAL(ARCH, 1, 0),
    ANSWER(ENOSYS),
    LOAD(nr),
    AT_LEAST(NR_BEYOND, 0, 1),
    ANSWER(ENOSYS),
    /* The first argument is it. */
    EQUAL(SYS_kill, 4, 0),
    EQUAL(SYS_tkill, 3, 0),
    EQUAL(SYS_rt_sigqueueinfo, 2, 0),
    EQUAL(SYS_pidfd_open, 1, 0),
    EQUAL(SYS_sched_setaffinity, 0, 2),
    LOAD(args[0]),
    BPF_STMT(BPF_JMP | BPF_JA, 19),
    /* The second: a thread, and ours have one each. */
    EQUAL(SYS_tgkill, 1, 0),
    EQUAL(SYS_rt_tgsigqueueinfo, 0, 2),
    LOAD(args[1]),
    BPF_STMT(BPF_JMP | BPF_JA, 15),
    EQUAL(SYS_pidfd_send_signal, 0, 1),
    ANSWER(ENOSYS),
    EQUAL(SYS_fcntl, 0, 5),
    LOAD(args[1]),
    EQUAL(F_SETOWN_EX, 8, 0),
    EQUAL(F_SETOWN, 0, 8),
    LOAD(args[2]),
    BPF_STMT(BPF_JMP | BPF_JA, 7),
    EQUAL(SYS_ioctl, 1, 0),
    ALLOW,
    LOAD(args[1]),
    EQUAL(FIOSETOWN, 1, 0),
    EQUAL(SIOCSPGRP, 0, 1),
    ANSWER(EPERM),
    ALLOW,
};
#define CALLS (sizeof calls / sizeof *calls)

struct guard *guard_map(void)
{
	void *at =
	    mmap(NULL, sizeof(struct guard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

const struct seccomp_program *guard_program(const struct guard *guard)
{
	static struct sock_filter insns[CALLS + 3 * GUARD_PLACES + 1];
	static struct seccomp_program program = {.insns = insns};
	unsigned count = 0;

	for (; count < CALLS; count++)
		insns[count] = calls[count];
	for (unsigned i = 0; i < GUARD_PLACES; i++) {
		const pid_t pid = guard->pids[i];

		if (pid == 0)
			continue;
		insns[count++] = (struct sock_filter)EQUAL(pid, 1, 0);
		insns[count++] = (struct sock_filter)EQUAL(-pid, 0, 1);
		insns[count++] = (struct sock_filter)ANSWER(EPERM);
	}
	insns[count++] = (struct sock_filter)ALLOW;
	program.count = (unsigned short)count;
	return &program;
}
