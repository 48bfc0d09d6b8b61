"""A relay on gRPC's C core, for tests: what attaches to it is driven frame by frame."""
import concurrent.futures
import queue
import threading

import sandbox_wire as wire

pb = wire.pb


class Exec:
    """What came for one req_id."""

    def __init__(self):
        self.out = b""
        self.err = b""
        self.sizes = []
        self.terminals = []

    @property
    def answer(self):
        """exit code, or the message of an ExecError."""
        last = self.terminals[0]
        return last.exit_code if isinstance(last, pb.End) else last.message


class Attached:
    """One worker's stream."""

    def __init__(self, hello, token):
        self.hello = hello
        self.token = token
        self.out = queue.Queue()
        self.heartbeats = 0
        self.gone = False

    def send(self, **member):
        self.out.put(pb.ServerFrame(**member))


class Relay:
    def __init__(self, token, credentials=None):
        self.token = token
        self.changed = threading.Condition()
        self.workers = []
        self.refused = 0
        self.execs = {}
        self.complaints = []
        self.server = wire.grpc.server(concurrent.futures.ThreadPoolExecutor(8), options=wire.OPTIONS)
        self.server.add_generic_rpc_handlers((wire.worker_handler(self.attach),))
        if credentials is None:
            self.port = self.server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self.server.add_secure_port("127.0.0.1:0", credentials)
        self.server.start()

    def stop(self):
        self.server.stop(1).wait(5)

    def attach(self, frames, context):
        first = next(frames)
        metadata = dict(context.invocation_metadata())
        with self.changed:
            accepted = (
                first.WhichOneof("msg") == "hello"
                and metadata.get("authorization") == "Bearer " + self.token
                and not any(not w.gone for w in self.workers)
            )
            if not accepted:
                self.refused += 1
                self.changed.notify_all()
                return
            worker = Attached(first.hello, self.token)
            self.workers.append(worker)
            self.changed.notify_all()
        reader = threading.Thread(target=self.read, args=(worker, frames), daemon=True)
        reader.start()
        context.add_callback(lambda: worker.out.put(None))
        yield from iter(worker.out.get, None)

    def read(self, worker, frames):
        try:
            for frame in frames:
                with self.changed:
                    self.take(worker, frame)
                    self.changed.notify_all()
        except wire.grpc.RpcError:
            pass
        except Exception:  # grpcio raises a bare Exception when the call was cancelled
            pass
        with self.changed:
            worker.gone = True
            self.changed.notify_all()
        worker.out.put(None)

    def take(self, worker, frame):
        kind = frame.WhichOneof("msg")
        if kind == "heartbeat":
            worker.heartbeats += 1
            return
        if kind not in ("chunk", "end", "error"):
            self.complaints.append(f"a frame {kind}")
            return
        body = getattr(frame, kind)
        seen = self.execs.get(body.req_id)
        if seen is None:
            self.complaints.append(f"{kind} for {body.req_id}, which was never sent")
        elif kind != "chunk":
            seen.terminals.append(body)
        else:
            if seen.terminals:
                self.complaints.append(f"a chunk for {body.req_id} after its end")
            if not 0 < len(body.data) <= 32768:
                self.complaints.append(f"a chunk of {len(body.data)} bytes")
            seen.sizes.append(len(body.data))
            if body.stream == pb.STREAM_STDERR:
                seen.err += body.data
            else:
                seen.out += body.data

    def wait(self, what, timeout=20):
        with self.changed:
            return self.changed.wait_for(what, timeout)

    def wait_attached(self, number=1):
        """The number-th worker that was accepted."""
        if not self.wait(lambda: len(self.workers) >= number):
            raise AssertionError("no worker has attached")
        return self.workers[number - 1]

    def send(self, worker, req_id, command, **more):
        """Sends an Exec; what came for the id before is forgotten."""
        with self.changed:
            self.execs[req_id] = seen = Exec()
        more.setdefault("streaming", True)
        worker.send(**{"exec": pb.Exec(req_id=req_id, command=command, **more)})
        return seen

    def run(self, worker, req_id, command, **more):
        """Sends, and waits for the terminal frame."""
        seen = self.send(worker, req_id, command, **more)
        if not self.wait(lambda: seen.terminals):
            raise AssertionError(f"{req_id} was not answered")
        return seen
