/* Seccomp filters that were compiled beforehand: loading one is a single system call. */
#ifndef COMMON_SECCOMP_H
#define COMMON_SECCOMP_H

#include <linux/filter.h>
#include <stddef.h>

/* A classic BPF program for seccomp(2). Those of policy/policy.h live as long as the process. */
struct seccomp_program {
	const struct sock_filter *insns;
	unsigned short count;
};

/* Puts the calling thread, and all that it starts, under the filter, for good. Needs no_new_privs or
 * CAP_SYS_ADMIN. One system call, async-signal-safe: CHILD. 0 or -errno (EINVAL: the kernel does not take
 * this program). */
int seccomp_load(const struct seccomp_program *program);

/* Reads a native array of struct sock_filter from a regular file: SANDBOX_SECCOMP_BPF. ret->insns is
 * allocated and the caller's. 0 or -errno; then *ret_why (static) says what is wrong with the file. */
int seccomp_read_file(const char *path, struct seccomp_program *ret, const char **ret_why);

#endif
