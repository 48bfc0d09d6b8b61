"""Our relay and our worker, and a harness on @grpc/grpc-js, the real harness's own stack."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import grpc_js  # noqa: E402
import sandbox_wire as wire  # noqa: E402
from worker import OurRelay, Worker  # noqa: E402

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "grpc_js_harness.js")


@unittest.skipIf(grpc_js.MISSING, grpc_js.MISSING)
class RelayWithGrpcJs(unittest.TestCase):
    def test_exec_and_abort(self):
        folder = tempfile.mkdtemp()
        relay = OurRelay(os.path.join(folder, "relay.log"))
        worker = Worker(f"127.0.0.1:{relay.port}", os.path.join(folder, "worker.log"))
        try:
            relay.wait_attached(1)
            done = subprocess.run(
                ["node", SCRIPT, os.path.join(wire.ROOT, "proto"), f"127.0.0.1:{relay.port}"]
                + ["echo out; exit 7", "echo abort me; exec sleep 1000", "exit 3"],
                env={**os.environ, "NODE_PATH": grpc_js.MODULES},
                capture_output=True,
                timeout=60,
                check=True,
            )
        finally:
            worker.terminate()
            code = worker.wait()
            relay.stop()
            shutil.rmtree(folder)
        seen = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(s["out"], s["exitCode"], s["error"]) for s in seen],
                         [("out\n", 7, None), ("abort me\n", -1, None), ("", 3, None)])
        self.assertEqual(code, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
