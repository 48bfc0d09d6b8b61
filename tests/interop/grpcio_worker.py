"""A worker of a few lines on grpcio: what our relay is tried with. It runs a command to its end before the next."""
import queue
import subprocess
import threading

import sandbox_wire as wire

pb = wire.pb


class Worker:
    """Attached from construction on; status holds the grpc status once the stream is over."""

    def __init__(self, address, sandbox_id, token):
        self.channel = wire.grpc.insecure_channel(address, options=wire.OPTIONS)
        self.out = queue.Queue()
        self.ids = []
        self.aborts = []
        self.seen = threading.Condition()
        self.status = None
        self.send(hello=pb.Hello(sandbox_id=sandbox_id, arch="amd64", capacity_max=1, trust="untrusted"))
        self.call = wire.attach(self.channel)(
            iter(self.out.get, None), metadata=[("authorization", "Bearer " + token)]
        )
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def send(self, **member):
        self.out.put(pb.WorkerFrame(**member))

    def serve(self):
        try:
            for frame in self.call:
                if frame.WhichOneof("msg") == "exec":
                    self.run(getattr(frame, "exec"))
                else:
                    with self.seen:
                        self.aborts.append(frame.abort.req_id)
                        self.seen.notify_all()
                    self.send(end=pb.End(req_id=frame.abort.req_id, exit_code=-1))
        except wire.grpc.RpcError:
            pass
        with self.seen:
            self.status = self.call.code()
            self.seen.notify_all()

    def run(self, work):
        with self.seen:
            self.ids.append(work.req_id)
            self.seen.notify_all()
        if work.command == "wait for the abort":
            return
        done = subprocess.run(["bash", "-c", work.command], input=work.stdin, capture_output=True, check=False)
        for data, stream in ((done.stdout, pb.STREAM_STDOUT), (done.stderr, pb.STREAM_STDERR)):
            for at in range(0, len(data), 32768):
                piece = data[at : at + 32768]
                self.send(chunk=pb.Chunk(req_id=work.req_id, data=piece, stream=stream))
        self.send(end=pb.End(req_id=work.req_id, exit_code=done.returncode))

    def wait(self, what, timeout=10):
        with self.seen:
            return self.seen.wait_for(what, timeout)

    def close(self):
        self.out.put(None)
        self.thread.join(10)
        self.channel.close()
