"""Our test relay against gRPC's C core: a worker, a harness, and our own client, each through `test-relay serve`."""
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sandbox_wire as wire  # noqa: E402

if not wire.MISSING:
    from grpcio_worker import Worker

RELAY = os.path.join(wire.BUILD, "test-relay")
pb = wire.pb


@unittest.skipIf(wire.MISSING, wire.MISSING)
class RelayWithGrpcio(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.relay = subprocess.Popen(
            [RELAY, "serve", "--listen", "127.0.0.1:0", "--token", "global", "--token-for", "own=special"],
            stdout=subprocess.PIPE,
            text=True,
        )
        cls.address = "127.0.0.1:" + cls.relay.stdout.readline().split()[-1]
        cls.worker = Worker(cls.address, "sbx", "global")
        cls.channel = wire.grpc.insecure_channel(cls.address, options=wire.OPTIONS)
        cls.wait_until_attached("sbx")

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.worker.close()
        cls.relay.send_signal(signal.SIGTERM)
        cls.relay.wait(10)
        cls.relay.stdout.close()

    @classmethod
    def wait_until_attached(cls, sandbox_id):
        """The real relay says nothing after Hello, so one asks for a command until it is taken."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                list(cls.call(1, "true", sandbox_id=sandbox_id))
                return
            except wire.grpc.RpcError:
                time.sleep(0.02)
        raise AssertionError("not attached")

    @classmethod
    def call(cls, req_id, command, sandbox_id="sbx", **more):
        work = pb.Exec(req_id=req_id, command=command, streaming=True, **more)
        request = pb.ExecRequest(sandbox_id=sandbox_id)
        getattr(request, "exec").CopyFrom(work)
        return wire.harness_exec(cls.channel)(request, timeout=20)

    def collect(self, events):
        out, err, end = b"", b"", None
        for event in events:
            self.assertIsNone(end, "an event after the End")
            kind = event.WhichOneof("event")
            if kind == "chunk" and event.chunk.stream == pb.STREAM_STDERR:
                err += event.chunk.data
            elif kind == "chunk":
                out += event.chunk.data
            else:
                end = event.end.exit_code
        return out, err, end

    def test_output_and_exit_code(self):
        self.assertEqual(self.collect(self.call(2, "echo out; echo err >&2; exit 7")), (b"out\n", b"err\n", 7))

    def test_large_stdin_and_output(self):
        data = os.urandom(5 << 20)
        self.assertEqual(self.collect(self.call((1 << 64) - 1, "cat", stdin=data)), (data, b"", 0))

    def test_abort(self):
        events = self.call(4, "wait for the abort")
        answer = wire.harness_abort(self.channel)(pb.AbortRequest(sandbox_id="sbx", req_id=4), timeout=10)
        self.assertEqual(answer, pb.AbortResponse())
        self.assertEqual(self.collect(events), (b"", b"", -1))

    def test_cancel_becomes_an_abort(self):
        call = self.call(5, "wait for the abort")
        self.assertTrue(self.worker.wait(lambda: 5 in self.worker.ids))
        call.cancel()
        self.assertTrue(self.worker.wait(lambda: 5 in self.worker.aborts))
        self.assertEqual(self.collect(self.call(7, "exit 3"))[2], 3)

    def test_unknown_sandbox_and_method(self):
        with self.assertRaises(wire.grpc.RpcError) as caught:
            list(self.call(8, "true", sandbox_id="nobody"))
        self.assertEqual(caught.exception.code(), wire.grpc.StatusCode.UNAVAILABLE)
        with self.assertRaises(wire.grpc.RpcError) as caught:
            self.channel.unary_unary("/sandbox.v1.SandboxExec/Other")(b"", timeout=10)
        self.assertEqual(caught.exception.code(), wire.grpc.StatusCode.UNIMPLEMENTED)

    def test_refusals_end_with_ok(self):
        for sandbox_id, token in (("sbx2", "wrong"), ("own", "global"), ("sbx", "global")):
            worker = Worker(self.address, sandbox_id, token)
            self.assertTrue(worker.wait(lambda w=worker: w.status is not None), sandbox_id)
            self.assertEqual(worker.status, wire.grpc.StatusCode.OK)
            worker.close()

    def test_token_of_its_own(self):
        worker = Worker(self.address, "own", "special")
        self.wait_until_attached("own")
        worker.close()

    def client(self, *args, **kwargs):
        return subprocess.run(
            [RELAY, "exec", "--relay", self.address, "--sandbox-id", "sbx", *args],
            capture_output=True,
            timeout=20,
            check=False,
            **kwargs,
        )

    def test_our_client(self):
        done = self.client("echo out; echo err >&2; exit 7")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"out\n", b"err\nexit code 7\n"))
        data = os.urandom(3 << 20)
        done = self.client("--stdin-file", "-", "cat", input=data)
        self.assertEqual((done.returncode, done.stdout), (0, data))

    def test_our_client_aborts_on_interrupt(self):
        client = subprocess.Popen(
            [RELAY, "exec", "--relay", self.address, "--sandbox-id", "sbx", "wait for the abort"],
            stderr=subprocess.PIPE,
        )
        before = len(self.worker.aborts)
        self.wait_for_blocked_sigint(client.pid)
        client.send_signal(signal.SIGINT)
        self.assertTrue(self.worker.wait(lambda: len(self.worker.aborts) > before))
        self.assertEqual(client.communicate(timeout=10)[1], b"exit code -1\n")
        self.assertEqual(client.returncode, 0)

    def test_a_client_that_is_killed(self):
        before = len(self.worker.ids), len(self.worker.aborts)
        clients = [
            subprocess.Popen([RELAY, "exec", "--relay", self.address, "--sandbox-id", "sbx", "wait for the abort"])
            for _ in range(3)
        ]
        self.assertTrue(self.worker.wait(lambda: len(self.worker.ids) == before[0] + 3))
        for client in clients:
            client.kill()
            client.wait()
        self.assertTrue(self.worker.wait(lambda: len(self.worker.aborts) == before[1] + 3))
        self.assertEqual(self.collect(self.call(9, "exit 3"))[2], 3)

    def test_our_prompt(self):
        prompt = subprocess.Popen(
            [RELAY, "prompt", "--relay", self.address, "--sandbox-id", "sbx"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        before = len(self.worker.ids)
        prompt.stdin.write(b"wait for the abort\n")
        prompt.stdin.flush()
        self.assertTrue(self.worker.wait(lambda: len(self.worker.ids) > before))
        prompt.send_signal(signal.SIGINT)
        out, err = prompt.communicate(b"\necho out; exit 3\n", timeout=10)
        self.assertEqual((prompt.returncode, out), (0, b"out\n"))
        self.assertRegex(err, rb"exit code -1\n\d+ ms\n(.*\n)*.*exit code 3\n\d+ ms\n")

    @staticmethod
    def wait_for_blocked_sigint(pid):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with open(f"/proc/{pid}/status", encoding="ascii") as f:
                blocked = [line for line in f if line.startswith("SigBlk")][0]
            if int(blocked.split()[1], 16) & 2:
                return
            time.sleep(0.01)


@unittest.skipIf(wire.MISSING, wire.MISSING)
class MisbehaviourOnRequest(unittest.TestCase):
    """`serve --control` and --manner, as a gRPC client sees them."""

    def serve(self, *args):
        self.relay = subprocess.Popen(
            [RELAY, "serve", "--listen", "127.0.0.1:0", "--control", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = "127.0.0.1:" + self.relay.stdout.readline().split()[-1]

    def tearDown(self):
        self.relay.send_signal(signal.SIGTERM)
        self.assertEqual(self.relay.wait(10), 0)
        self.relay.stdin.close()
        self.relay.stdout.close()

    def order(self, line):
        self.relay.stdin.write(line + "\n")
        self.relay.stdin.flush()
        return self.relay.stdout.readline().strip()

    def order_when_attached(self, line):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if self.order(line) == "ok":
                return
            time.sleep(0.02)
        raise AssertionError("nobody has attached")

    def status_after(self, line):
        worker = Worker(self.address, "sbx", "t")
        self.order_when_attached(line)
        self.assertTrue(worker.wait(lambda: worker.status is not None), line)
        worker.close()
        return worker.status

    def test_ends(self):
        self.serve("--token", "t")
        self.assertEqual(self.order("cut"), "no")
        self.assertEqual(self.status_after("end"), wire.grpc.StatusCode.OK)
        for line in ("cut", "reset", "middle", "calm"):
            self.assertEqual(self.status_after(line), wire.grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(self.order("nonsense"), "no")

    def test_without_a_token_nobody_attaches(self):
        self.serve()
        worker = Worker(self.address, "sbx", "t")
        self.assertTrue(worker.wait(lambda: worker.status is not None))
        self.assertEqual(worker.status, wire.grpc.StatusCode.OK)
        worker.close()

    def test_manners(self):
        self.serve("--token", "t", "--manner", "refuse")
        worker = Worker(self.address, "sbx", "t")
        self.assertTrue(worker.wait(lambda: worker.status is not None))
        self.assertEqual(worker.status, wire.grpc.StatusCode.OK)
        worker.close()
        bad = subprocess.run([RELAY, "serve", "--manner", "none-such"], capture_output=True, check=False)
        self.assertEqual(bad.returncode, 2)

    def test_output_through_tiny_windows_in_single_bytes(self):
        self.serve("--token", "t", "--manner", "byte-frames", "--manner", "initial-window=7")
        worker = Worker(self.address, "sbx", "t")
        self.order_when_attached("stall off")
        channel = wire.grpc.insecure_channel(self.address)
        request = pb.ExecRequest(sandbox_id="sbx")
        getattr(request, "exec").CopyFrom(pb.Exec(req_id=1, command="seq 1 200"))
        events = list(wire.harness_exec(channel)(request, timeout=20))
        out = b"".join(e.chunk.data for e in events if e.WhichOneof("event") == "chunk")
        self.assertEqual(out, b"".join(b"%d\n" % i for i in range(1, 201)))
        channel.close()
        worker.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
