/* Whom a command may signal where Landlock cannot say it: the program, run by an interpreter. */
#include "execd/slot/guard.h"
#include "tests/lib/bpf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sockios.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

#define HIGH_BIT ((uint64_t)1 << 32)

TestSuite(guard, .timeout = 30);

static struct guard guard;

static void set_up(void)
{
	guard = (struct guard){.pids = {[GUARD_INIT] = 1,
					[GUARD_EXECD] = 100,
					[GUARD_EXECD_GROUP] = 90,
					[GUARD_WARDEN] = 101,
					[GUARD_NETD] = 102,
					[GUARD_SLOTS] = 103,
					[GUARD_PLACES - 1] = 4000000}};
}

static uint32_t answer_of(uint32_t arch, long nr, uint64_t a, uint64_t b, uint64_t c)
{
	struct seccomp_data data = {.nr = (int)nr, .arch = arch, .args = {a, b, c}};
	uint32_t action;

	cr_assert_eq(bpf_run(guard_program(&guard), &data, &action, NULL), 0);
	return action == SECCOMP_RET_ALLOW ? 0 : action & SECCOMP_RET_DATA;
}

static uint32_t answer(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	return answer_of(ARCH, nr, a, b, c);
}

static const pid_t ours[] = {1, 90, 100, 101, 102, 103, 4000000};
static const pid_t theirs[] = {0, 2, 99, 104, 3999999};

static void check_call(long nr, uint64_t before, unsigned at, uint64_t behind)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
			uint64_t pid = (uint64_t)(int64_t)(sign * ours[i]);
			uint64_t args[3] = {before, before, behind};

			args[at] = pid;
			cr_assert_eq(answer(nr, args[0], args[1], args[2]), EPERM, "%ld of %d", nr,
				     sign * ours[i]);
			args[at] = pid ^ HIGH_BIT;
			cr_assert_eq(answer(nr, args[0], args[1], args[2]), EPERM);
		}
		for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
			uint64_t args[3] = {before, before, behind};

			args[at] = (uint64_t)(int64_t)(sign * theirs[i]);
			cr_assert_eq(answer(nr, args[0], args[1], args[2]), 0, "%ld of %d", nr,
				     sign * theirs[i]);
		}
	}
}

Test(guard, refuses_signals_to_ours_and_to_their_groups, .init = set_up)
{
	check_call(SYS_kill, 0, 0, SIGKILL);
	check_call(SYS_tkill, 0, 0, SIGKILL);
	check_call(SYS_rt_sigqueueinfo, 0, 0, SIGKILL);
	check_call(SYS_pidfd_open, 0, 0, 0);
	check_call(SYS_sched_setaffinity, 0, 0, 0);
	check_call(SYS_tgkill, 50, 1, SIGKILL);
	check_call(SYS_rt_tgsigqueueinfo, 50, 1, SIGKILL);
}

Test(guard, refuses_descriptors_that_would_signal_ours, .init = set_up)
{
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
		cr_assert_eq(answer(SYS_fcntl, 0, F_SETOWN, (uint64_t)ours[i]), EPERM);
		cr_assert_eq(answer(SYS_fcntl, 0, F_SETOWN, (uint64_t)(int64_t)-ours[i]), EPERM);
		cr_assert_eq(answer(SYS_fcntl, 0, F_SETFL, (uint64_t)ours[i]), 0);
	}
	cr_assert_eq(answer(SYS_fcntl, 0, F_SETOWN, 50), 0);
	cr_assert_eq(answer(SYS_fcntl, 0, F_SETOWN_EX, 0), EPERM);
	cr_assert_eq(answer(SYS_ioctl, 0, FIOSETOWN, 0), EPERM);
	cr_assert_eq(answer(SYS_ioctl, 0, SIOCSPGRP, 0), EPERM);
	cr_assert_eq(answer(SYS_ioctl, 0, FIOASYNC, 0), 0);
	cr_assert_eq(answer(SYS_pidfd_send_signal, 5, SIGKILL, 0), ENOSYS);
}

Test(guard, lets_all_else_be, .init = set_up)
{
	for (long nr = 0; nr < 512; nr++) {
		switch (nr) {
		case SYS_kill:
		case SYS_tkill:
		case SYS_tgkill:
		case SYS_rt_sigqueueinfo:
		case SYS_rt_tgsigqueueinfo:
		case SYS_pidfd_open:
		case SYS_pidfd_send_signal:
		case SYS_sched_setaffinity:
			break;
		default:
			cr_assert_eq(answer(nr, 100, 100, 100), 0, "%ld", nr);
		}
	}
}

Test(guard, knows_no_calls_of_another_architecture, .init = set_up)
{
	cr_assert_eq(answer_of(AUDIT_ARCH_I386, 37, 100, SIGKILL, 0), ENOSYS);
#if defined(__x86_64__)
	cr_assert_eq(answer(0x40000000 | SYS_kill, 100, SIGKILL, 0), ENOSYS);
#endif
}

/* A table of nobody refuses nothing but what names nobody. */
Test(guard, without_names_refuses_none)
{
	cr_assert_eq(answer(SYS_kill, 100, SIGKILL, 0), 0);
	cr_assert_eq(answer(SYS_kill, 0, SIGKILL, 0), 0);
}
