/* The manual's table of what a command can do to whom (sandbox-worker(7), WHO CAN DO WHAT), cell by cell,
 * from within commands of a whole worker. Each test is a mode and a pair of users; tests/run runs them as
 * root and as an unprivileged user. */
#include "common/landlock.h"
#include "tests/lib/program.h"
#include "tests/lib/outer.h"
#include "tests/lib/space.h"
#include "tests/lib/stage.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(tenant, .timeout = 60, .fini = stage_fini);

/* What tests/policy/tenant.c prints for one: s signal, t trace and memory, l look into /proc, p priorities
 * and limits, c bind to a CPU, o oom_score_adj. */
struct rights {
	const char *execd, *netd, *slot, *warden, *other, *own;
};

#define NOTHING "......"
#define OWN     "stl.co"

static void need_scopes(void)
{
	if (landlock_abi() < LANDLOCK_ABI_SCOPE)
		cr_skip_test("no Landlock with scopes");
}

static void need_landlock(void)
{
	if (landlock_abi() < LANDLOCK_ABI_REFER)
		cr_skip_test("no Landlock");
}

static void expect(const struct relay_exec *exec, const char *name, const char *rights)
{
	char want[64], *out = strndup((const char *)exec->out.at, exec->out.size);

	snprintf(want, sizeof want, "%s %s [", name, rights);
	cr_expect(strstr(out, want), "not \"%s\": %s", want, out);
	free(out);
}

static void expect_rights_of(const char *program, const char *const *settings, const struct rights *r)
{
	struct relay_exec *other, *exec;
	struct stage *s = stage_prepare();

	worker_start_program(&s->worker, s->relay, program, settings);
	stage_reattach(s);
	other = stage_exec(s, "printf '%%-7d\n' $$; exec sleep %s", s->mark);
	cr_assert(relay_wait_bytes(other, 8, STAGE_WAIT_MS));
	exec = stage_exec(
	    s,
	    "sleep %s & %s execd=%d netd=%d warden=%d slot=$PPID other=%.7s own=$!; r=$?; kill $!; exit $r",
	    s->mark, program_built("tests/tenant"), s->worker.pid, worker_netd(&s->worker),
	    process_child(s->worker.pid, "warden"), (const char *)other->out.at);
	stage_expect_end(exec, 0);
	expect(exec, "execd", r->execd);
	expect(exec, "netd", r->netd);
	expect(exec, "warden", r->warden);
	expect(exec, "slot", r->slot);
	expect(exec, "other", r->other);
	expect(exec, "own", r->own);
	stage_close(s);
}

static void expect_rights(const char *const *settings, const struct rights *r)
{
	expect_rights_of("execd", settings, r);
}

static const char *const keep[] = {"SANDBOX_BACKGROUND=keep", NULL};
static const char *const keep_apart[] = {"SANDBOX_BACKGROUND=keep", "SANDBOX_USER=65532:65532", NULL};
static const char *const kill_all[] = {"SANDBOX_BACKGROUND=kill", NULL};
static const char *const kill_apart[] = {"SANDBOX_BACKGROUND=kill", "SANDBOX_USER=65532:65532", NULL};

/* Uid 0 for all but netd. What it owns, it may write: each oom_score_adj, which asks for nothing else. */
static const struct rights root_keep = {
    .execd = ".....o", .netd = ".....o", .slot = "s...co", .warden = "s...co", .other = "stl.co", .own = OWN};
static const struct rights root_kill = {
    .execd = ".....o", .netd = ".....o", .slot = "....co", .warden = "....co", .other = "....co", .own = OWN};
static const struct rights root_old = {
    .execd = ".....o", .netd = ".....o", .slot = ".....o", .warden = ".....o", .other = "stl.co", .own = OWN};

/* One uid without privileges for all. */
static const struct rights one_keep = {
    .execd = "....c.", .netd = "....c.", .slot = "s...c.", .warden = "s...c.", .other = "stl.co", .own = OWN};
static const struct rights one_kill = {
    .execd = "....c.", .netd = "....c.", .slot = "....c.", .warden = "....c.", .other = "....co", .own = OWN};
static const struct rights one_old = {
    .execd = NOTHING, .netd = NOTHING, .slot = NOTHING, .warden = NOTHING, .other = "stl.co", .own = OWN};

/* Started as root, the commands another user's. */
static const struct rights apart_keep = {
    .execd = NOTHING, .netd = NOTHING, .slot = "s...c.", .warden = "s...c.", .other = "stl.co", .own = OWN};
static const struct rights apart_kill = {
    .execd = NOTHING, .netd = NOTHING, .slot = "....c.", .warden = "....c.", .other = "....co", .own = OWN};
static const struct rights apart_old = {
    .execd = NOTHING, .netd = NOTHING, .slot = NOTHING, .warden = NOTHING, .other = "stl.co", .own = OWN};

static void need_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("not root");
}

Test(tenant, keep_of_one_user)
{
	need_scopes();
	expect_rights(keep, geteuid() == 0 ? &root_keep : &one_keep);
}

Test(tenant, kill_of_one_user)
{
	need_scopes();
	expect_rights(kill_all, geteuid() == 0 ? &root_kill : &one_kill);
}

Test(tenant, keep_of_two_users)
{
	need_root();
	need_scopes();
	expect_rights(keep_apart, &apart_keep);
}

Test(tenant, kill_of_two_users)
{
	need_root();
	need_scopes();
	expect_rights(kill_apart, &apart_kill);
}

Test(tenant, keep_of_one_user_in_a_container)
{
	need_scopes();
	outer_container();
	expect_rights(keep, geteuid() == 0 ? &root_keep : &one_keep);
}

Test(tenant, kill_of_one_user_in_a_container)
{
	need_scopes();
	outer_container();
	expect_rights(kill_all, geteuid() == 0 ? &root_kill : &one_kill);
}

Test(tenant, keep_of_two_users_in_a_container)
{
	need_root();
	need_scopes();
	outer_container();
	expect_rights(keep_apart, &apart_keep);
}

Test(tenant, kill_of_two_users_in_a_container)
{
	need_root();
	need_scopes();
	outer_container();
	expect_rights(kill_apart, &apart_kill);
}

Test(tenant, keep_of_one_user_without_landlock)
{
	outer_no_landlock();
	expect_rights(keep, geteuid() == 0 ? &root_old : &one_old);
}

Test(tenant, kill_of_one_user_without_landlock)
{
	outer_no_landlock();
	expect_rights(kill_all, geteuid() == 0 ? &root_old : &one_old);
}

Test(tenant, keep_of_two_users_without_landlock)
{
	need_root();
	outer_no_landlock();
	expect_rights(keep_apart, &apart_old);
}

Test(tenant, kill_of_two_users_without_landlock)
{
	need_root();
	outer_no_landlock();
	expect_rights(kill_apart, &apart_old);
}

/* --- Landlock ABI 5: domains without scopes --- */

static void expect_old_rights(const char *const *settings, struct rights r, const char *other)
{
	need_landlock();
	r.other = other;
	expect_rights_of("tests/old/execd", settings, &r);
}

Test(tenant, keep_of_one_user_without_scopes)
{
	expect_old_rights(keep, geteuid() == 0 ? root_old : one_old, "stl.co");
}

Test(tenant, kill_of_one_user_without_scopes)
{
	expect_old_rights(kill_all, geteuid() == 0 ? root_old : one_old, "s...co");
}

Test(tenant, keep_of_two_users_without_scopes)
{
	need_root();
	expect_old_rights(keep_apart, apart_old, "stl.co");
}

Test(tenant, kill_of_two_users_without_scopes)
{
	need_root();
	expect_old_rights(kill_apart, apart_old, "s...co");
}

/* --- execd as process 1 --- */

static void enter_pid_namespace(void)
{
	if (unshare(CLONE_NEWPID) < 0)
		cr_skip_test("needs CAP_SYS_ADMIN");
}

static void without_privilege_in_own_proc(void)
{
	space_own_proc();
	worker_without_privilege();
}

/* prepare: as of worker_start_prepared. */
static void expect_rights_on_init_of(void (*prepare)(void), const char *const *settings, const char *rights)
{
	struct stage *s = stage_prepare();
	struct relay_exec *exec;

	worker_start_prepared(&s->worker, s->relay, settings, prepare);
	stage_reattach(s);
	exec = stage_exec(s, "%s init=1:1", program_built("tests/tenant"));
	stage_expect_end(exec, 0);
	expect(exec, "init", rights);
	stage_close(s);
}

static void expect_rights_on_init(const char *const *settings, const char *rights)
{
	expect_rights_on_init_of(space_own_proc, settings, rights);
}

Test(tenant, init_of_one_user)
{
	enter_pid_namespace();
	need_scopes();
	expect_rights_on_init(keep, "....co");
}

Test(tenant, init_of_one_user_that_kills_all)
{
	enter_pid_namespace();
	need_scopes();
	expect_rights_on_init(kill_all, "....co");
}

Test(tenant, init_of_two_users)
{
	enter_pid_namespace();
	need_scopes();
	expect_rights_on_init(keep_apart, NOTHING);
}

Test(tenant, init_of_two_users_that_kills_all)
{
	enter_pid_namespace();
	need_scopes();
	expect_rights_on_init(kill_apart, NOTHING);
}

Test(tenant, init_of_one_user_without_landlock)
{
	enter_pid_namespace();
	outer_no_landlock();
	expect_rights_on_init(keep, ".....o");
}

Test(tenant, init_of_two_users_without_landlock)
{
	enter_pid_namespace();
	outer_no_landlock();
	expect_rights_on_init(kill_apart, NOTHING);
}

Test(tenant, init_of_one_unprivileged_user)
{
	enter_pid_namespace();
	need_scopes();
	expect_rights_on_init_of(without_privilege_in_own_proc, keep, "....c.");
}

Test(tenant, init_of_one_unprivileged_user_that_kills_all)
{
	enter_pid_namespace();
	need_scopes();
	expect_rights_on_init_of(without_privilege_in_own_proc, kill_all, "....c.");
}

Test(tenant, init_of_one_unprivileged_user_without_landlock)
{
	enter_pid_namespace();
	outer_no_landlock();
	expect_rights_on_init_of(without_privilege_in_own_proc, keep, NOTHING);
}

/* --- what would outlive its answer, on a kernel whose Landlock has no scope --- */

Test(tenant, that_would_end_the_worker_is_refused_without_landlock)
{
	struct relay_exec *exec;
	struct stage *s;

	outer_no_landlock();
	s = stage_open(kill_all);
	exec = stage_exec(
	    s,
	    "for p in %d %d -%d -%d $PPID -1; do kill -9 -- $p && echo $p; kill -STOP -- $p && echo $p; "
	    "done; "
	    "kill -0 0 && sleep 100 & kill $!; exit 5",
	    s->worker.pid, process_child(s->worker.pid, "warden"), s->worker.pid,
	    (int)getpgid(s->worker.pid));
	stage_expect_end(exec, 5);
	cr_assert_eq(exec->out.size, 0, "%.*s", (int)exec->out.size, (const char *)exec->out.at);
	stage_close(s);
}
