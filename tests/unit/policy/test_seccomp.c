/* SANDBOX_SECCOMP_BPF: the file is read, and tried before anything depends on it.
 * valgrind: not run: it would be under the filter, too */
#include "common/seccomp.h"
#include "policy/policy.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BASH "/bin/bash"

static char folder[] = "/tmp/seccomp.XXXXXX";
static const struct sock_filter allow_all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

static void set_up(void)
{
	cr_assert(mkdtemp(folder) && chdir(folder) == 0);
}

static void tear_down(void)
{
	unlink("f");
	rmdir(folder);
}

TestSuite(seccomp, .init = set_up, .fini = tear_down, .timeout = 60);

static void put(const void *bytes, size_t size)
{
	int fd = open("f", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

static void put_count(size_t count, size_t more)
{
	struct sock_filter *insns = calloc(count + 1, sizeof *insns);

	for (size_t i = 0; i <= count; i++)
		insns[i] = allow_all;
	put(insns, count * sizeof *insns + more);
	free(insns);
}

Test(seccomp, reads_a_file_up_to_the_kernels_limit)
{
	static const size_t counts[] = {1, 2, 4095, 4096};

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct seccomp_program program = {NULL, 0};
		const char *why = "";

		put_count(counts[i], 0);
		cr_assert_eq(seccomp_read_file("f", &program, &why), 0, "%s", why);
		cr_assert_eq(program.count, counts[i]);
		cr_assert_eq(program.insns[counts[i] - 1].k, SECCOMP_RET_ALLOW);
		free((void *)(uintptr_t)program.insns);
	}
}

static void refuse(int err, const char *wanted)
{
	struct seccomp_program program = {NULL, 7};
	const char *why = "";

	cr_assert_eq(seccomp_read_file("f", &program, &why), err, "%s", why);
	cr_assert_str_eq(why, wanted);
	cr_assert(program.insns == NULL && program.count == 7);
}

Test(seccomp, says_what_is_wrong_with_a_file)
{
	refuse(-ENOENT, "cannot be opened");
	put_count(0, 0);
	refuse(-EINVAL, "empty");
	put_count(0, 7);
	refuse(-EINVAL, "not a whole number of struct sock_filter (8 bytes each)");
	put_count(3, 1);
	refuse(-EINVAL, "not a whole number of struct sock_filter (8 bytes each)");
	put_count(4096, 1);
	refuse(-EFBIG, "longer than 4096 instructions");
	put_count(4097, 0);
	refuse(-EFBIG, "longer than 4096 instructions");
	unlink("f");
	cr_assert(mkfifo("f", 0600) == 0);
	refuse(-EINVAL, "not a regular file");
	unlink("f");
	cr_assert(mkdir("f", 0700) == 0);
	refuse(-EINVAL, "not a regular file");
	rmdir("f");
}

static void expect_try(const struct sock_filter *insns, size_t count, int err, const char *wanted)
{
	struct seccomp_program program = {insns, (unsigned short)count};
	const char *why = "";

	cr_assert_eq(seccomp_try(&program, BASH, &why), err, "%s", why);
	if (err < 0)
		cr_assert_str_eq(why, wanted);
}

#define NR          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define IF(nr)      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1)
#define ANSWER(ret) BPF_STMT(BPF_RET | BPF_K, (ret))

Test(seccomp, tries_a_filter_before_it_is_used)
{
	static const struct sock_filter no_return[] = {NR};
	static const struct sock_filter bad_code[] = {{0xffff, 0, 0, 0}, ANSWER(SECCOMP_RET_ALLOW)};
	static const struct sock_filter no_exec[] = {NR, IF(SYS_execve), ANSWER(SECCOMP_RET_ERRNO | EPERM),
						     ANSWER(SECCOMP_RET_ALLOW)};
	static const struct sock_filter kills[] = {NR, IF(SYS_execve), ANSWER(SECCOMP_RET_ALLOW),
						   ANSWER(SECCOMP_RET_KILL_PROCESS)};
	static const struct sock_filter no_map[] = {NR, IF(SYS_mmap), ANSWER(SECCOMP_RET_ERRNO | ENOMEM),
						    ANSWER(SECCOMP_RET_ALLOW)};

	expect_try(&allow_all, 1, 0, NULL);
	expect_try(no_return, 1, -EINVAL, "the kernel does not take it as a filter");
	expect_try(bad_code, 2, -EINVAL, "the kernel does not take it as a filter");
	expect_try(no_exec, 4, -EPERM, "bash cannot be executed under it");
	expect_try(kills, 4, -EPERM, "bash is killed by SIGSYS under it");
	expect_try(no_map, 4, -EPERM, "bash does not work under it");
}

Test(seccomp, the_policies_of_commands_pass_the_trial)
{
	const char *why = "";

	cr_assert_eq(seccomp_try(&policy_commands, BASH, &why), 0, "%s", why);
	cr_assert_eq(seccomp_try(&policy_commands_ptrace, BASH, &why), 0, "%s", why);
	cr_assert_eq(seccomp_try(&policy_execd, BASH, &why), 0, "%s", why);
	cr_assert_eq(seccomp_try(&policy_netd, BASH, &why), -EPERM);
	cr_assert_str_eq(why, "bash is killed by SIGSYS under it");
}

Test(seccomp, the_trial_leaves_the_process_as_it_was)
{
	const char *why = "";
	int before = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);

	cr_assert_eq(seccomp_try(&policy_commands, BASH, &why), 0);
	cr_assert_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), before);
	cr_assert_eq(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
	cr_assert_eq(errno, ECHILD);
}

Test(seccomp, the_trial_does_not_mind_an_ignored_sigchld)
{
	const char *why = "";

	signal(SIGCHLD, SIG_IGN);
	cr_assert_eq(seccomp_try(&policy_commands, BASH, &why), 0, "%s", why);
	cr_assert(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
}

Test(seccomp, loading_needs_no_new_privs)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (setresuid(65534, 65534, 65534) < 0 && getuid() == 0)
			_exit(3);
		if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 && seccomp_load(&policy_commands) != -EACCES)
			_exit(1);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(seccomp_load(&policy_commands) == 0 && syscall(SYS_mount, 0, 0, 0, 0, 0) == -1 &&
			      errno == EPERM
			  ? 0
			  : 2);
	}
	cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0,
		  "status %#x", status);
}
