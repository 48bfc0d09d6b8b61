"""Our worker against a relay that is not ours, on another gRPC stack: the contract once more, in short."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sandbox_wire as wire  # noqa: E402

if not wire.MISSING:
    from grpcio_relay import Relay

pb = wire.pb
EXECD = os.path.join(wire.BUILD, "execd")


def alive(mark):
    """Processes that have mark on their command line."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                count += mark.encode() in f.read()
        except OSError:
            pass
    return count


class Attached:
    """A worker that has attached, and what holds over any transport."""

    credentials = None
    settings = {}

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.relay = Relay("token", self.credentials)
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")}
        address = {"RELAY_ADDR": f"localhost:{self.relay.port}", "SANDBOX_ID": "sbx", "SANDBOX_TOKEN": "token"}
        self.worker = subprocess.Popen([EXECD], env={**kept, **address, "HEARTBEAT_S": "1", "LOG_LEVEL": "error", **self.settings})
        self.attached = self.relay.wait_attached()
        self.mark = f"5001.{os.getpid():07d}"

    def tearDown(self):
        self.worker.send_signal(signal.SIGTERM)
        try:
            self.assertEqual(self.worker.wait(5), 0)
        finally:
            self.worker.kill()
            self.worker.wait()
            self.relay.stop()
            shutil.rmtree(self.folder)
        self.assertEqual(self.relay.complaints, [])
        self.assertEqual(alive(self.mark), 0)

    def run_(self, req_id, command, **more):
        return self.relay.run(self.attached, req_id, command, **more)

    def ran(self):
        try:
            return os.path.getsize(os.path.join(self.folder, "ran"))
        except FileNotFoundError:
            return 0

    def counting(self, rest):
        return f"echo >> '{self.folder}/ran'; {rest}"

    def test_outcomes(self):
        done = self.run_(1, "echo out; echo err >&2; exit 7")
        self.assertEqual((done.out, done.err, done.answer), (b"out\n", b"err\n", 7))
        self.assertEqual(self.run_(2, "kill -KILL $$").answer, -1)
        self.assertEqual(self.run_(3, f"sleep {self.mark}", timeout_s=1).answer, "timeout:1")
        self.assertEqual(self.run_((1 << 64) - 1, "exit 3").answer, 3)

    def test_fifteen_mib_of_stdin_and_back(self):
        data = os.urandom(15 << 20)
        done = self.run_(1, "cat", stdin=data)
        self.assertEqual(done.answer, 0)
        self.assertEqual(done.out, data)

    def test_abort_kills_the_group(self):
        seen = self.relay.send(self.attached, 1, f"setsid sleep {self.mark} & echo up; sleep {self.mark}")
        self.assertTrue(self.relay.wait(lambda: seen.out == b"up\n"))
        for _ in range(2):
            self.attached.send(abort=pb.Abort(req_id=1))
        self.assertTrue(self.relay.wait(lambda: seen.terminals))
        self.assertEqual(seen.answer, -1)
        self.assertEqual(alive(self.mark), 0)

    def test_a_large_flood_arrives_in_order(self):
        done = self.run_(1, "seq 1 1000000")
        self.assertEqual(done.answer, 0)
        self.assertEqual(done.out, b"".join(b"%d\n" % i for i in range(1, 1000001)))


@unittest.skipIf(wire.MISSING, wire.MISSING)
class WorkerWithGrpcio(Attached, unittest.TestCase):
    def test_hello_and_heartbeats(self):
        hello = self.attached.hello
        self.assertEqual((hello.sandbox_id, hello.capacity_max, hello.trust), ("sbx", 4, "untrusted"))
        self.assertIn("bash", hello.capabilities)
        self.assertEqual(len(hello.labels), 0)
        self.assertTrue(self.relay.wait(lambda: self.attached.heartbeats >= 2))

    def test_not_streaming_is_cut_at_eight_mib(self):
        at = self.run_(1, "head -c 8388608 /dev/zero", streaming=False)
        self.assertEqual((len(at.out), at.terminals[0].truncated), (8 << 20, False))
        above = self.run_(2, "head -c 8388609 /dev/zero", streaming=False)
        self.assertEqual((len(above.out), above.terminals[0].truncated), (8 << 20, True))

    def test_dedup_over_a_reconnect(self):
        command = self.counting("exit 7")
        self.assertEqual(self.run_(1, command).answer, 7)
        self.attached.out.put(None)  # the relay ends the stream
        self.attached = self.relay.wait_attached(2)
        again = self.run_(1, command)
        self.assertEqual((again.answer, again.out, self.ran()), (7, b"", 1))
        self.assertEqual(self.run_(1, command + " ").answer, 7)
        self.assertEqual(self.ran(), 2)

    def test_collision_and_queue(self):
        running = [self.relay.send(self.attached, 1 + i, f"exec sleep {self.mark}") for i in range(4)]
        waiting = [self.relay.send(self.attached, 10 + i, "true") for i in range(64)]
        self.assertEqual(self.run_(100, "true").answer, "busy: queue full")
        self.attached.send(abort=pb.Abort(req_id=20))
        self.assertTrue(self.relay.wait(lambda: waiting[10].terminals))
        self.assertEqual(waiting[10].answer, -1)
        for i in range(4):
            self.attached.send(abort=pb.Abort(req_id=1 + i))
        everything = running + waiting
        self.assertTrue(self.relay.wait(lambda: all(e.terminals for e in everything)))
        self.assertTrue(all(len(e.terminals) == 1 for e in everything))

    def test_unknown_fields(self):
        raw = pb.ServerFrame()
        getattr(raw, "exec").MergeFromString(
            pb.Exec(req_id=1, command="exit 4").SerializeToString() + b"\x32\x03key" + b"\xc0\x3e\x05"
        )
        seen = self.relay.send(self.attached, 2, "exit 5")
        self.relay.execs[1] = first = type(seen)()
        self.attached.out.put(raw)
        self.attached.out.put(pb.ServerFrame())
        self.assertTrue(self.relay.wait(lambda: first.terminals and seen.terminals))
        self.assertEqual((first.answer, seen.answer), (4, 5))

    def test_shutdown_answers_what_runs_and_waits(self):
        running = [self.relay.send(self.attached, 1 + i, f"echo up; exec sleep {self.mark}") for i in range(4)]
        self.assertTrue(self.relay.wait(lambda: all(e.out == b"up\n" for e in running)))
        waiting = self.relay.send(self.attached, 9, "true")
        time.sleep(0.1)  # until it waits: nothing tells
        self.worker.send_signal(signal.SIGTERM)
        everything = running + [waiting]
        self.assertTrue(self.relay.wait(lambda: all(e.terminals for e in everything)))
        self.assertEqual([e.answer for e in everything], [-1, -1, -1, -1, "shutting down"])

    def test_a_wrong_token_is_turned_away(self):
        self.relay.token = "other"
        self.attached.out.put(None)
        self.assertTrue(self.relay.wait(lambda: self.relay.refused >= 2))
        self.relay.token = "token"
        self.attached = self.relay.wait_attached(2)
        self.assertEqual(self.run_(1, "exit 2").answer, 2)


def certificate(folder):
    """A key and a certificate for localhost that signs itself."""
    key, cert = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        + ["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=DNS:localhost"],
        check=True,
        capture_output=True,
    )
    return key, cert


@unittest.skipIf(wire.MISSING, wire.MISSING)
@unittest.skipIf(shutil.which("openssl") is None, "openssl is missing")
class WorkerWithGrpcioOverTls(Attached, unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.tls_folder = tempfile.mkdtemp()
        os.chmod(cls.tls_folder, 0o755)
        key, cert = certificate(cls.tls_folder)
        cls.settings = {"RELAY_TLS": "1", "RELAY_CA_FILE": cert}
        if not wire.MISSING:
            with open(key, "rb") as k, open(cert, "rb") as c:
                cls.credentials = wire.grpc.ssl_server_credentials([(k.read(), c.read())])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tls_folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
