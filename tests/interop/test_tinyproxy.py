"""Our worker through a CONNECT proxy of others': tinyproxy. The relay's name exists only where the proxy looks it up, so who
goes past the proxy does not find it. suite-timeout: 120"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pki  # noqa: E402
from middlebox import accepts, free_port  # noqa: E402
from worker import OurRelay, Worker, wait_for  # noqa: E402

NAME = "relay.invalid"
IDLE_S = 4
# A mount namespace in which the name is in /etc/hosts.
INSIDE = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"']
MISSING = None
if not shutil.which("tinyproxy"):
    MISSING = "tinyproxy is missing"
elif subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
    MISSING = "a mount namespace needs root"


class Field:
    """Our relay, tinyproxy, and a worker that is told to go through it."""

    def __init__(self, *lines, relay_options=()):
        self.folder = tempfile.mkdtemp()
        os.chmod(self.folder, 0o755)
        self.relay = OurRelay(self.path("relay.log"), options=relay_options)
        self.port = free_port()
        self.worker = None
        with open(self.path("hosts"), "w", encoding="utf-8") as f:
            f.write(f"127.0.0.1 {NAME}\n")
        with open(self.path("conf"), "w", encoding="utf-8") as f:
            f.write("\n".join([f"Port {self.port}", "Listen 127.0.0.1", "LogLevel Critical", *lines, ""]))
        with open(self.path("proxy.log"), "wb") as log:
            self.proxy = subprocess.Popen(
                [*INSIDE, self.path("hosts"), "tinyproxy", "-d", "-c", self.path("conf")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        wait_for(lambda: accepts(self.port), "tinyproxy does not listen")

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, user="", **settings):
        settings.setdefault("HTTPS_PROXY", f"http://{user}127.0.0.1:{self.port}")
        self.worker = Worker(f"{NAME}:{self.relay.port}", self.path("worker.log"), **settings)
        return self.worker

    def stop(self):
        self.worker.terminate()
        code = self.worker.wait()
        self.proxy.terminate()
        self.proxy.wait(10)
        self.relay.stop()
        shutil.rmtree(self.folder)
        return code


class Quiet(threading.Thread):
    """A silent command of twice the limit, with Heartbeats or without."""

    def __init__(self, heartbeat_s):
        super().__init__()
        self.heartbeat_s, self.attached = heartbeat_s, 0
        self.start()

    def run(self):
        field = Field(f"Timeout {IDLE_S}")
        try:
            field.start(HEARTBEAT_S=str(self.heartbeat_s))
            field.relay.wait_attached(1)
            self.says = field.relay.exec(f"sleep {IDLE_S * 2}; exit 4").stderr
            if self.heartbeat_s > IDLE_S:
                field.relay.wait_attached(2)
            self.attached, self.log = field.relay.attached(), field.worker.log()
        finally:
            field.stop()


kept = cut = None


def setUpModule():
    """They wait beside the other tests."""
    global kept, cut
    if not MISSING:
        kept, cut = Quiet(1), Quiet(3600)


def tearDownModule():
    for one in filter(None, (kept, cut)):
        one.join()


@unittest.skipIf(MISSING, MISSING)
class Tinyproxy(unittest.TestCase):
    def field(self, *lines, **more):
        field = Field(*lines, **more)
        self.addCleanup(lambda: self.assertEqual(field.stop(), 0))
        return field

    def check_works(self, field):
        field.relay.wait_attached(1)
        self.assertIn("through=proxy", field.worker.log())
        data = os.urandom(300 << 10)
        done = field.relay.exec("--stdin-file", "-", "cat", stdin=data)
        self.assertEqual((done.stdout, done.stderr), (data, b"exit code 0\n"))
        self.assertEqual(field.relay.attached(), 1)

    def check_refused(self, field, *parts, attempts=2):
        """One line an attempt says why, there is a wait between them, and the relay hears nothing."""
        field.worker.wait_log("attempt failed", attempts)
        warnings = re.findall("^netd level=(?:warn|error) .*", field.worker.log(), re.MULTILINE)[:attempts]
        self.assertEqual(len(warnings), attempts)
        for line in warnings:
            for part in ('msg="dial failed"', *parts):
                self.assertIn(part, line)
        self.assertRegex(field.worker.log(), r'msg="attempt failed" .*backoff_ms=\d+')
        self.assertEqual(field.relay.attached(), 0)

    def test_without_a_password(self):
        field = self.field()
        field.start()
        self.check_works(field)

    def test_with_a_password(self):
        field = self.field("BasicAuth user s3cret")
        field.start("user:s%33cret@")
        self.check_works(field)
        self.assertNotIn("cret", field.worker.log())

    def test_407_is_one_clear_line(self):
        field = self.field("BasicAuth user secret")
        field.start()
        self.check_refused(field, "class=proxy", "the proxy refused: 407 ", "HTTPS_PROXY right?")

    def test_a_wrong_password_is_not_logged(self):
        field = self.field("BasicAuth user secret")
        field.start("user:wrong-one@")
        self.check_refused(field, "class=proxy", "the proxy refused: 40")
        self.assertNotIn("wrong-one", field.worker.log())

    def test_a_port_that_the_proxy_does_not_allow(self):
        field = self.field("ConnectPort 443")
        field.start()
        self.check_refused(field, "class=proxy", "the proxy refused: 403 ")

    def test_no_proxy_goes_past_it(self):
        for listed in (NAME, ".invalid", "*", f"other.example,{NAME}"):
            field = self.field()
            field.start(NO_PROXY=listed)
            self.check_refused(field, "class=resolve", attempts=1)

    def test_no_proxy_of_others_does_not(self):
        field = self.field()
        field.start(NO_PROXY="other.invalid,127.0.0.1,10.0.0.0/8,.example")
        self.check_works(field)

    def test_mtls_goes_through_the_tunnel(self):
        keys = pki.Pki()
        self.addCleanup(keys.stop)
        options = ["--cert", keys["relay.pem"], "--key", keys["relay.key"], "--client-ca", keys["root.pem"]]
        field = self.field(relay_options=options)
        field.start(
            RELAY_TLS="1", RELAY_CA_FILE=keys["root.pem"], RELAY_SERVER_NAME="localhost",
            RELAY_CERT_FILE=keys["worker.pem"], RELAY_KEY_FILE=keys["worker.key"],
        )
        field.relay.wait_attached(1)
        self.assertRegex(field.worker.log(), "through=proxy security=TLS")


@unittest.skipIf(MISSING, MISSING)
class TinyproxySilence(unittest.TestCase):
    """tinyproxy's Timeout, which is for both directions together."""

    def test_heartbeats_keep_what_silence_would_cut(self):
        for one in (kept, cut):
            one.join()
        self.assertEqual((kept.says, kept.attached), (b"exit code 4\n", 1))
        self.assertNotIn(b"exit code 4", cut.says)
        self.assertGreaterEqual(cut.attached, 2, "not dialled again")
        self.assertRegex(cut.log, 'msg="connection closed" class=eof ')


if __name__ == "__main__":
    unittest.main(verbosity=2)
