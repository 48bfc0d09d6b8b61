/* What agents run, below execd's and the commands' filters. */
#include "policy/policy.h"
#include "tests/lib/filter.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static char out[65536];

/* tools: programs and files without which the test is skipped by their name, NULL-ended. */
static void run(const struct seccomp_program *commands, const char *const *tools, const char *script)
{
	const struct seccomp_program *const filters[] = {&policy_execd, commands, NULL};
	char whole[8192];
	int status;

	for (; *tools; tools++) {
		if (!filter_finds(*tools))
			cr_skip("no %s", *tools);
	}
	snprintf(whole, sizeof whole,
		 "set -eEuo pipefail\ntrap 'echo line $LINENO: $BASH_COMMAND' ERR\n%s\necho '#done'", script);
	status = filter_script(filters, whole, out, sizeof out);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0 && strstr(out, "#done"), "status %#x:\n%s",
		  status, out);
}

#define TOOLS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define WORKLOAD(name, tools, script)                                                                        \
	Test(workloads, name, .timeout = 100)                                                                \
	{                                                                                                    \
		run(&policy_commands, tools, script);                                                        \
	}
#define TRACED_WORKLOAD(name, tools, script)                                                                 \
	Test(workloads, name, .timeout = 100)                                                                \
	{                                                                                                    \
		run(&policy_commands_ptrace, tools, script);                                                 \
	}

/* row 23 of "right in the field" (tests/contract/test_field.c): python3, curl and git are below. */
WORKLOAD(bash_pipes_and_jobs, TOOLS("bash"),
	 "[ $(seq 100 | sort -rn | head -n 1 || true) = 100 ]\n"
	 "diff <(echo a) <(echo a)\n"
	 "coproc cat; echo x >&${COPROC[1]}; read -r l <&${COPROC[0]}; [ $l = x ]; kill $COPROC_PID; wait || "
	 "true\n"
	 "sleep 100 & kill -STOP $!; kill -CONT $!; kill $!; wait $! || [ $? = 143 ]\n"
	 "trap 'echo usr1 >f' USR1; kill -USR1 $$; [ $(cat f) = usr1 ]\n"
	 "ulimit -n 100; [ $(ulimit -n) = 100 ]; ulimit -c 0; umask 077\n"
	 "cat <<<word; mkfifo p; echo y >p & read -r l <p; [ $l = y ]\n"
	 "exec 5<>/dev/null; set -m; (exit 3) & wait $! || [ $? = 3 ]")

WORKLOAD(coreutils, TOOLS("timeout", "nice", "stdbuf", "nohup", "setsid", "xargs"),
	 "timeout 5 true; timeout 0.1 sleep 5 || [ $? = 124 ]\n"
	 "nice -n 5 true; stdbuf -oL echo x; nohup true; setsid -w true\n"
	 "seq 20 | xargs -P 4 -n 1 echo >/dev/null\n"
	 "cp -a /etc/passwd h; mv h i; ln i j; ln -s i k; touch -d yesterday i; chmod 600 i; stat i; sync i; "
	 "truncate -s 1M i\n"
	 "dd if=/dev/zero of=z bs=64k count=4 status=none; sha256sum z; split -b 64k z; cat x?? | cmp - z; "
	 "shred -n 1 z\n"
	 "df . ; du -s . ; date; uname -a; id; tty || true; nproc; uptime || true; mktemp; install -d d; "
	 "sort --parallel=2 /etc/passwd")

WORKLOAD(own_priorities, TOOLS("taskset", "ionice", "chrt", "prlimit", "nice"),
	 "taskset -c 0 true; taskset -cp $$; ionice -c 3 true; chrt --batch 0 true; chrt -p $$; prlimit "
	 "--nofile=64 true\n"
	 "prlimit --pid $$ --nofile\n" /* reading another's is allowed */
	 "! prlimit --pid $$ --nofile=64; ! ionice -c 3 -p $$")

WORKLOAD(getent, TOOLS("getent"),
	 "getent passwd root >/dev/null; getent group root >/dev/null; ! getent passwd no-such-user")

WORKLOAD(getent_hosts, TOOLS("getent", "/etc/hosts"), "getent hosts localhost >/dev/null")

WORKLOAD(flock, TOOLS("flock"), "flock l echo a; flock -n l true; (flock 9; echo b) 9>l")

WORKLOAD(git, TOOLS("git"),
	 "git init -q a; cd a; git config user.name n; git config user.email e@e\n"
	 "for i in 1 2 3; do echo $i >f$i; git add .; git commit -qm $i; done\n"
	 "cd ..; git clone -q a b; cd b; git log --oneline | wc -l | grep -qx 3; git gc -q; git fsck; git "
	 "stash list; git grep 1")

WORKLOAD(
    python_threads_and_processes, TOOLS("python3"),
    "cat >m.py <<'E'\n"
    "import asyncio, multiprocessing, os, select, signal, socket, subprocess, tempfile, threading, mmap, "
    "ctypes\n"
    "from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor\n"
    "def f(x): return x * x\n"
    "async def sub():\n"
    "    p = await asyncio.create_subprocess_exec('echo', 'x', stdout=-1)\n"
    "    return (await p.communicate())[0]\n"
    "if __name__ == '__main__':\n"
    "    t = threading.Thread(target=f, args=(1,)); t.start(); t.join()\n"
    "    with ThreadPoolExecutor(4) as e: assert list(e.map(f, [1, 2])) == [1, 4]\n"
    "    for m in ('fork', 'spawn', 'forkserver'):\n"
    "        with multiprocessing.get_context(m).Pool(2) as p: assert p.map(f, [3]) == [9]\n"
    "    with ProcessPoolExecutor(2) as e: assert list(e.map(f, [4])) == [16]\n"
    "    assert asyncio.run(sub()) == b'x\\n'\n"
    "    assert subprocess.run(['true'], start_new_session=True).returncode == 0\n"
    "    a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'\n"
    "    s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); "
    "s.accept()\n"
    "    try: socket.getaddrinfo('localhost', 80)\n"
    "    except socket.gaierror: assert not os.path.exists('/etc/hosts')\n"
    "    m = mmap.mmap(-1, 4096); m[0] = 1\n"
    "    q = multiprocessing.shared_memory if hasattr(multiprocessing, 'shared_memory') else None\n"
    "    os.memfd_create('x'); os.getrandom(4); os.sched_getaffinity(0); "
    "signal.setitimer(signal.ITIMER_REAL, 0)\n"
    "    os.posix_spawn('/bin/true', ['true'], os.environ); os.wait(); os.pidfd_open(os.getpid())\n"
    "E\n"
    "python3 m.py; python3 -c 'import sqlite3; sqlite3.connect(\"x.db\").execute(\"create table t(a)\")'")

WORKLOAD(
    python_venv, TOOLS("python3"),
    "python3 -m venv --without-pip v; ./v/bin/python -c 'import sys; assert sys.prefix != sys.base_prefix'")

WORKLOAD(gcc_and_make, TOOLS("gcc", "make"),
	 "printf '#include <stdio.h>\\nint main(void){puts(\"hi\");return 0;}\\n' >a.c\n"
	 "printf 'all: a b c\\n%%: a.c\\n\\tgcc -O2 -pipe $< -o $@\\n' >Makefile\n"
	 "make -j3; ./a; ./c; strip a; ldd a || true")

WORKLOAD(threads_of_cxx, TOOLS("g++"),
	 "printf '#include <thread>\\n#include <future>\\nint main(){std::thread t([]{});t.join();"
	 "return std::async(std::launch::async,[]{return 0;}).get();}\\n' >t.cc\n"
	 "g++ -pthread t.cc -o t; ./t")

WORKLOAD(
    node_with_workers, TOOLS("node"),
    "cat >m.js <<'E'\n"
    "const { Worker, isMainThread, parentPort } = require('worker_threads')\n"
    "const { execFileSync, fork } = require('child_process'), http = require('http'), fs = require('fs')\n"
    "if (!isMainThread) parentPort.postMessage(1)\n"
    "else if (process.argv[2] === 'child') process.send(2)\n"
    "else {\n"
    "  execFileSync('true'); fs.writeFileSync('f', 'x'); fs.watch('.').close()\n"
    "  let left = 3; const done = () => { if (--left === 0) process.exit(0) }\n"
    "  new Worker(__filename).on('message', done)\n"
    "  fork(__filename, ['child']).on('message', done)\n"
    "  const s = http.createServer((q, r) => r.end('hi')).listen(0, '127.0.0.1', () =>\n"
    "    http.get({ host: '127.0.0.1', port: s.address().port }, r => r.resume().on('end', done)))\n"
    "  setTimeout(() => process.exit(1), 60000)\n"
    "}\n"
    "E\n"
    "node m.js; node -p 'new Function(\"return 1+1\")()'")

WORKLOAD(java, TOOLS("java"), "java -version; java -Xshare:auto -XshowSettings:vm -version")

WORKLOAD(perl, TOOLS("perl"), "perl -e 'my $p = fork; if (!$p) { exit 3 } waitpid $p, 0; exit($? >> 8 != 3)'")

WORKLOAD(tar_and_zip, TOOLS("tar", "gzip"),
	 "mkdir d; cp /etc/passwd d; tar cf - d | gzip >d.tgz; mkdir e; tar xzf d.tgz -C e; cmp d/passwd "
	 "e/d/passwd; tar -cJf d.txz d || true")

WORKLOAD(rsync, TOOLS("rsync"),
	 "mkdir d; cp /etc/passwd d; rsync -a d/ e/; cmp d/passwd e/passwd; rsync -aH --delete d/ e/")

WORKLOAD(curl_to_loopback, TOOLS("curl", "python3"),
	 "cat >s.py <<'E'\n"
	 "import http.server, os\n"
	 "s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
	 "print(s.server_address[1], file=open('tmp', 'w')); os.rename('tmp', 'port'); s.serve_forever()\n"
	 "E\n"
	 "python3 s.py >log 2>&1 & until [ -e port ]; do sleep 0.05; done\n"
	 "curl -sSf http://127.0.0.1:$(cat port)/port | cmp - port; curl -sSf http://localhost:$(cat "
	 "port)/port -o o; kill %1")

WORKLOAD(sqlite, TOOLS("sqlite3"),
	 "sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values(1); select a from "
	 "t; pragma integrity_check'")

WORKLOAD(openssl_and_keys, TOOLS("openssl", "ssh-keygen"),
	 "openssl rand -hex 8; openssl genpkey -algorithm ed25519 -out k\n"
	 "! id -un || ssh-keygen -q -t ed25519 -N '' -f s" /* it wants a user with a name */)

WORKLOAD(terminals, TOOLS("script", "tmux"),
	 "script -qec 'stty size; tty' /dev/null </dev/null\n"
	 "tmux -S $PWD/t new-session -d 'echo x >f; sleep 20'; until [ -e f ]; do sleep 0.05; done; tmux -S "
	 "$PWD/t kill-server")

/* FIOASYNC and F_SETOWN: its master and worker talk that way. */
WORKLOAD(
    nginx, TOOLS("nginx", "curl"),
    "cat >n.conf <<E\n"
    "daemon off; master_process on; worker_processes 2; error_log stderr; pid $PWD/pid;\n"
    "events { worker_connections 32; }\n"
    "http { access_log off; client_body_temp_path $PWD/c; proxy_temp_path $PWD/p; fastcgi_temp_path $PWD/f;\n"
    "uwsgi_temp_path $PWD/u; scgi_temp_path $PWD/s; server { listen unix:$PWD/sock; location / { return 200 "
    "hi; } } }\n"
    "E\n"
    "chmod 755 .; nginx -p $PWD -c $PWD/n.conf -g 'error_log stderr;' >log 2>&1 & until [ -S sock ]; do "
    "sleep 0.05; done\n"
    "[ $(curl -sS --unix-socket sock http://x/) = hi ]; kill -HUP %1; kill -QUIT %1; wait %1 || true; ! grep "
    "-q 'failed\\|emerg' log")

WORKLOAD(apt_get, TOOLS("apt-get"),
	 "apt-get --print-uris -o Dir::State=$PWD -o Dir::Cache=$PWD update; apt-get --version; dpkg -l bash")

WORKLOAD(process_tools, TOOLS("ps", "pgrep", "free", "ip"),
	 "ps aux | head -n 3 || true; pgrep bash; free; ip addr; ip route || true")

TRACED_WORKLOAD(
    strace_of_its_own_child, TOOLS("strace"),
    "strace -f -o t bash -c 'cat /etc/passwd >/dev/null; exit 3' || [ $? = 3 ]; grep -q "
    "'openat(.*\"/etc/passwd\"' t\n"
    "strace -c -o c true; sleep 20 & strace -o a -p $! 2>e & until grep -q attached e; do sleep 0.05; done\n"
    "kill %1; wait || true; grep -q SIGTERM a")

TRACED_WORKLOAD(
    gdb_of_its_own_child, TOOLS("gdb", "gcc"),
    "printf 'int f(int a){return a+1;}\\nint main(void){return f(6);}\\n' >a.c; gcc -g -O0 a.c -o a\n"
    "gdb -q -batch -ex 'break f' -ex run -ex 'print a' -ex continue ./a >o 2>&1; grep -q '= 6' o; grep -q "
    "'exited with code 07' o")

WORKLOAD(strace_is_told_no_without_landlock, TOOLS("strace"),
	 "strace -o t true 2>e && exit 1; grep -q 'Operation not permitted' e")
