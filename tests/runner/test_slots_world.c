/* What a command may do to others, and what it is left with. */
#include "tests/lib/program.h"
#include "tests/lib/slot_rig.h"
#include "tests/lib/space.h"

#include "common/drop.h"
#include "common/landlock.h"
#include "common/seccomp.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(slots_world, .timeout = 60, .init = space_need_own);

static struct rig_exec x;
static struct slots_plan plan;

static void start(bool background_kill)
{
	rig_prepare();
	rig_config.background_kill = background_kill;
	slots_plan(&rig_config, &plan);
	rig_start();
}

static void status_has(const char *line)
{
	cr_assert(strstr(x.out, line), "%s not in %s", line, x.out);
}

/* Who may not empty the bounding set, as no ordinary user may, hands it on; no_new_privs makes it worthless.
 */
Test(slots_world, leave_commands_no_privilege)
{
	const char *bound = drop_holds(CAP_SETPCAP) ? "0000000000000000" : program_status(getpid(), "CapBnd");
	char line[64];

	snprintf(line, sizeof line, "CapBnd:\t%s\n", bound);
	start(false);
	rig_do("exec cat /proc/self/status", NULL, &x);
	status_has("NoNewPrivs:\t1\n");
	status_has("CapInh:\t0000000000000000\n");
	status_has("CapPrm:\t0000000000000000\n");
	status_has("CapEff:\t0000000000000000\n");
	status_has(line);
	status_has("CapAmb:\t0000000000000000\n");
	status_has("Seccomp:\t2\n");
	rig_do("id -u", NULL, &x);
	cr_assert_eq((uid_t)atoi(x.out), getuid());
	rig_stop();
}

Test(slots_world, give_commands_the_user_that_was_set)
{
	rig_prepare();
	if (geteuid() != 0)
		cr_skip_test("not root");
	rig_config.command_user = (struct config_user){
	    .set = true, .uid = 65532, .gid = 65531, .groups = {65530}, .group_count = 1};
	rig_start();
	rig_do("id -u; id -g; id -G; echo >/dev/stdout again; echo out >/proc/self/fd/2", NULL, &x);
	cr_assert_str_eq(x.out, "65532\n65531\n65531 65530\nagain\n", "%s%s", x.out, x.err);
	cr_assert_str_eq(x.err, "out\n");
	cr_assert_eq(geteuid(), 0);
	rig_stop();
}

Test(slots_world, give_commands_the_capabilities_that_were_kept)
{
	rig_prepare();
	if (geteuid() != 0)
		cr_skip_test("not root");
	rig_config.keep_caps = 1u << 13; /* CAP_NET_RAW */
	rig_start();
	rig_do("exec cat /proc/self/status", NULL, &x);
	status_has("CapPrm:\t0000000000002000\n");
	status_has("CapEff:\t0000000000002000\n");
	status_has("CapBnd:\t0000000000002000\n");
	rig_stop();
}

/* A long one costs 200 us to load. */
Test(slots_world, load_the_built_in_policy_once_for_all_commands)
{
	const char *before = program_status(getpid(), "Seccomp_filters");
	char line[64];

	if (!*before)
		cr_skip_test("the kernel does not count filters");
	snprintf(line, sizeof line, "Seccomp_filters:\t%d\n", atoi(before) + 1);
	start(false);
	rig_do("exec cat /proc/$PPID/status", NULL, &x);
	rig_stop();
	if (x.out_size == 0)
		cr_skip_test("/proc does not show slots: %s", x.err);
	status_has(line);
}

/* Slots wait by waitid: they could not live under this. */
Test(slots_world, load_a_policy_of_the_operators_in_each_command_alone)
{
	static const struct sock_filter no_waitid[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_waitid, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	static const struct seccomp_program program = {no_waitid, sizeof no_waitid / sizeof *no_waitid};

	rig_prepare();
	slots_use_seccomp(&program);
	rig_start();
	cr_assert_eq(WEXITSTATUS(rig_do("exec cat /proc/self/status", NULL, &x)), 0);
	status_has("Seccomp:\t2\n");
	rig_stop();
}

Test(slots_world, limit_commands)
{
	struct rlimit files, core;
	char want[128];

	cr_assert(getrlimit(RLIMIT_NOFILE, &files) == 0 && getrlimit(RLIMIT_CORE, &core) == 0);
	core.rlim_max = 1024 * 1024; /* as execd was started */
	cr_assert_eq(setrlimit(RLIMIT_CORE, &core), 0);
	snprintf(want, sizeof want, "%llu\n%llu\n0\n1024\n",
		 files.rlim_max / 2 < 1024 ? (unsigned long long)files.rlim_max / 2 : 1024,
		 (unsigned long long)files.rlim_max / 2);
	start(false);
	rig_do("ulimit -Sn; ulimit -Hn; ulimit -Sc; ulimit -Hc", NULL, &x);
	cr_assert_str_eq(x.out, want, "%s", x.out);
	rig_stop();
}

Test(slots_world, let_the_kernel_kill_commands_first_when_memory_ends)
{
	int before = 0, given;
	FILE *f = fopen("/proc/self/oom_score_adj", "re");

	cr_assert(f && fscanf(f, "%d", &before) == 1);
	fclose(f);
	start(false);
	rig_do("cat /proc/self/oom_score_adj", NULL, &x);
	given = atoi(x.out);
	cr_assert(given == 500 || given == before, "%d", given);
	if (before < 500)
		cr_assert_eq(given, 500);
	rig_stop();
}

Test(slots_world, hide_slots_from_their_commands)
{
	start(false);
	rig_do(
	    "readlink /proc/$PPID/fd/1 || echo shut; (cat /proc/$PPID/environ || true) 2>/dev/null | wc -c",
	    NULL, &x);
	if (geteuid() != 0 || plan.landlock_abi > 0)
		cr_assert_str_eq(x.out, "shut\n0\n");
	rig_stop();
}

static void expect_signal_to_us(const char *want)
{
	char command[128];

	snprintf(command, sizeof command, "kill -0 %d 2>/dev/null && echo yes || echo no", getpid());
	rig_do(command, NULL, &x);
	cr_assert_str_eq(x.out, want);
}

Test(slots_world, keep_signals_of_commands_away_from_us)
{
	start(false);
	if (!plan.commands_scoped)
		cr_skip_test("no Landlock scopes here");
	expect_signal_to_us("no\n");
	rig_stop();
}

Test(slots_world, keep_signals_of_commands_away_from_us_in_worlds_of_their_own)
{
	start(true);
	if (!plan.commands_scoped)
		cr_skip_test("no Landlock scopes here");
	expect_signal_to_us("no\n");
	rig_do("kill -0 $PPID 2>/dev/null && echo yes || echo no", NULL, &x);
	cr_assert_str_eq(x.out, "no\n", "nor can it signal its slot");
	rig_stop();
}

/* Signals the leader of another exec that waits. */
static void signal_another(const char *want)
{
	unsigned other = rig_run("echo $$; exec sleep 1000", NULL);
	char command[128];

	rig_until_output(other, "\n");
	snprintf(command, sizeof command, "kill -TERM %d 2>/dev/null && echo yes || echo no",
		 atoi(rig_execs[other].out));
	rig_do(command, NULL, &x);
	cr_assert_str_eq(x.out, want);
	slots_kill(other);
	rig_until(other, SLOT_EMPTY);
	rig_release(other);
}

Test(slots_world, let_commands_stop_each_others_servers_when_they_are_kept)
{
	start(false);
	signal_another("yes\n");
	rig_stop();
}

Test(slots_world, keep_commands_apart_when_nothing_is_kept)
{
	start(true);
	if (!plan.commands_scoped)
		cr_skip_test("no Landlock scopes here");
	signal_another("no\n");
	rig_stop();
}

/* /proc/<pid>/fd asks what ptrace asks. */
static void look_into_another(const char *want)
{
	unsigned other = rig_run("echo $$; exec sleep 1000", NULL);
	char command[128];

	rig_until_output(other, "\n");
	snprintf(command, sizeof command, "readlink /proc/%d/fd/1 >/dev/null 2>&1 && echo yes || echo no",
		 atoi(rig_execs[other].out));
	rig_do(command, NULL, &x);
	cr_assert_str_eq(x.out, want);
	slots_kill(other);
	rig_until(other, SLOT_EMPTY);
	rig_release(other);
}

/* As lsof -i, ss -p and fuser do to find who holds a port. */
Test(slots_world, let_commands_look_into_what_earlier_ones_left_when_it_is_kept)
{
	start(false);
	look_into_another("yes\n");
	rig_stop();
}

Test(slots_world, keep_commands_from_tracing_each_other_when_nothing_is_kept)
{
	start(true);
	if (plan.landlock_abi == 0)
		cr_skip_test("no Landlock here");
	look_into_another("no\n");
	rig_stop();
}

/* A domain that handles anything forbids this by default. */
static void rename_across_folders(bool background_kill)
{
	start(background_kill);
	rig_do("set -e; d=$(mktemp -d); mkdir $d/a $d/b; echo text >$d/a/f; mv -T $d/a/f $d/b/f; ln $d/b/f "
	       "$d/a/g; cat $d/a/g; rm -r $d",
	       NULL, &x);
	cr_assert_str_eq(x.out, "text\n", "%s", x.err);
	rig_stop();
}

Test(slots_world, let_commands_rename_across_folders)
{
	rename_across_folders(false);
}

Test(slots_world, let_commands_rename_across_folders_in_worlds_of_their_own)
{
	rename_across_folders(true);
}

Test(slots_world, run_commands_in_the_folder_and_environment_that_were_set)
{
	static char path[] = "PATH=/usr/bin:/bin", only[] = "ONLY=this";
	static char *environment[] = {path, only, NULL};

	rig_prepare();
	memcpy(rig_config.cwd, "/usr", 5);
	rig_config.command_environ = environment;
	umask(027);
	rig_start();
	rig_do("pwd; umask; exec cat /proc/self/environ", NULL, &x);
	cr_assert(strncmp(x.out, "/usr\n0027\n", 10) == 0, "%s", x.out);
	cr_assert(memmem(x.out, x.out_size, "ONLY=this", 9));
	cr_assert(!memmem(x.out, x.out_size, "HOME=", 5));
	rig_stop();
}
