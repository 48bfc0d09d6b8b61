/* execd: the program that people start. It reads its settings, starts the rest, gives up what privilege it
 * does not need, and then only decides. */
#include "common/clock.h"
#include "common/drop.h"
#include "common/fd.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/seccomp.h"
#include "execd/audit.h"
#include "execd/check.h"
#include "execd/children.h"
#include "execd/config.h"
#include "execd/credentials.h"
#include "execd/environment.h"
#include "execd/execs.h"
#include "execd/init.h"
#include "execd/netd_proc.h"
#include "execd/process.h"
#include "execd/shutdown.h"
#include "execd/signals.h"
#include "execd/slot/proc.h"
#include "execd/slots.h"
#include "execd/status.h"
#include "execd/trial.h"
#include "execd/weakness.h"
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define EXIT_BAD_SETTING 2

static const char usage[] = "usage: execd [--check | --help | --version]\n"
			    "Settings come from the environment: see sandbox-worker(7).\n"
			    "  --check    say what the settings and this machine give; dial nothing\n"
			    "  --help     this\n"
			    "  --version  the version\n";

static struct config config;
static struct config_secrets *secrets;
static struct slots_plan plan;
static struct loop loop;
static void on_init_gone(struct loop_source *source, uint32_t events);
static struct loop_source init = {.fd = -1, .ready = on_init_gone};

/* Handles what needs nothing else. True for --check; does not return for the rest. */
static bool read_arguments(int argc, char **argv)
{
	if (argc == 1)
		return false;
	if (argc == 2 && strcmp(argv[1], "--check") == 0)
		return true;
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("execd " WORKER_VERSION);
		exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	fputs(usage, stderr);
	exit(EXIT_BAD_SETTING);
}

static void must(int err, const char *what)
{
	if (err < 0)
		fatalx(what, LOG_ERR(err));
}

/* step is read only after the call that sets it, whatever the order of arguments. */
static void must_step(int err, const char *what, const char *const *step)
{
	if (err < 0)
		fatalx(what, LOG_STR("step", *step), LOG_ERR(err));
}

_Noreturn static void refuse(const struct config_error *e)
{
	log_fatal(e->exit_code, "bad setting",
		  LOG_FIELDS(LOG_STR("setting", e->setting), LOG_STR("why", e->why)));
}

/* A file of the commands' policy, tried once slots are there. */
static void load_policy_file(void)
{
	static struct seccomp_program program;
	struct config_error error;
	const char *why;

	if (!config.seccomp_file[0])
		return;
	if (seccomp_read_file(config.seccomp_file, &program, &why) < 0) {
		config_refuse(&error, "SANDBOX_SECCOMP_BPF", "%s", why);
		refuse(&error);
	}
	slots_use_seccomp(&program);
}

/* Nothing is swept in a tree that was not proven to be ours: its numbers may be anybody's. */
static void find_processes(void)
{
	const char *why;

	if (proc_open(&why) < 0)
		fatalx("/proc cannot be used to find processes", LOG_STR("why", why));
}

static void read_settings(struct environment *env)
{
	struct config_error error;

	secrets = config_secrets_map();
	if (!secrets)
		fatal("no memory for secrets");
	if (config_read(env->vars, &config, secrets, &error) < 0)
		refuse(&error);
	log_init("execd", config.log_level, config.log_format);
	find_processes();
	if (config_settle(&config, &error) < 0)
		refuse(&error);
	environment_wipe(env);
	load_policy_file();
}

static void must_open(const char *setting, int err)
{
	struct config_error error;

	if (err == 0)
		return;
	config_refuse(&error, setting, "%s", err == -EINVAL ? "is not a regular file" : log_errno(err));
	refuse(&error);
}

/* Gives up what is not needed any more, then reads the files of a dial once, as a dial will. */
static void drop(void)
{
	struct config_error error;
	const char *step;

	must_step(process_drop(config.keep_caps, &step), "privileges cannot be dropped", &step);
	if (credentials_check(&config, secrets, &error) < 0)
		refuse(&error);
}

static void on_terminate(void *owner)
{
	(void)owner;
	shutdown_begin(&loop, shutdown_begun() ? 0 : config.drain_s * 1000, EXIT_SUCCESS);
}

static void on_quit(void *owner)
{
	(void)owner;
	shutdown_begin(&loop, 0, EXIT_SUCCESS);
}

static void open_again(const char *setting, int err)
{
	if (err < 0)
		log_error("cannot be opened again: the old file is kept", LOG_STR("setting", setting),
			  LOG_ERR(err));
}

static void on_hang_up(void *owner)
{
	(void)owner;
	log_info("files are opened again");
	open_again("SANDBOX_AUDIT", audit_open_again());
	open_again("STATUS_FILE", status_open_again());
}

/* A SIGKILL that was meant for us. */
static void on_init_gone(struct loop_source *source, uint32_t events)
{
	(void)events;
	log_warn("init was killed");
	loop_del(&loop, source);
	fd_close(&source->fd);
	shutdown_begin(&loop, 0, EXIT_FAILURE);
}

static void on_child(void *owner)
{
	(void)owner;
	children_reap(&loop);
}

static void on_netd_changed(void *owner)
{
	(void)owner;
	status_update();
}

static uint64_t random_seed(void)
{
	uint64_t seed;

	return getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed ? seed : clock_now_us();
}

static void on_slot(void *owner, const struct slot_event *event)
{
	if (!trial_on_slot(event))
		execs_on_slot(owner, event);
}

/* For who gives up before anything was served. */
static void leave_slots(void)
{
	uint64_t end_ms = clock_now_ms() + LIMIT_SHUTDOWN_PROOF_MS;

	slots_kill_all();
	while (!slots_all_gone() && clock_now_ms() < end_ms)
		must(loop_pass(&loop, 100), "the event loop failed");
}

static void try_command(void)
{
	struct config_error error;
	const char *why;
	int err = trial_run(&loop, &why);

	if (err == 0 || err == -EINTR)
		return;
	leave_slots();
	if (!config.seccomp_file[0])
		fatalx("commands cannot be run", LOG_STR("why", why), LOG_ERR(err));
	config_refuse(&error, "SANDBOX_SECCOMP_BPF", "%s", why);
	refuse(&error);
}

/* All that can fail: --check goes the same way, but makes no file. */
static void prepare(bool check)
{
	static const struct signals_events signals = {
	    .terminate = on_terminate, .quit = on_quit, .hang_up = on_hang_up, .child = on_child};
	const char *step;

	must_step(process_prepare(&step), "execd cannot be prepared", &step);
	must(loop_init(&loop), "no event loop");
	must(netd_proc_init(&loop, &config, secrets, random_seed(), on_netd_changed, NULL),
	     "netd cannot be found");
	slots_plan(&config, &plan);
	must_open("SANDBOX_AUDIT", check ? audit_check(config.audit) : audit_open(config.audit));
	must_open("STATUS_FILE", check ? status_check(&config) : status_open(&loop, &config, plan.killer));
	drop();
	config_warn(&config, secrets);
	if (!check)
		weakness_warn(&config, &plan);
	must(seccomp_load(&policy_execd), "the system call policy cannot be loaded");
	must(signals_start(&loop, &signals, NULL), "no signals");
	must(init.fd < 0 ? 0 : loop_add(&loop, &init, EPOLLIN), "init cannot be watched");
	must(execs_init(&loop, &config), "execs cannot be started");
	must(slots_start(&loop, &config, on_slot, NULL), "slots cannot be started");
	if (check || config.seccomp_file[0])
		try_command();
}

static void start(void)
{
	log_info("started", LOG_STR("version", WORKER_VERSION), LOG_STR("id", config.sandbox_id),
		 LOG_STR("killer", plan.killer), LOG_I64("landlock", plan.landlock_abi),
		 LOG_U64("concurrent", config.max_concurrent));
	if (!shutdown_begun())
		netd_proc_dial();
}

static void on_no_slot(struct loop_watch *watch, uint64_t now_ms)
{
	(void)watch;
	(void)now_ms;
	if (shutdown_begun())
		return;
	log_error("no slot is left that can be used");
	shutdown_begin(&loop, 0, EXIT_FAILURE);
}

/* One that may come back does so: a proof may be late, a machine short of processes for a while. */
static void watch_capacity(void)
{
	static struct loop_watch watch = {.silent = on_no_slot, .fd = -1};
	static bool watched;
	bool none = slots_capacity() == 0;

	if (none == watched)
		return;
	watched = none;
	if (none)
		loop_watch_set(&loop, &watch, LIMIT_NO_SLOT_MS);
	else
		loop_watch_stop(&watch);
}

static int run(void)
{
	int exit_code;

	while (!shutdown_done(&exit_code)) {
		must(loop_pass(&loop, -1), "the event loop failed");
		watch_capacity();
	}
	status_close();
	log_info("stopped");
	return exit_code;
}

int main(int argc, char **argv, char **envp)
{
	bool check = read_arguments(argc, argv);
	struct environment env;
	const char *step;

	log_init("execd", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	must_step(process_harden(&step), "execd cannot be hardened", &step);
	must(environment_take(envp, &env), "the environment cannot be taken");
	must(init_split(&env, &init.fd), "no process beside init");
	read_settings(&env);
	prepare(check);
	if (check) {
		check_report(&config, &plan);
		leave_slots();
		return EXIT_SUCCESS;
	}
	start();
	return run();
}
