#include "policy/lint.h"

#include "policy/emit.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>

/* Calls that reach other processes, change what a process may do, or open much of the kernel to attack.
 * Whoever allows one says why. */
static const char *const dangerous[] = {
    "acct",
    "add_key",
    "bpf",
    "capset",
    "chroot",
    "clock_adjtime",
    "clock_settime",
    "clone",
    "clone3",
    "delete_module",
    "execve",
    "execveat",
    "fanotify_init",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioctl",
    "ioperm",
    "iopl",
    "ioprio_set",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "kill",
    "mmap",
    "modify_ldt",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "mprotect",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "personality",
    "pidfd_getfd",
    "pidfd_send_signal",
    "pivot_root",
    "pkey_mprotect",
    "prctl",
    "prlimit64",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "reboot",
    "remap_file_pages",
    "request_key",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "seccomp",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setns",
    "setpriority",
    "settimeofday",
    "setuid",
    "socket",
    "socketpair",
    "swapon",
    "syslog",
    "tgkill",
    "tkill",
    "umount2",
    "unshare",
    "userfaultfd",
    "vmsplice",
};

static bool is_dangerous(const char *call)
{
	for (size_t i = 0; i < sizeof dangerous / sizeof *dangerous; i++) {
		if (strcmp(dangerous[i], call) == 0)
			return true;
	}
	return false;
}

static int lint_rule(const struct policy_rule *rule, struct policy_error *error)
{
	bool exists = false, known = false;

	for (enum policy_arch arch = 0; arch < POLICY_ARCHES; arch++) {
		int nr = policy_number(rule, arch, &known);

		exists |= nr >= 0;
		if (rule->number >= 0 && known && nr != rule->number)
			return policy_fail(error, rule->file, rule->line, "%s has the number %d, not %d",
					   rule->call, nr, rule->number);
	}
	if (!exists && !known)
		return policy_fail(error, rule->file, rule->line, "unknown system call '%s'", rule->call);
	if (!exists)
		return policy_fail(error, rule->file, rule->line, "%s exists on none of our architectures",
				   rule->call);
	if (rule->action == SECCOMP_RET_ALLOW && !rule->has_reason && is_dangerous(rule->call))
		return policy_fail(error, rule->file, rule->line, "%s is dangerous: give a reason behind '#'",
				   rule->call);
	return 0;
}

int policy_lint(const struct policy *policy, struct policy_error *error)
{
	for (unsigned i = 0; i < policy->count; i++) {
		int r = lint_rule(&policy->rules[i], error);

		if (r < 0)
			return r;
	}
	return 0;
}

/* No call matches both: somewhere they want the same bits to be different. */
static bool disjoint(const struct policy_rule *a, const struct policy_rule *b)
{
	for (unsigned i = 0; i < a->condition_count; i++) {
		for (unsigned j = 0; j < b->condition_count; j++) {
			const struct policy_condition *x = &a->conditions[i], *y = &b->conditions[j];

			if (x->arg == y->arg && x->test == POLICY_EQUAL && y->test == POLICY_EQUAL &&
			    (x->value & y->mask) != (y->value & x->mask))
				return true;
		}
	}
	return false;
}

/* Does inner surely refuse what this rule of outer refuses? Either the same rule comes before any that allows
 * the call, or nothing allows it. */
static bool refuses(const struct policy *inner, const struct policy_rule *rule)
{
	for (unsigned i = 0; i < inner->count; i++) {
		const struct policy_rule *own = &inner->rules[i];

		if (strcmp(own->call, rule->call) != 0 || disjoint(own, rule))
			continue;
		if (own->action == SECCOMP_RET_ALLOW)
			return false;
		if (own->condition_count == 0 || policy_same_conditions(own, rule))
			return true;
	}
	return inner->default_action != SECCOMP_RET_ALLOW;
}

int policy_lint_subset(const struct policy *outer, const struct policy *inner, struct policy_error *error)
{
	for (unsigned i = 0; i < outer->count; i++) {
		const struct policy_rule *rule = &outer->rules[i];

		if (rule->action != SECCOMP_RET_ALLOW && !refuses(inner, rule))
			return policy_fail(error, rule->file, rule->line, "refuses %s, which %s may allow",
					   rule->call, inner->rules[0].file);
	}
	if (outer->default_action != SECCOMP_RET_ALLOW)
		return policy_fail(error, outer->rules[0].file, 0,
				   "an inherited policy must allow by default");
	return 0;
}
