/* What is found out before anything is served: a first command in a slot, and the rest of a start. --check
 * finds out the same. */
#include "tests/lib/folder.h"
#include "tests/lib/outer.h"
#include "tests/lib/program.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct program p;
static char folder[FOLDER_PATH_MAX], path[FOLDER_PATH_MAX + 32], policy[FOLDER_PATH_MAX + 32];

static void setup(void)
{
	char file[FOLDER_PATH_MAX];

	folder_make(folder);
	cr_assert_eq(chmod(folder, 0777), 0);
	folder_join(file, folder, "policy");
	snprintf(path, sizeof path, "PATH=%s:/usr/bin:/bin", folder);
	snprintf(policy, sizeof policy, "SANDBOX_SECCOMP_BPF=%s", file);
}

static void teardown(void)
{
	program_kill(&p);
	folder_remove(folder);
}

TestSuite(trial, .init = setup, .fini = teardown, .timeout = 60);

static int run(bool check, const char *more, void (*prepare)(void))
{
	const char *const arguments[] = {program_built("execd"), check ? "--check" : NULL, NULL};
	const char *const environment[] = {path,     "SANDBOX_ID=t", "RELAY_ADDR=127.0.0.1:9",
					   "HOME=/", more,           NULL};

	return program_run(&p, arguments, environment, prepare);
}

static void put_policy(const struct sock_filter *insns, size_t count)
{
	char file[FOLDER_PATH_MAX];

	folder_join(file, folder, "policy");
	folder_write(file, insns, count * sizeof *insns);
}

#define NR          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define IF(nr)      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1)
#define ANSWER(ret) BPF_STMT(BPF_RET | BPF_K, (ret))

static const struct sock_filter allow_all = ANSWER(SECCOMP_RET_ALLOW);

/* Refused in both ways, in one line. */
static void expect_refused(const struct sock_filter *insns, size_t count, const char *why)
{
	put_policy(insns, count);
	for (int check = 0; check <= 1; check++) {
		int status = run(check, policy, NULL);

		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2, "%x: %s", (unsigned)status, p.said);
		cr_assert(strstr(p.said, "setting=SANDBOX_SECCOMP_BPF"), "%s", p.said);
		cr_assert(strstr(p.said, why), "no %s in: %s", why, p.said);
		cr_assert_null(strstr(p.said, "killer "), "a report: %s", p.said);
	}
}

Test(trial, refuses_a_filter_under_which_bash_does_not_work)
{
	static const struct sock_filter no_return[] = {NR};
	static const struct sock_filter bad_code[] = {{0xffff, 0, 0, 0}, ANSWER(SECCOMP_RET_ALLOW)};
	static const struct sock_filter no_exec[] = {NR, IF(SYS_execve), ANSWER(SECCOMP_RET_ERRNO | EPERM),
						     ANSWER(SECCOMP_RET_ALLOW)};
	static const struct sock_filter kills[] = {NR, IF(SYS_execve), ANSWER(SECCOMP_RET_ALLOW),
						   ANSWER(SECCOMP_RET_KILL_PROCESS)};
	static const struct sock_filter no_map[] = {NR, IF(SYS_mmap), ANSWER(SECCOMP_RET_ERRNO | ENOMEM),
						    ANSWER(SECCOMP_RET_ALLOW)};

	expect_refused(no_return, 1, "the kernel does not take it as a filter");
	expect_refused(bad_code, 2, "the kernel does not take it as a filter");
	expect_refused(no_exec, 4, "bash cannot be executed under it");
	expect_refused(kills, 4, "bash is killed by SIGSYS under it");
	expect_refused(no_map, 4, "bash does not work under it");
}

static void put_bash(const char *script)
{
	char file[FOLDER_PATH_MAX];

	folder_join(file, folder, "bash");
	folder_write(file, script, strlen(script));
	cr_assert_eq(chmod(file, 0755), 0);
}

Test(trial, does_not_wait_for_a_bash_that_does_not_end)
{
	int status;

	put_bash("#!/bin/sh\nexec sleep 70\n");
	status = run(true, "LOG_LEVEL=info", NULL);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%x: %s", (unsigned)status, p.said);
	cr_assert(strstr(p.said, "bash does not end"), "%s", p.said);
}

/* The commands' bash may be the commands' user's own file: it runs as that user, without a privilege. */
static void expect_powerless(bool check)
{
	char script[1024], file[FOLDER_PATH_MAX], who[4096];
	const char *user = getuid() == 0 ? "SANDBOX_USER=64123" : "SANDBOX_USER=";
	const char *const arguments[] = {program_built("execd"), check ? "--check" : NULL, NULL};
	const char *const environment[] = {path, "SANDBOX_ID=t", "RELAY_ADDR=127.0.0.1:9",
					   user, policy,         NULL};

	folder_join(file, folder, "who");
	unlink(file);
	snprintf(script, sizeof script,
		 "#!/bin/sh\ngrep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs)' /proc/self/status >>%s\n"
		 "exec /bin/bash \"$@\"\n",
		 file);
	put_bash(script);
	if (check) {
		cr_assert_eq(program_run(&p, arguments, environment, NULL), 0, "%s", p.said);
	} else {
		program_start(&p, arguments, environment, NULL);
		cr_assert(program_wait_said(&p, "msg=started", PROGRAM_WAIT_MS), "%s", p.said);
		program_kill(&p);
	}
	cr_assert_gt(folder_read(file, who, sizeof who), 0, "bash was not tried");
	if (getuid() == 0) {
		cr_assert(strstr(who, "Uid:\t64123\t64123\t64123\t64123\n"), "%s", who);
		cr_assert(strstr(who, "Gid:\t64123\t64123\t64123\t64123\n"), "%s", who);
		cr_assert(strstr(who, "CapBnd:\t0000000000000000\n"), "%s", who);
	}
	cr_assert_null(strstr(who, "Uid:\t0"), "%s", who);
	cr_assert(strstr(who, "CapPrm:\t0000000000000000\n"), "%s", who);
	cr_assert(strstr(who, "CapEff:\t0000000000000000\n"), "%s", who);
	cr_assert(strstr(who, "CapAmb:\t0000000000000000\n"), "%s", who);
	cr_assert(strstr(who, "NoNewPrivs:\t1\n"), "%s", who);
}

Test(trial, runs_bash_as_the_commands_user_only)
{
	put_policy(&allow_all, 1);
	expect_powerless(false);
	expect_powerless(true);
}

/* --- what start refuses, --check refuses --- */

static void no_subreaper(void)
{
	outer_no_prctl(PR_SET_CHILD_SUBREAPER);
}

static void no_filter(void)
{
	outer_no_prctl(PR_SET_SECCOMP);
}

static void expect_both_fail(const char *why, int exit_code, const char *more, void (*prepare)(void))
{
	for (int check = 0; check <= 1; check++) {
		int status = run(check, more, prepare);

		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == exit_code, "%x: %s", (unsigned)status,
			  p.said);
		cr_assert(strstr(p.said, why), "no %s in: %s", why, p.said);
	}
}

Test(trial, check_refuses_what_start_refuses)
{
	char setting[FOLDER_PATH_MAX + 32];

	expect_both_fail("step=subreaper", 1, NULL, no_subreaper);
	expect_both_fail("system call policy", 1, NULL, no_filter);
	expect_both_fail("SANDBOX_AUDIT", 2, "SANDBOX_AUDIT=/nonexistent/audit", NULL);
	snprintf(setting, sizeof setting, "STATUS_FILE=%s", folder);
	expect_both_fail("STATUS_FILE", 2, setting, NULL);
}

/* What another worker writes there is not touched. */
Test(trial, check_makes_and_empties_no_file)
{
	char setting[FOLDER_PATH_MAX + 32], file[FOLDER_PATH_MAX], content[64];

	folder_join(file, folder, "status");
	snprintf(setting, sizeof setting, "STATUS_FILE=%s", file);
	cr_assert_eq(run(true, setting, NULL), 0, "%s", p.said);
	cr_assert_eq(folder_size(file), -1);
	folder_write(file, "state=attached\n", 15);
	cr_assert_eq(run(true, setting, NULL), 0, "%s", p.said);
	cr_assert_eq(folder_read(file, content, sizeof content), 15);
}
