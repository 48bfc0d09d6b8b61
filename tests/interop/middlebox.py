"""nginx, HAProxy and nghttpx as sandbox-worker-relay(7) says to set them up: the examples are read from the page, and only
addresses, files and limits are put in."""
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile

import sandbox_wire as wire
from worker import OurRelay, Worker, wait_for

PAGE = os.path.join(wire.ROOT, "man", "sandbox-worker-relay.7")


def example(name):
    with open(PAGE, encoding="utf-8") as f:
        found = re.search(rf'^\.\\" example {name}: .*\n\.Bd .*\n((?:.*\n)*?)\.Ed$', f.read(), re.MULTILINE)
    assert found, f"{PAGE} has no example {name}"
    return found[1]


def put_in(text, values):
    for old, new in values.items():
        assert old in text, f"the example has no {old!r} any more"
        text = text.replace(old, new)
    return text


def free_port():
    """Not of those that the kernel gives away: another connection could have it before the box listens."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) != 0:
                return port


def accepts(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Nginx:
    NAME = "nginx"
    LISTEN, LISTEN_AT = "listen 443", "listen 127.0.0.1:{}"
    FILES = ("/etc/ssl/relay.pem", "/etc/ssl/relay.key")
    AROUND = """
daemon off; worker_processes 1; pid {folder}/pid; error_log stderr warn;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  {example}
}}
"""

    @classmethod
    def command(cls, folder, config, text):
        with open(config, "w", encoding="utf-8") as f:
            f.write(cls.AROUND.format(folder=folder, example=text))
        return ["nginx", "-p", folder, "-c", config]


class Haproxy:
    NAME = "haproxy"
    LISTEN, LISTEN_AT = "bind :443", "bind 127.0.0.1:{}"
    FILES = ("/etc/haproxy/relay.pem",)

    @staticmethod
    def command(folder, config, text):
        with open(config, "w", encoding="utf-8") as f:
            f.write(text)
        return ["haproxy", "-db", "-f", config]


class Nghttpx:
    NAME = "nghttpx"
    LISTEN, LISTEN_AT = "frontend=*,443", "frontend=127.0.0.1,{}"
    FILES = ("/etc/ssl/relay.pem", "/etc/ssl/relay.key")

    @staticmethod
    def command(folder, config, text):
        with open(config, "w", encoding="utf-8") as f:
            f.write(text + "workers=1\nno-ocsp=yes\n")
        return ["nghttpx", f"--conf={config}"]


class Field:
    """Our relay, and a middlebox before it that ends TLS, with keys (a pki.Pki). The limits of 60 s that are in the example become idle_s; changes
    are further replacements in it."""

    def __init__(self, box, keys, idle_s=60, changes=None):
        self.box = box
        self.folder = tempfile.mkdtemp()
        os.chmod(self.folder, 0o755)
        self.root = keys["root.pem"]
        self.relay = OurRelay(self.path("relay.log"))
        self.port = free_port()
        self.workers = []
        files = {"/etc/ssl/relay.pem": "relay.pem", "/etc/ssl/relay.key": "relay.key", "/etc/haproxy/relay.pem": "both.pem"}
        with open(keys["both.pem"], "wb") as f:
            f.write(keys.read("relay.pem") + keys.read("relay.key"))
        values = {
            **(changes or {}),
            box.LISTEN: box.LISTEN_AT.format(self.port),
            **{name: keys[files[name]] for name in box.FILES},
            "relay.internal": "127.0.0.1",
            "8443": str(self.relay.port),
            "60s": f"{idle_s}s",
        }
        self.argv = box.command(self.folder, self.path("config"), put_in(example(box.NAME), values))
        self.start_box()

    def path(self, name):
        return os.path.join(self.folder, name)

    def start_box(self):
        with open(self.path("box.log"), "ab") as f:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=f, stderr=f)
        wait_for(lambda: accepts(self.port), self.silence)

    def silence(self):
        with open(self.path("box.log"), encoding="utf-8", errors="replace") as f:
            return f"{self.box.NAME} does not listen (exit code {self.process.poll()}): {f.read()[-500:]}"

    def stop_box(self):
        self.process.terminate()
        self.process.wait(10)

    def worker(self, heartbeat_s=1):
        worker = Worker(
            f"localhost:{self.port}", self.path("worker.log"), HEARTBEAT_S=str(heartbeat_s), RELAY_TLS="1",
            RELAY_CA_FILE=self.root,
        )
        self.workers.append(worker)
        self.relay.wait_attached(1)
        return worker

    def stop(self):
        """The exit codes of the workers."""
        for worker in self.workers:
            worker.terminate()
        codes = [worker.wait() for worker in self.workers]
        self.stop_box()
        self.relay.stop()
        shutil.rmtree(self.folder)
        return codes
