"""relay.Relay on @grpc/grpc-js, the real relay's own stack: node runs grpc_js_relay.js, and we talk by lines of JSON."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading

import grpc_js
from relay import Relay
import sandbox_wire as wire

LARGE = 65536
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "grpc_js_relay.js")


class GrpcJsRelay(Relay):
    NAME = "grpc-js"
    MISSING = wire.PROTO_MISSING or grpc_js.MISSING

    def start(self, tls):
        from google.protobuf import json_format

        self.parse = json_format.ParseDict
        self.folder = tempfile.mkdtemp()
        proto = os.path.join(self.folder, wire.PROTO)
        os.makedirs(os.path.dirname(proto))
        with open(proto, "w", encoding="utf-8") as f:
            f.write(self.pb.text)
        settings = os.path.join(self.folder, "settings")
        texts = tls and {name: pem and pem.decode() for name, pem in vars(tls).items()}
        with open(settings, "w", encoding="utf-8") as f:
            json.dump({"tls": texts}, f)
        self.node = subprocess.Popen(
            ["node", SCRIPT, self.folder, settings, str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "NODE_PATH": grpc_js.MODULES},
        )
        self.writing = threading.Lock()
        self.attached = {}
        line = self.node.stdout.readline()
        if not line:
            raise AssertionError("the relay in node does not start")
        self.port = json.loads(line)["port"]
        self.reader = threading.Thread(target=self.read, args=(self.node.stdout,), daemon=True)
        self.reader.start()

    def stop(self):
        self.node.kill()
        self.node.wait()
        self.reader.join()
        self.node.stdin.close()
        self.node.stdout.close()
        shutil.rmtree(self.folder)

    def read(self, lines):
        for line in lines:
            event = json.loads(line)
            call = event["call"]
            worker = self.attached.get(call)
            if "frame" not in event:
                if worker:
                    self.lost(worker)
                continue
            frame = self.parse(event["frame"], self.pb.WorkerFrame())
            if call in self.attached:
                if worker:
                    self.take(worker, frame)
                continue
            self.attached[call] = self.hello(call, event.get("authorization"), frame)
            if self.attached[call] is None:
                self.order("end", call)
        for worker in filter(None, self.attached.values()):
            self.lost(worker)

    def order(self, name, call, **more):
        with self.writing:
            self.node.stdin.write(json.dumps({"order": name, "call": call, **more}).encode() + b"\n")
            self.node.stdin.flush()

    def write(self, worker, raw):
        """What is large goes by a file: as a line of JSON it would cost more than the rest of the battery."""
        if len(raw) < LARGE:
            self.order("write", worker.call, raw=base64.b64encode(raw).decode())
            return
        fd, path = tempfile.mkstemp(dir=self.folder)
        with open(fd, "wb") as f:
            f.write(raw)
        self.order("write", worker.call, file=path)

    def end(self, worker):
        self.order("end", worker.call)

    def fail(self, worker):
        self.order("fail", worker.call)
