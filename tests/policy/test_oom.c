/* Out of memory under real pressure, in a memory cgroup: a command dies of it, and nothing of the worker. */
#include "tests/lib/cgroup.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TestSuite(oom, .timeout = 120, .fini = stage_fini);

#define LIMIT_256M "268435456"
#define LIMIT_96M  "100663296"
#define SLOTS      4
#define FAMILY     32

/* The line of an exec's end has all of these. */
static void expect_log(struct stage *s, const struct relay_exec *exec, const char *const *fields)
{
	char start[96];
	const char *at, *end;

	snprintf(start, sizeof start, "msg=ended req_id=%" PRIu64 " ", exec->req_id);
	cr_assert(worker_wait_said(&s->worker, start, STAGE_WAIT_MS));
	at = memmem(s->worker.log.at, s->worker.log.size, start, strlen(start));
	end = memchr(at, '\n', s->worker.log.size - (size_t)(at - (const char *)s->worker.log.at));
	cr_assert_not_null(end);
	for (; *fields; fields++)
		cr_assert(memmem(at, (size_t)(end - at), *fields, strlen(*fields)), "no %s in %.*s", *fields,
			  (int)(end - at), at);
}

#define EXPECT(s, exec, ...) expect_log(s, exec, (const char *const[]){__VA_ARGS__, NULL})

static void expect_same_family(struct stage *s, const pid_t *before, size_t count)
{
	cr_assert(!s->worker.exited);
	for (size_t i = 0; i < count; i++)
		cr_assert(process_lives(before[i]), "process %d of the worker is gone", before[i]);
}

static void press(struct stage *s)
{
	struct relay_exec *exec, *all[SLOTS];
	pid_t before[FAMILY];
	size_t count;

	count = process_descendants(s->worker.pid, before, FAMILY);
	cr_assert_gt(count, 2);
	/* row 19 of "right in the field" (tests/contract/test_field.c): 1 GiB. */
	exec = stage_exec(s, "head -c 1G /dev/zero | tail -c 1G | wc -c");
	cr_assert_eq(relay_wait_end(exec, 6 * STAGE_WAIT_MS)->kind, RELAY_END);
	stage_expect_out(exec, "0\n");
	for (int i = 0; i < SLOTS; i++)
		all[i] = stage_exec(s, "exec tail /dev/zero");
	for (int i = 0; i < SLOTS; i++) {
		stage_expect_end(all[i], -1);
		EXPECT(s, all[i], "reason=signal ", "signal=9 ", "limit=memory ", "oom=yes ");
	}
	exec = stage_exec(s, "tail /dev/zero; exit $?");
	stage_expect_end(exec, 137);
	EXPECT(s, exec, "reason=exit ", "code=137 ", "limit=memory ", "oom=yes ");
	/* Nothing was killed for memory in these. */
	exec = stage_exec(s, "kill -KILL $$");
	stage_expect_end(exec, -1);
	EXPECT(s, exec, "signal_name=KILL ms=");
	exec = stage_exec(s, "exit 137");
	stage_expect_end(exec, 137);
	EXPECT(s, exec, "code=137 ms=");
	expect_same_family(s, before, count);
}

/* Each of them is smaller than netd, and all together too much. */
static void press_by_many(struct stage *s)
{
	struct relay_exec *exec;
	pid_t before[FAMILY];
	size_t count = process_descendants(s->worker.pid, before, FAMILY);

	cr_assert_gt(count, 2);
	exec = stage_exec(
	    s, "for i in {1..60}; do head -c 3M /dev/zero | tail -c 3M | (sleep 3; cat) >/dev/null & "
	       "done 2>/dev/null; wait");
	cr_assert_neq(relay_wait_end(exec, 6 * STAGE_WAIT_MS)->kind, RELAY_NONE);
	expect_same_family(s, before, count);
	stage_expect_end(stage_exec(s, "exit 4"), 4);
}

/* Does it in a cgroup that the test makes; prepare is the worker's (worker.h). */
static void in_a_cgroup(const char *bytes, void (*pressure)(struct stage *s), const char *const *settings,
			void (*prepare)(void))
{
	struct cgroup cgroup;
	struct stage *s;

	if (geteuid() != 0 || !cgroup_enter_memory(&cgroup, bytes))
		cr_skip_test("no memory cgroup of our own");
	s = stage_prepare();
	worker_start_prepared(&s->worker, s->relay, settings, prepare);
	stage_reattach(s);
	pressure(s);
	stage_close(s);
	cr_assert(cgroup_leave(&cgroup));
}

Test(oom, ends_a_command_of_root_and_nothing_of_the_worker)
{
	in_a_cgroup(LIMIT_256M, press, WORKER_SETTINGS(), NULL);
}

Test(oom, ends_a_command_of_another_user_and_nothing_of_the_worker)
{
	in_a_cgroup(LIMIT_256M, press, WORKER_SETTINGS("SANDBOX_USER=65532:65532", "SANDBOX_BACKGROUND=kill"),
		    NULL);
}

Test(oom, ends_a_command_and_nothing_of_a_worker_without_privilege)
{
	in_a_cgroup(LIMIT_256M, press, WORKER_SETTINGS(), worker_without_privilege);
}

Test(oom, ends_many_small_processes_before_any_of_the_worker)
{
	in_a_cgroup(LIMIT_96M, press_by_many, WORKER_SETTINGS(), worker_without_privilege);
}
