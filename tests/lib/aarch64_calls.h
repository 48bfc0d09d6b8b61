/* The system calls of aarch64, by the kernel's numbers; ended by a NULL name. */
#ifndef TESTS_LIB_AARCH64_CALLS_H
#define TESTS_LIB_AARCH64_CALLS_H

#include <stddef.h>

struct aarch64_call {
	const char *name;
	int nr;
};

extern const struct aarch64_call aarch64_calls[];

#endif
