"""Our worker through somebody else's relay at RELAY_ADDR: read, write, bash, grep, abort, timeout, and where REDIS_URL is
given the relay's presence records. For SH_LIVE_RELAY=1 only (make check-live)."""
import base64
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "interop"))
import sandbox_wire as wire  # noqa: E402
from presence import Presence  # noqa: E402

pb = wire.pb
LIVE = os.environ.get("SH_LIVE_RELAY") == "1"
REDIS = os.environ.get("REDIS_URL")
ADDRESS = os.environ.get("RELAY_ADDR") or "localhost:8443"
ID = os.environ.get("SANDBOX_ID") or "sbx-laptop-1"
EXECD = os.path.join(wire.BUILD, "execd")


def read_file(path):
    with open(path, "rb") as f:
        return f.read()


def open_channel():
    """The harness's way to the relay: with the worker's own TLS settings."""
    if os.environ.get("RELAY_TLS", "0") not in ("1", "t", "T", "TRUE", "true", "True"):
        return wire.grpc.insecure_channel(ADDRESS, options=wire.OPTIONS)
    files = [os.environ.get(name) for name in ("RELAY_CA_FILE", "RELAY_KEY_FILE", "RELAY_CERT_FILE")]
    credentials = wire.grpc.ssl_channel_credentials(*[read_file(name) if name else None for name in files])
    options = list(wire.OPTIONS)
    if os.environ.get("RELAY_SERVER_NAME"):
        options.append(("grpc.ssl_target_name_override", os.environ["RELAY_SERVER_NAME"]))
    return wire.grpc.secure_channel(ADDRESS, credentials, options=options)


class Answer:
    def __init__(self):
        self.out, self.err, self.chunks, self.end = b"", b"", 0, None

    def take(self, event):
        kind = event.WhichOneof("event")
        assert self.end is None, "something came after the terminal frame"
        if kind == "chunk":
            self.chunks += 1
            if event.chunk.stream == pb.STREAM_STDERR:
                self.err += event.chunk.data
            else:
                self.out += event.chunk.data
        else:
            self.end = event.end.exit_code if kind == "end" else event.error.message


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Live:
    """A worker that has attached; relay calls through the channel."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sandbox-worker-live-")
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.worker = subprocess.Popen([EXECD], stdin=subprocess.DEVNULL, stderr=self.log)
        self.channel = open_channel()
        self.await_attached()

    def tearDown(self):
        self.channel.close()
        if self.worker.poll() is None:
            self.worker.send_signal(signal.SIGTERM)
        try:
            self.worker.wait(10)
        finally:
            self.worker.kill()
            self.log.close()
            subprocess.run(["rm", "-rf", self.folder], check=False)

    def await_attached(self):
        deadline = time.monotonic() + 30
        while True:
            try:
                self.assertEqual(self.run_("true").end, 0)
                return
            except wire.grpc.RpcError as why:
                if time.monotonic() > deadline or self.worker.poll() is not None:
                    raise AssertionError(f"not attached: {why.details()}; log:\n{read_file(self.log.name).decode()}")
            time.sleep(0.1)

    def call(self, command, **more):
        work = pb.Exec(req_id=random.getrandbits(53), command=command, **{"streaming": True, **more})
        request = pb.ExecRequest(sandbox_id=ID)
        getattr(request, "exec").CopyFrom(work)
        return work.req_id, wire.harness_exec(self.channel)(request, timeout=60)

    def run_(self, command, **more):
        answer = Answer()
        for event in self.call(command, **more)[1]:
            answer.take(event)
        return answer


@unittest.skipUnless(LIVE, "needs SH_LIVE_RELAY=1")
@unittest.skipIf(wire.MISSING, wire.MISSING)
class Commands(Live, unittest.TestCase):
    def test_read(self):
        path = os.path.join(self.folder, "read")
        with open(path, "wb") as f:
            f.write(b"first line\n" + bytes(range(256)) + b"no newline at the end")
        answer = self.run_(f"cat {path}")
        self.assertEqual((answer.out, answer.err, answer.end), (read_file(path), b"", 0))

    def test_write(self):
        data = os.urandom(3 << 20)
        path = os.path.join(self.folder, "written")
        self.assertEqual(self.run_(f"base64 -d > {path}", stdin=base64.b64encode(data)).end, 0)
        self.assertEqual(read_file(path), data)

    def test_bash(self):
        answer = self.run_('n=0; for i in {1..4}; do n=$((n + i)); done; echo $n; echo "$BASH" >&2; exit 7')
        self.assertEqual((answer.out, answer.end), (b"10\n", 7))
        self.assertTrue(answer.err.endswith(b"bash\n"), answer.err)

    def test_grep(self):
        path = os.path.join(self.folder, "lines")
        with open(path, "w") as f:
            f.writelines(f"line {i} {'even' if i % 2 == 0 else 'odd'}\n" for i in range(20000))
        answer = self.run_(f"grep -n even {path}")
        self.assertEqual((answer.out.count(b"\n"), answer.end), (10000, 0))
        self.assertGreater(answer.chunks, 1)
        self.assertEqual(self.run_(f"grep nothing {path}").end, 1)

    def test_abort(self):
        req_id, events = self.call("sleep 300 & echo $$ $!; wait")
        answer = Answer()
        for event in events:
            answer.take(event)
            if answer.chunks == 1 and answer.end is None:
                wire.harness_abort(self.channel)(pb.AbortRequest(sandbox_id=ID, req_id=req_id), timeout=10)
        self.assertEqual(answer.end, -1)
        self.assertEqual([pid for pid in answer.out.split() if alive(int(pid))], [])

    def test_timeout(self):
        start = time.monotonic()
        self.assertEqual(self.run_("sleep 30", timeout_s=1).end, "timeout:1")
        self.assertLess(time.monotonic() - start, 15)


@unittest.skipUnless(LIVE, "needs SH_LIVE_RELAY=1")
@unittest.skipIf(wire.MISSING, wire.MISSING)
@unittest.skipUnless(REDIS, "needs REDIS_URL")
class PresenceRecords(Live, unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.presence = Presence(REDIS)
        self.addCleanup(self.presence.close)
        record = self.presence.wait(ID, True)
        self.assertEqual(record.get("transport"), "grpc", record)

    def test_lost_when_the_worker_stops(self):
        self.worker.send_signal(signal.SIGTERM)
        self.presence.wait(ID, False)
        self.assertEqual(self.worker.wait(10), 0)

    def test_lost_when_netd_is_killed(self):
        """execd is stopped meanwhile: it would attach again before anybody could look."""
        with open(f"/proc/{self.worker.pid}/task/{self.worker.pid}/children") as f:
            children = f.read().split()
        netd = [pid for pid in children if read_file(f"/proc/{pid}/comm") == b"netd\n"]
        self.assertEqual(len(netd), 1)
        self.worker.send_signal(signal.SIGSTOP)
        os.kill(int(netd[0]), signal.SIGKILL)
        try:
            self.presence.wait(ID, False)
        finally:
            self.worker.send_signal(signal.SIGCONT)
        self.presence.wait(ID, True, 40)

    def test_lost_when_execd_is_killed(self):
        self.worker.kill()
        self.presence.wait(ID, False)


if __name__ == "__main__":
    unittest.main(verbosity=2)
