"""Our worker and our relay with what stands between them in the field: nginx, HAProxy and nghttpx, each with time-outs for
what the worker sends that are shorter than the test. suite-timeout: 200

A relay is silent for as long as it has no work, and no worker can change that: nginx's grpc_read_timeout, 60 s by default,
and nghttpx's backend-read-timeout run in the relay's silence and have to be long."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
RELAY = os.path.join(BUILD, "test-relay")
EXECD = os.path.join(BUILD, "execd")

IDLE_S = 3  # the proxies cut what is silent for longer

NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log stderr warn;
events {{}}
http {{
  access_log off; client_max_body_size 0; client_body_timeout {idle}s; keepalive_timeout {idle}s;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} http2;
    location / {{ grpc_pass grpc://127.0.0.1:{relay}; grpc_read_timeout 1h; grpc_send_timeout {idle}s; }}
  }}
}}
"""

HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client {idle}s
  timeout server {idle}s
frontend f
  bind 127.0.0.1:{port} proto h2
  default_backend b
backend b
  server relay 127.0.0.1:{relay} proto h2
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, why, seconds=20):
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise AssertionError(why)
        time.sleep(0.02)


def accepts(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Middlebox:
    """What holds behind each of them. command(folder, port, relay) starts it."""

    program = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.processes = []
        self.relay_log = os.path.join(self.folder, "relay.log")
        relay = self.start([RELAY, "serve", "--listen", "127.0.0.1:0", "--token", "token"], self.relay_log)
        wait_for(lambda: "listening" in self.log(), "the relay does not listen")
        self.relay_port = int(re.search(r"listening on port (\d+)", self.log())[1])
        port = free_port()
        self.start(self.command(self.folder, port, self.relay_port), os.path.join(self.folder, "proxy.log"))
        wait_for(lambda: accepts(port), f"{self.program} does not listen")
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")}
        kept.update(RELAY_ADDR=f"127.0.0.1:{port}", SANDBOX_ID="sbx", SANDBOX_TOKEN="token", HEARTBEAT_S="1")
        self.worker = self.start([EXECD], os.path.join(self.folder, "worker.log"), kept)
        self.assertIsNone(relay.poll())
        wait_for(lambda: self.attached() == 1, "the worker has not attached")

    def tearDown(self):
        self.worker.send_signal(signal.SIGTERM)
        code = self.worker.wait(10)
        for process in reversed(self.processes[:-1]):
            process.send_signal(signal.SIGTERM)
            process.wait(10)
        shutil.rmtree(self.folder)
        self.assertEqual(code, 0)

    def start(self, argv, log, env=None):
        with open(log, "wb") as f:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=f, stderr=f, env=env)
        self.processes.append(process)
        return process

    def log(self):
        with open(self.relay_log, encoding="utf-8") as f:
            return f.read()

    def attached(self):
        return self.log().count("msg=attached")

    def client(self, *args):
        return [RELAY, "exec", "--relay", f"127.0.0.1:{self.relay_port}", "--sandbox-id", "sbx", *args]

    def exec(self, *args, stdin=None):
        return subprocess.run(self.client(*args), input=stdin, capture_output=True, timeout=60, check=False)

    def test_carries_everything(self):
        done = self.exec("echo out; echo err >&2; exit 7")
        self.assertEqual((done.stdout, done.stderr), (b"out\n", b"err\nexit code 7\n"))
        data = os.urandom(15 << 20)
        done = self.exec("--stdin-file", "-", "cat", stdin=data)
        self.assertEqual((done.returncode, done.stdout), (0, data))
        self.assertEqual(self.attached(), 1)

    def test_leaves_a_stream_that_only_heartbeats_fill(self):
        time.sleep(IDLE_S * 2 + 1)  # the passing of time is what is tested
        self.assertEqual(self.exec("exit 3").stderr, b"exit code 3\n")
        self.assertEqual(self.attached(), 1, "the stream was cut")
        self.assertEqual(self.exec(f"sleep {IDLE_S * 2}; exit 4").stderr, b"exit code 4\n")
        self.assertEqual(self.attached(), 1, "the stream was cut")

    def test_lets_an_abort_through(self):
        client = subprocess.Popen(self.client("echo up; exec sleep 1000"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(client.stdout.readline(), b"up\n")
        client.send_signal(signal.SIGINT)
        self.assertEqual(client.communicate(timeout=20)[1], b"exit code -1\n")

    def test_tells_the_relay_that_the_worker_has_left(self):
        self.worker.send_signal(signal.SIGTERM)
        self.assertEqual(self.worker.wait(10), 0)
        wait_for(lambda: "msg=gone" in self.log(), "the relay keeps a ghost", 5)

    def test_tells_the_worker_that_the_relay_has_left(self):
        self.processes[0].send_signal(signal.SIGTERM)
        self.processes[0].wait(10)
        log = os.path.join(self.folder, "worker.log")

        def lost():
            with open(log, encoding="utf-8") as f:
                return "stream lost" in f.read()

        wait_for(lost, "the worker does not notice", 5)


@unittest.skipIf(shutil.which("nginx") is None, "nginx is missing")
class Nginx(Middlebox, unittest.TestCase):
    program = "nginx"

    @staticmethod
    def command(folder, port, relay):
        config = os.path.join(folder, "nginx.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write(NGINX.format(folder=folder, port=port, relay=relay, idle=IDLE_S))
        return ["nginx", "-p", folder, "-c", config]


@unittest.skipIf(shutil.which("haproxy") is None, "haproxy is missing")
class Haproxy(Middlebox, unittest.TestCase):
    program = "haproxy"

    @staticmethod
    def command(folder, port, relay):
        config = os.path.join(folder, "haproxy.cfg")
        with open(config, "w", encoding="utf-8") as f:
            f.write(HAPROXY.format(port=port, relay=relay, idle=IDLE_S))
        return ["haproxy", "-db", "-f", config]


@unittest.skipIf(shutil.which("nghttpx") is None, "nghttpx is missing")
class Nghttpx(Middlebox, unittest.TestCase):
    program = "nghttpx"

    @staticmethod
    def command(folder, port, relay):
        empty = os.path.join(folder, "nghttpx.conf")
        with open(empty, "w", encoding="utf-8"):
            pass
        return [
            "nghttpx",
            f"--conf={empty}",
            f"--frontend=127.0.0.1,{port};no-tls",
            f"--backend=127.0.0.1,{relay};;proto=h2",
            f"--frontend-http2-read-timeout={IDLE_S}s",
            "--workers=1",
            "--no-ocsp",
        ]


if __name__ == "__main__":
    unittest.main(verbosity=2)
