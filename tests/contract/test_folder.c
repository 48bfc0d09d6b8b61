/* The folder of the commands is a path: what is there when a command starts is where it runs. */
#include "common/drop.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(folder, .timeout = 60, .fini = stage_fini);

static const char in_root[] = "a command runs in /: its folder cannot be entered";
static char work[FOLDER_PATH_MAX], other[FOLDER_PATH_MAX];

/* A worker whose commands run in work. */
static struct stage *open_in_work(void)
{
	char setting[FOLDER_PATH_MAX + 16];
	struct stage *s = stage_prepare();

	folder_join(work, s->folder, "work");
	folder_join(other, s->folder, "other");
	cr_assert_eq(mkdir(work, 0755), 0);
	snprintf(setting, sizeof setting, "SANDBOX_CWD=%s", work);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
	stage_reattach(s);
	return s;
}

static void expect_in(struct stage *s, const char *folder)
{
	char line[FOLDER_PATH_MAX + 1];
	struct relay_exec *exec = stage_exec(s, "pwd -P");

	snprintf(line, sizeof line, "%s\n", folder);
	stage_expect_end(exec, 0);
	stage_expect_err(exec, "");
	stage_expect_out(exec, line);
}

Test(folder, that_was_removed_and_remade_is_the_new_one)
{
	char file[FOLDER_PATH_MAX];
	struct stage *s = open_in_work();

	stage_expect_end(stage_exec(s, "touch old; cd ..; rm -r work; mkdir work"), 0);
	stage_expect_end(stage_exec(s, "touch new"), 0);
	folder_join(file, work, "new");
	cr_assert_eq(access(file, F_OK), 0, "the file went into the dead tree");
	expect_in(s, work);
	cr_assert_not(worker_said(&s->worker, in_root));
	stage_close(s);
}

Test(folder, that_was_renamed_is_not_followed)
{
	char file[FOLDER_PATH_MAX];
	struct stage *s = open_in_work();

	stage_expect_end(stage_exec(s, "cd ..; mv work other; mkdir work"), 0);
	stage_expect_end(stage_exec(s, "touch new"), 0);
	folder_join(file, work, "new");
	cr_assert_eq(access(file, F_OK), 0, "the file went into the renamed tree");
	stage_close(s);
}

Test(folder, that_is_gone_is_the_root_until_it_is_back)
{
	struct stage *s = open_in_work();

	stage_expect_end(stage_exec(s, "cd ..; mv work other"), 0);
	expect_in(s, "/");
	cr_assert(worker_wait_said(&s->worker, in_root, STAGE_WAIT_MS));
	cr_assert(worker_wait_said(&s->worker, work, STAGE_WAIT_MS));
	cr_assert(worker_wait_said(&s->worker, "error=\"No such file or directory\"", STAGE_WAIT_MS));
	stage_expect_end(stage_exec(s, "mv %s %s", other, work), 0);
	expect_in(s, work);
	stage_close(s);
}

Test(folder, that_cannot_be_entered_is_the_root_until_it_can)
{
	struct stage *s = open_in_work();

	stage_expect_end(stage_exec(s, "chmod 0 ."), 0);
	expect_in(s, "/");
	cr_assert(worker_wait_said(&s->worker, "error=\"Permission denied\"", STAGE_WAIT_MS));
	stage_expect_end(stage_exec(s, "chmod 755 %s; rmdir %s; >%s", work, work, work), 0);
	expect_in(s, "/");
	cr_assert(worker_wait_said(&s->worker, "error=\"Not a directory\"", STAGE_WAIT_MS));
	stage_expect_end(stage_exec(s, "mkdir %s; ln -sfn other %s", other, work), 0);
	expect_in(s, other);
	stage_close(s);
}

Test(folder, that_stays_away_does_not_fill_the_log)
{
	struct stage *s = open_in_work();

	stage_expect_end(stage_exec(s, "rmdir %s", work), 0);
	for (int i = 0; i < 20; i++)
		expect_in(s, "/");
	cr_assert(worker_wait_said(&s->worker, in_root, STAGE_WAIT_MS));
	cr_assert_leq(worker_said_times(&s->worker, in_root), 8);
	stage_close(s);
}

/* As a unit's CapabilityBoundingSet= has it: root may then not look into a folder of mode 0700. */
static void without_dac(void)
{
	prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);
	prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH);
}

Test(folder, may_be_the_users_alone)
{
	char setting[FOLDER_PATH_MAX + 16];
	struct stage *s;

	if (!drop_holds(CAP_SETUID) || !drop_holds(CAP_SETPCAP))
		cr_skip_test("needs root");
	s = stage_prepare();
	cr_assert_eq(chmod(s->folder, 0755), 0);
	folder_join(work, s->folder, "work");
	folder_join(other, work, "inner");
	cr_assert(mkdir(work, 0700) == 0 && mkdir(other, 0700) == 0);
	cr_assert(chown(work, 64123, 64123) == 0 && chown(other, 64123, 64123) == 0);
	snprintf(setting, sizeof setting, "SANDBOX_CWD=%s", other);
	worker_start_prepared(&s->worker, s->relay, WORKER_SETTINGS(setting, "SANDBOX_USER=64123"),
			      without_dac);
	stage_reattach(s);
	expect_in(s, other);
	stage_close(s);
}

Test(folder, must_be_open_to_the_commands_user_at_start)
{
	char setting[FOLDER_PATH_MAX + 16];
	struct stage *s = stage_prepare();

	folder_join(work, s->folder, "work");
	cr_assert_eq(mkdir(work, 0), 0);
	snprintf(setting, sizeof setting, "SANDBOX_CWD=%s", work);
	worker_start(&s->worker, s->relay, WORKER_SETTINGS(setting));
	cr_assert(worker_wait_exit(&s->worker, STAGE_WAIT_MS));
	cr_assert(WIFEXITED(s->worker.wait_status) && WEXITSTATUS(s->worker.wait_status) == 2);
	cr_assert(worker_wait_said(&s->worker, "setting=SANDBOX_CWD", STAGE_WAIT_MS));
	stage_leave(s);
}
