/* The seccomp policies: the text in policy/, compiled at build time. The definitions are in the generated
 * policy_data.c; the language is described in sandbox-worker-policy(5). */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "common/seccomp.h"

extern const struct seccomp_program policy_netd;
extern const struct seccomp_program policy_execd;
extern const struct seccomp_program policy_commands;
/* The same with ptrace and process_vm_*: only where Landlock keeps a tracer to the commands. */
extern const struct seccomp_program policy_commands_ptrace;

/* The name of a system call of this architecture (static), or NULL where the compiler knew none. */
const char *policy_call_name(int nr);

#endif
