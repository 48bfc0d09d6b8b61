#include "tests/lib/bpf.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Only the codes that policies have; the kernel's list is longer. Writes the next instruction's index. */
static int jump(const struct sock_filter *f, uint32_t a, unsigned *pc)
{
	bool holds;

	switch (f->code) {
	case BPF_JMP | BPF_JA:
		*pc += f->k;
		return 0;
	case BPF_JMP | BPF_JEQ | BPF_K:
		holds = a == f->k;
		break;
	case BPF_JMP | BPF_JGE | BPF_K:
		holds = a >= f->k;
		break;
	case BPF_JMP | BPF_JGT | BPF_K:
		holds = a > f->k;
		break;
	case BPF_JMP | BPF_JSET | BPF_K:
		holds = (a & f->k) != 0;
		break;
	default:
		return -EINVAL;
	}
	*pc += holds ? f->jt : f->jf;
	return 0;
}

int bpf_run(const struct seccomp_program *program, const struct seccomp_data *data, uint32_t *ret_action,
	    unsigned *ret_steps)
{
	uint32_t a = 0;
	unsigned steps = 0;

	for (unsigned pc = 0; pc < program->count;) {
		const struct sock_filter *f = &program->insns[pc++];

		steps++;
		if (f->code == (BPF_RET | BPF_K)) {
			*ret_action = f->k;
			if (ret_steps)
				*ret_steps = steps;
			return 0;
		}
		if (f->code == (BPF_LD | BPF_W | BPF_ABS)) {
			if (f->k % sizeof a != 0 || f->k > sizeof *data - sizeof a)
				return -EINVAL;
			memcpy(&a, (const char *)data + f->k, sizeof a);
		} else if (f->code == (BPF_ALU | BPF_AND | BPF_K)) {
			a &= f->k;
		} else if (jump(f, a, &pc) < 0) {
			return -EINVAL;
		}
	}
	return -EINVAL;
}
