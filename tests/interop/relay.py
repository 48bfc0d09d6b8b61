"""A relay for tests, apart from the gRPC stack that it speaks with: who is let in, what came, what is sent.

A stack's adapter derives from Relay. It calls hello() with the first frame of a stream, take() with each later one, lost()
at its end, all under no lock and in order; and it defines

  start(tls)           listens on self.port: the same one again after stop()
  stop()               tears down whatever stands, without any grace
  write(worker, raw)   sends the bytes of one ServerFrame
  end(worker)          ends the stream with status OK
  fail(worker)         ends the stream with status UNAVAILABLE"""
import threading

CHUNK_MAX = 32768


class Tls:
    """What a relay shows and wants. roots: of the clients' certificates, which it then demands. All PEM as bytes."""

    def __init__(self, key, certificate, roots=None):
        self.key, self.certificate, self.roots = key, certificate, roots


class Exec:
    """What came for one req_id."""

    def __init__(self):
        self.out = bytearray()
        self.err = bytearray()
        self.sizes = {"out": [], "err": []}
        self.terminals = []  # (kind, message)
        self.answers_max = 1

    @property
    def answer(self):
        return self.answers[0]

    @property
    def answers(self):
        """Of each terminal frame: the exit code, or the message of an ExecError."""
        return [m.exit_code if kind == "end" else m.message for kind, m in self.terminals]

    @property
    def truncated(self):
        """None where this relay's wire has no such field."""
        return getattr(self.terminals[0][1], "truncated", None)


class Attached:
    """One worker's stream. call: the adapter's."""

    def __init__(self, call, hello):
        self.call = call
        self.hello = hello
        self.heartbeats = 0
        self.gone = False


class Relay:
    TOKEN = "token"

    def __init__(self, messages, tls=None):
        self.pb = messages
        self.changed = threading.Condition()
        self.port = 0
        self.forget()
        self.start(tls)

    def forget(self):
        """Back to the beginning, for the next test."""
        with self.changed:
            self.token = self.TOKEN
            self.workers = []
            self.refused = 0
            self.execs = {}
            self.complaints = []

    # --- what the adapter tells ---------------------------------------------------------------------------------------
    def hello(self, call, authorization, frame):
        """The worker that is let in, or None. The real relay has one stream an id, and refuses by an end with status OK."""
        with self.changed:
            if frame.WhichOneof("msg") != "hello":
                self.complaints.append(f"the first frame is {frame.WhichOneof('msg')}")
            worker = Attached(call, frame.hello)
            if authorization == "Bearer " + self.token and all(w.gone for w in self.workers):
                self.workers.append(worker)
            else:
                self.refused += 1
                worker = None
            self.changed.notify_all()
        return worker

    def take(self, worker, frame):
        with self.changed:
            kind = frame.WhichOneof("msg")
            if kind == "heartbeat":
                worker.heartbeats += 1
            elif kind in ("chunk", "end", "error"):
                self.take_answer(kind, getattr(frame, kind))
            else:
                self.complaints.append(f"a frame {kind}")
            self.changed.notify_all()

    def take_answer(self, kind, body):
        seen = self.execs.get(body.req_id)
        if seen is None:
            self.complaints.append(f"{kind} for {body.req_id}, which was never sent")
        elif kind != "chunk":
            seen.terminals.append((kind, body))
            if len(seen.terminals) > seen.answers_max:
                self.complaints.append(f"{len(seen.terminals)} answers for {body.req_id}: {seen.answers}")
        else:
            if seen.terminals and seen.answers_max == 1:
                self.complaints.append(f"a chunk for {body.req_id} after its end")
            if not 0 < len(body.data) <= CHUNK_MAX:
                self.complaints.append(f"a chunk of {len(body.data)} bytes")
            name = "err" if body.stream == self.pb.STREAM_STDERR else "out"
            seen.sizes[name].append(len(body.data))
            getattr(seen, name).extend(body.data)

    def lost(self, worker):
        with self.changed:
            worker.gone = True
            self.changed.notify_all()

    # --- what a test asks for -----------------------------------------------------------------------------------------
    def wait(self, what, timeout=20):
        with self.changed:
            return self.changed.wait_for(what, timeout)

    def wait_attached(self, number=1):
        """The number-th worker that was let in."""
        if not self.wait(lambda: len(self.workers) >= number):
            raise AssertionError("no worker has attached")
        return self.workers[number - 1]

    def frame(self, **member):
        return self.pb.ServerFrame(**member).SerializeToString()

    def send(self, worker, req_id, command, answers_max=1, **more):
        """Sends an Exec; what came for the id before is forgotten."""
        with self.changed:
            self.execs[req_id] = seen = Exec()
            seen.answers_max = answers_max
        self.send_again(worker, req_id, command, **more)
        return seen

    def send_again(self, worker, req_id, command, **more):
        more.setdefault("streaming", True)
        self.write(worker, self.frame(**{"exec": self.pb.Exec(req_id=req_id, command=command, **more)}))

    def abort(self, worker, req_id):
        self.write(worker, self.frame(abort=self.pb.Abort(req_id=req_id)))

    def wait_answers(self, seen, count=1):
        if not self.wait(lambda: len(seen.terminals) >= count):
            raise AssertionError(f"{len(seen.terminals)} answers came, not {count}")

    def run(self, worker, req_id, command, **more):
        """Sends, and waits for the terminal frame."""
        seen = self.send(worker, req_id, command, **more)
        self.wait_answers(seen)
        return seen
