"""Our worker and our relay with what stands between them in the field: nginx, HAProxy and nghttpx, set up as
sandbox-worker-relay(7) says. suite-timeout: 240"""
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pki  # noqa: E402
from middlebox import Field, Haproxy, Nghttpx, Nginx  # noqa: E402
from worker import wait_for  # noqa: E402

IDLE_S = 4


class Quiet(threading.Thread):
    """A worker that says nothing but Heartbeats, or not even those for an hour, behind a middlebox of its own (nghttpx would
    carry both over one connection). It has run a command, so the response has begun; then it runs one that is silent for twice
    the limit (first: what its harness says), and at last one more, once there is a stream (then)."""

    def __init__(self, box, heartbeat_s, changes=None):
        super().__init__()
        self.field = Field(box, keys, IDLE_S, changes)
        self.worker = self.field.worker(heartbeat_s=heartbeat_s)
        assert self.exec("exit 3") == b"exit code 3\n"
        self.first = self.then = None
        self.start()

    def exec(self, command):
        return self.field.relay.exec(command).stderr

    def run(self):
        self.first = self.exec(f"sleep {IDLE_S * 2}; exit 4")
        deadline = time.monotonic() + 20
        while self.then != b"exit code 5\n" and time.monotonic() < deadline:
            self.then = self.exec("exit 5")
            time.sleep(0.05)

    def stop(self):
        self.join()
        self.field.stop()


quiet = {}
keys = None


def setUpModule():
    """All wait for their limits at the same time, and beside the other tests."""
    global keys
    if pki.MISSING:
        raise unittest.SkipTest(pki.MISSING)
    keys = pki.Pki()
    for case in (SilenceNginx, SilenceHaproxy, SilenceNghttpx):
        if shutil.which(case.box.NAME):
            quiet[case.box, "kept"] = Quiet(case.box, 1)
            quiet[case.box, "cut"] = Quiet(case.box, 3600)
            if case.BEYOND:
                quiet[case.box, "beyond"] = Quiet(case.box, 1, dict([case.BEYOND[0]]))


def tearDownModule():
    for one in quiet.values():
        one.stop()
    keys.stop()


def closed(worker):
    """netd's lines about the ends of its connections."""
    return [line for line in worker.log().splitlines() if 'msg="connection closed"' in line]


class Middlebox:
    """What holds behind each of them."""

    box = None

    def setUp(self):
        if not shutil.which(self.box.NAME):
            self.skipTest(f"{self.box.NAME} is missing")
        self.field = Field(self.box, keys)
        self.relay = self.field.relay
        self.worker = self.field.worker()

    def tearDown(self):
        self.assertEqual(self.field.stop(), [0])

    def test_carries_everything(self):
        done = self.relay.exec("echo out; echo err >&2; exit 7")
        self.assertEqual((done.stdout, done.stderr), (b"out\n", b"err\nexit code 7\n"))
        data = os.urandom(15 << 20)
        done = self.relay.exec("--stdin-file", "-", "cat", stdin=data)
        self.assertEqual((done.returncode, done.stdout), (0, data))
        self.assertEqual(self.relay.attached(), 1)

    def test_carries_64_mib_of_output(self):
        path, hashed = self.field.path("data"), hashlib.sha256()
        with open(path, "wb") as f:
            for _ in range(64):
                f.write(os.urandom(1 << 20))
                f.flush()
        with open(path, "rb") as f:
            while piece := f.read(1 << 20):
                hashed.update(piece)
        done = self.relay.exec(f"cat '{path}'")
        self.assertEqual(len(done.stdout), 64 << 20)
        self.assertEqual(hashlib.sha256(done.stdout).digest(), hashed.digest())
        self.assertEqual(self.relay.attached(), 1)

    def test_lets_an_abort_through(self):
        client = subprocess.Popen(
            self.relay.client("echo up; exec sleep 1000"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.assertEqual(client.stdout.readline(), b"up\n")
        client.send_signal(signal.SIGINT)
        self.assertEqual(client.communicate(timeout=20)[1], b"exit code -1\n")

    def test_tells_the_relay_that_the_worker_has_left(self):
        self.worker.terminate()
        self.assertEqual(self.worker.wait(), 0)
        wait_for(lambda: self.relay.gone() == 1, "the relay keeps a ghost", 5)

    def test_tells_the_worker_that_the_relay_has_left_and_comes_back(self):
        self.relay.stop()
        self.worker.wait_log("stream lost")
        self.worker.wait_log("http_status=50")
        for line in closed(self.worker)[1:]:
            self.assertRegex(line, "class=status .*http_status=50[23]")
        self.relay.start()
        self.relay.wait_attached(1)
        self.assertEqual(self.relay.exec("exit 3").stderr, b"exit code 3\n")

    def test_may_end_and_come_back(self):
        self.field.stop_box()
        self.worker.wait_log("stream lost")
        self.worker.wait_log("class=connect")
        self.assertRegex(closed(self.worker)[0], "class=(eof|goaway) ")
        self.field.start_box()
        self.relay.wait_attached(2)
        self.assertEqual(self.relay.exec("exit 3").stderr, b"exit code 3\n")


class NginxBox(Middlebox, unittest.TestCase):
    box = Nginx

    def test_counts_the_bodys_bytes_unless_told_not_to(self):
        field = Field(Nginx, keys, changes={"client_max_body_size 0;": ""})
        try:
            worker = field.worker()
            field.relay.exec(f"head -c {2 << 20} /dev/zero")
            worker.wait_log("stream lost")
            self.assertRegex(closed(worker)[0], "class=reset .*http_status=200 h2_error=2 ")
        finally:
            field.stop()


    def test_a_reload_lets_what_runs_end(self):
        up, go = self.field.path("up"), self.field.path("go")
        command = f"echo > '{up}'; until [ -e '{go}' ]; do sleep 0.02; done; exit 4"
        client = subprocess.Popen(self.relay.client(command), stderr=subprocess.PIPE)
        wait_for(lambda: os.path.exists(up), "the command does not run")
        self.field.process.send_signal(signal.SIGHUP)
        self.worker.wait_log("relay is going away")
        with open(go, "wb"):
            pass
        self.assertEqual(client.communicate(timeout=20)[1], b"exit code 4\n")
        self.relay.wait_attached(2)
        self.assertRegex(closed(self.worker)[0], "class=goaway ")
        self.assertEqual(self.relay.exec("exit 3").stderr, b"exit code 3\n")


class HaproxyBox(Middlebox, unittest.TestCase):
    box = Haproxy


class NghttpxBox(Middlebox, unittest.TestCase):
    box = Nghttpx


class Silence:
    """CUT: what netd logs when the middlebox's limit for silence cuts the stream. BEYOND: a limit of its that no Heartbeat
    sets back, as a change of the example, and what is logged then."""

    box, CUT, BEYOND = None, None, None

    def setUp(self):
        if not shutil.which(self.box.NAME):
            self.skipTest(f"{self.box.NAME} is missing")

    def check_cut(self, one, pattern):
        """It was cut, for the reason that is logged, which killed what ran; it has dialled again, and runs commands."""
        one.join()
        self.assertNotIn(b"exit code 4", one.first)
        self.assertRegex(closed(one.worker)[0], pattern)
        self.assertIn("stream lost with execs in flight", one.worker.log())
        self.assertEqual(one.then, b"exit code 5\n")

    def test_heartbeats_keep_what_silence_would_cut(self):
        kept = quiet[self.box, "kept"]
        kept.join()
        self.assertEqual((kept.first, kept.then), (b"exit code 4\n", b"exit code 5\n"))
        self.assertEqual(kept.field.relay.attached(), 1, closed(kept.worker))
        self.check_cut(quiet[self.box, "cut"], self.CUT)


class Beyond(Silence):
    def test_what_no_heartbeat_sets_back_cuts(self):
        self.check_cut(quiet[self.box, "beyond"], self.BEYOND[1])


class SilenceNginx(Beyond, unittest.TestCase):
    box, CUT = Nginx, "class=reset .* h2_error=1 "
    BEYOND = (("grpc_read_timeout 7d", "grpc_read_timeout 60s"), "class=reset .*http_status=200 h2_error=2 ")


class SilenceHaproxy(Silence, unittest.TestCase):
    box, CUT = Haproxy, "class=status .*grpc_status=UNKNOWN .*http_status=200 "


class SilenceNghttpx(Beyond, unittest.TestCase):
    box, CUT = Nghttpx, "class=reset .*http_status=200 h2_error=2 "
    BEYOND = (("backend-read-timeout=60s", "stream-read-timeout=60s"), "class=reset .*http_status=200 h2_error=[02] ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
