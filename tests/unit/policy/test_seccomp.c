/* SANDBOX_SECCOMP_BPF: how the file is read.
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
