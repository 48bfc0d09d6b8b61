"""relay.Relay on gRPC's C core."""
import concurrent.futures
import queue
import threading

from relay import Relay
import sandbox_wire as wire

STOP, FAIL = object(), object()


class GrpcioRelay(Relay):
    NAME = "grpcio"
    MISSING = wire.MISSING

    def start(self, tls):
        handlers = wire.grpc.method_handlers_generic_handler(
            "sandbox.v1.SandboxWorker",
            {
                "Attach": wire.grpc.stream_stream_rpc_method_handler(
                    self.attach,
                    request_deserializer=self.pb.WorkerFrame.FromString,
                    response_serializer=lambda raw: raw,
                )
            },
        )
        self.server = wire.grpc.server(concurrent.futures.ThreadPoolExecutor(8), options=wire.OPTIONS)
        self.server.add_generic_rpc_handlers((handlers,))
        address = f"127.0.0.1:{self.port}"
        if tls is None:
            self.port = self.server.add_insecure_port(address)
        else:
            credentials = wire.grpc.ssl_server_credentials(
                [(tls.key, tls.certificate)], tls.roots, require_client_auth=tls.roots is not None
            )
            self.port = self.server.add_secure_port(address, credentials)
        self.server.start()

    def stop(self):
        self.server.stop(0).wait(5)

    def attach(self, frames, context):
        metadata = dict(context.invocation_metadata())
        orders = queue.Queue()
        try:
            first = next(frames)
        except StopIteration:
            return
        worker = self.hello(orders, metadata.get("authorization"), first)
        if worker is None:
            return
        threading.Thread(target=self.read, args=(worker, frames), daemon=True).start()
        context.add_callback(lambda: orders.put(STOP))
        for order in iter(orders.get, STOP):
            if order is FAIL:
                context.abort(wire.grpc.StatusCode.UNAVAILABLE, "restarting")
            yield order

    def read(self, worker, frames):
        try:
            for frame in frames:
                self.take(worker, frame)
        except wire.grpc.RpcError:
            pass
        except Exception:  # grpcio raises a bare Exception when the call was cancelled
            pass
        self.lost(worker)
        worker.call.put(STOP)

    def write(self, worker, raw):
        worker.call.put(raw)

    def end(self, worker):
        worker.call.put(STOP)

    def fail(self, worker):
        worker.call.put(FAIL)
