#include "tests/lib/outer.h"

#include "common/seccomp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

#define NR   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define ARG0 BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]))
#define ARG2 BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]))
#define ANSWER(nr, err)                                                                                      \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (err))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define NAMESPACES                                                                                           \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |        \
	 CLONE_NEWNET)

static void enter(const struct sock_filter *insns, size_t count)
{
	const struct seccomp_program outer = {insns, (unsigned short)count};

	cr_assert(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	cr_assert_eq(seccomp_load(&outer), 0);
}

void outer_container(void)
{
	static const struct sock_filter filter[] = {
	    NR,
	    ANSWER(SYS_clone3, ENOSYS),
	    ANSWER(SYS_unshare, EPERM),
	    ANSWER(SYS_setns, EPERM),
	    ANSWER(SYS_mount, EPERM),
	    ANSWER(SYS_umount2, EPERM),
	    ANSWER(SYS_pivot_root, EPERM),
	    ANSWER(SYS_bpf, EPERM),
	    ANSWER(SYS_perf_event_open, EPERM),
	    ANSWER(SYS_io_uring_setup, EPERM),
	    ANSWER(SYS_userfaultfd, EPERM),
	    ANSWER(SYS_keyctl, EPERM),
	    ANSWER(SYS_add_key, EPERM),
	    ANSWER(SYS_request_key, EPERM),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
	    ARG0,
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)NAMESPACES, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	    ALLOW,
	};

	enter(filter, sizeof filter / sizeof *filter);
}

void outer_no_landlock(void)
{
	static const struct sock_filter filter[] = {
	    NR,
	    ANSWER(SYS_landlock_create_ruleset, ENOSYS),
	    ANSWER(SYS_landlock_add_rule, ENOSYS),
	    ANSWER(SYS_landlock_restrict_self, ENOSYS),
	    ALLOW,
	};

	enter(filter, sizeof filter / sizeof *filter);
}

void outer_no_memfd(void)
{
	static const struct sock_filter filter[] = {NR, ANSWER(SYS_memfd_create, EPERM), ALLOW};

	enter(filter, sizeof filter / sizeof *filter);
}

void outer_no_prctl(unsigned option)
{
	const struct sock_filter filter[] = {
	    NR,
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
	    ARG0,
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, option, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
	    ALLOW,
	};

	enter(filter, sizeof filter / sizeof *filter);
}

void outer_no_passrights(void)
{
	static const struct sock_filter filter[] = {
	    NR,
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 3),
	    ARG2,
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PASSRIGHTS, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
	    ALLOW,
	};

	enter(filter, sizeof filter / sizeof *filter);
}
