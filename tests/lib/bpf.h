/* A classic BPF interpreter for seccomp programs, so that a policy can be run without a kernel of its
 * architecture. */
#ifndef TESTS_LIB_BPF_H
#define TESTS_LIB_BPF_H

#include "common/seccomp.h"

#include <linux/seccomp.h>
#include <stdint.h>

/* What the program answers (SECCOMP_RET_* with its data). *ret_steps (may be NULL): how many instructions it
 * took. 0, or -EINVAL for what the kernel's seccomp_check_filter() or bpf_check_classic() refuse. */
int bpf_run(const struct seccomp_program *program, const struct seccomp_data *data, uint32_t *ret_action,
	    unsigned *ret_steps);

#endif
