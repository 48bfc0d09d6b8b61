/* The kernel against the interpreter: each native program, each call's number, without any call being made.
 * An outer filter answers MAGIC to whatever the policy allows: among several filters the strictest answer
 * counts, and among equals the newest filter's. */
#include "policy/policy.h"
#include "tests/lib/bpf.h"
#include "tests/lib/filter.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAGIC 4001u
#define CALLS 512
#if defined(__x86_64__)
#define AUDIT AUDIT_ARCH_X86_64
#else
#define AUDIT AUDIT_ARCH_AARCH64
#endif

/* Lets through what loads the policy and ends the child. */
#define LET(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static const struct sock_filter outer_insns[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    LET(SYS_prctl),
    LET(SYS_exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | MAGIC),
};
static const struct seccomp_program outer = {outer_insns, sizeof outer_insns / sizeof *outer_insns};

struct probe {
	int nr;
	uint64_t args[6];
	uint32_t expected;
};

static const struct seccomp_program *program;

static struct probe probe_of(int nr, uint64_t arg0, uint64_t arg1, uint64_t arg2)
{
	struct seccomp_data data = {.nr = nr, .arch = AUDIT, .args = {arg0, arg1, arg2}};
	struct probe p = {.nr = nr, .args = {arg0, arg1, arg2}};

	cr_assert(bpf_run(program, &data, &p.expected, NULL) == 0);
	return p;
}

/* CHILD: 0 when the kernel answers what the interpreter did. A call that kills never comes back. */
static int body(void *arg)
{
	const struct probe *p = arg;
	uint32_t wanted = p->expected == SECCOMP_RET_ALLOW ? MAGIC : p->expected & SECCOMP_RET_DATA;
	long r = syscall(p->nr, p->args[0], p->args[1], p->args[2], p->args[3], p->args[4], p->args[5]);

	/* Above 4,095 libc takes it for a result. */
	return r == -1 && (uint32_t)errno == wanted ? 0 : 1;
}

static bool kills(const struct probe *p)
{
	uint32_t action = p->expected & SECCOMP_RET_ACTION_FULL;

	return action == SECCOMP_RET_TRAP || action == SECCOMP_RET_KILL_PROCESS;
}

struct batch {
	struct probe probes[4096];
	unsigned count;
};

static int body_of_batch(void *arg)
{
	struct batch *b = arg;

	for (unsigned i = 0; i < b->count; i++) {
		if (body(&b->probes[i]) != 0)
			return 1;
	}
	return 0;
}

static void check_one(struct probe *p)
{
	const struct seccomp_program *const filters[] = {&outer, program, NULL};
	int status = filter_run(filters, body, p);
	const char *name = policy_call_name(p->nr);

	if (kills(p))
		cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%s (%d): status %#x", name,
			  p->nr, status);
	else
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s (%d): not %#x", name, p->nr,
			  p->expected);
}

/* What comes back is probed in one child; only when that fails, one by one. */
static void check(const struct probe *p)
{
	static struct batch batch;
	static const struct probe end;
	const struct seccomp_program *const filters[] = {&outer, program, NULL};
	struct probe copy = p ? *p : end;
	int status;

	if (p && kills(p)) {
		check_one(&copy);
		return;
	}
	if (p)
		batch.probes[batch.count++] = *p;
	if (p && batch.count < sizeof batch.probes / sizeof *batch.probes)
		return;
	status = filter_run(filters, body_of_batch, &batch);
	for (unsigned i = 0; i < batch.count && status != 0; i++)
		check_one(&batch.probes[i]);
	cr_assert_eq(status, 0);
	batch.count = 0;
}

static void check_all(const struct seccomp_program *tested, bool dies)
{
	/* Flags and commands that the policies tell apart, alone and with a bit that the kernel does not look
	 * at. */
	static const uint64_t values[] = {0,      1,      2,      3,       4,         9,          10,
					  16,     38,     40,     0x80,    0x2000,    0x5412,     0x541b,
					  0x541c, 0x5411, 0x5423, 0x20000, 0x4000000, 0x10000000, 0x40000000};
	const unsigned count = sizeof values / sizeof *values;

	program = tested;
	for (int nr = 0; nr < CALLS; nr++) {
		/* Let through: they would run. */
		if (nr == SYS_prctl || nr == SYS_exit_group)
			continue;
#if defined(__x86_64__)
		/* uretprobe and uprobe: since Linux 6.11 the kernel asks no filter, and lets only its own
		 * trampoline make them (SIGILL for others). */
		if (nr == 335 || nr == 336)
			continue;
#endif
		for (unsigned i = 0; i < count; i++) {
			for (uint64_t high = 0; high <= 1ull << 32; high += 1ull << 32) {
				uint64_t v = values[i] | high;
				struct probe first = probe_of(nr, v, 0, 0), second = probe_of(nr, 0, v, 0),
					     third = probe_of(nr, 0, 0, v);

				/* A child for each: for what always dies, one is enough. */
				if (dies && kills(&first) && kills(&second) && kills(&third) &&
				    (i > 0 || high > 0))
					continue;
				check(&first);
				check(&second);
				check(&third);
			}
		}
	}
	check(NULL);
}

Test(kernel, agrees_on_the_commands_policy, .timeout = 100)
{
	check_all(&policy_commands, false);
}

Test(kernel, agrees_on_the_commands_policy_with_ptrace, .timeout = 100)
{
	check_all(&policy_commands_ptrace, false);
}

Test(kernel, agrees_on_execds_policy, .timeout = 100)
{
	check_all(&policy_execd, false);
}

Test(kernel, agrees_on_netds_policy, .timeout = 200)
{
	check_all(&policy_netd, true);
}
