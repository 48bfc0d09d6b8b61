#include "execd/slot/keyed.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

#define LOAD(field)       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_WORD(n)      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4]) + 4 * (n))
#define EQUAL(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (yes), (no))

/* The last two arguments, of which prlimit has none. */
static union {
	uint64_t args[2];
	uint32_t words[4];
} key;

int keyed_load(const struct seccomp_program *program)
{
	static struct sock_filter insns[BPF_MAXINSNS];
	struct sock_filter before[] = {
	    LOAD(arch),
	    EQUAL(ARCH, 0, 11),
	    LOAD(nr),
	    EQUAL(SYS_prlimit64, 0, 9),
	    LOAD_WORD(0),
	    EQUAL(0, 0, 7),
	    LOAD_WORD(1),
	    EQUAL(0, 0, 5),
	    LOAD_WORD(2),
	    EQUAL(0, 0, 3),
	    LOAD_WORD(3),
	    EQUAL(0, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const unsigned count = sizeof before / sizeof *before, first_word = 5;
	struct seccomp_program both = {.insns = insns, .count = (unsigned short)(count + program->count)};

	if (program->count > BPF_MAXINSNS - count)
		return -E2BIG;
	if (getrandom(&key, sizeof key, 0) != sizeof key)
		return -EIO;
	for (unsigned i = 0; i < 4; i++)
		before[first_word + 2 * i].k = key.words[i];
	memcpy(insns, before, sizeof before);
	memcpy(insns + count, program->insns, program->count * sizeof *insns);
	return seccomp_load(&both);
}

int keyed_limit(pid_t pid, int resource, const struct rlimit *limit)
{
	return syscall(SYS_prlimit64, pid, resource, limit, NULL, key.args[0], key.args[1]) < 0 ? -errno : 0;
}
