/* A handful of test_workloads.c through the whole worker: filters, Landlock, limits and pipes together. */
#include "tests/lib/filter.h"
#include "tests/lib/stage.h"

#include "common/landlock.h"

#include <criterion/criterion.h>

TestSuite(worker_workloads, .timeout = 90, .fini = stage_fini);

static const char *const modes[] = {"SANDBOX_BACKGROUND=keep", "SANDBOX_BACKGROUND=kill"};

static void run(const char *const *tools, const char *script)
{
	for (; *tools; tools++) {
		if (!filter_finds(*tools))
			cr_skip_test("no %s", *tools);
	}
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		struct stage *s = stage_open(WORKER_SETTINGS(modes[i]));
		struct relay_exec *exec = stage_exec(s,
						     "set -eEuo pipefail; mkdir -m 700 %s/w; cd %s/w; export "
						     "HOME=$PWD; { %s\n} >&2; echo done",
						     s->folder, s->folder, script);
		const struct relay_terminal *end = relay_wait_end(exec, 40000);

		cr_assert(end->kind == RELAY_END && end->exit_code == 0, "%s: exit code %d: %.*s", modes[i],
			  end->exit_code, (int)exec->err.size, (const char *)exec->err.at);
		stage_expect_out(exec, "done\n");
		stage_close(s);
	}
}

#define TOOLS(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(worker_workloads, git)
{
	run(TOOLS("git"),
	    "git init -q a; cd a; git config user.name n; git config user.email e@e; echo x >f; "
	    "git add .; git commit -qm m; cd ..; git clone -q a b; cmp a/f b/f; git -C b gc -q");
}

Test(worker_workloads, python)
{
	run(TOOLS("python3"), "cat >m.py <<'E'\n"
			      "import multiprocessing, threading\n"
			      "def f(x): return x * x\n"
			      "if __name__ == '__main__':\n"
			      "    t = threading.Thread(target=f, args=(1,)); t.start(); t.join()\n"
			      "    with multiprocessing.Pool(2) as p: assert p.map(f, [3]) == [9]\n"
			      "E\n"
			      "python3 m.py; python3 -m venv --without-pip v; v/bin/python -c pass");
}

Test(worker_workloads, gcc_and_make)
{
	run(TOOLS("gcc", "make"),
	    "printf '#include <stdio.h>\\nint main(void){puts(\"hi\");return 0;}\\n' >a.c; "
	    "printf 'a: a.c\\n\\tgcc -O2 -pipe a.c -o a\\n' >Makefile; make -j2; ./a");
}

Test(worker_workloads, curl_to_loopback)
{
	run(TOOLS("curl", "python3"),
	    "python3 -u -m http.server --bind 127.0.0.1 0 >log 2>&1 & until p=$(grep -o 'port [0-9]*' log); "
	    "do "
	    "sleep 0.05; done; echo text >f; curl -sSf http://127.0.0.1:${p#port }/f | cmp - f; kill %1");
}

Test(worker_workloads, strace_and_gdb_of_their_own_children)
{
	if (landlock_abi() < LANDLOCK_ABI_REFER)
		cr_skip_test("no Landlock, so no ptrace");
	run(TOOLS("strace"), "strace -f -o t bash -c 'cat /etc/passwd >/dev/null'; grep -q /etc/passwd t");
	run(TOOLS("gdb"), "gdb -q -batch -ex 'run' --args true >o 2>&1; grep -q 'exited normally' o");
}
