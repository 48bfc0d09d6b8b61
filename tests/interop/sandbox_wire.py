"""The messages and methods of sandbox.v1 for grpcio, made from our .proto when the tests run."""
import importlib
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))

try:
    import grpc
except ImportError:
    grpc = None


def _generate():
    proto = os.path.join(ROOT, "proto")
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["protoc", "-I", proto, "--python_out", out, "sandbox/v1/sandbox.proto"], check=True)
        sys.path.insert(0, out)
        try:
            return importlib.import_module("sandbox.v1.sandbox_pb2")
        finally:
            sys.path.remove(out)


# Why the tests of this folder that need both cannot run; None: they can.
MISSING = None if grpc else "python3-grpcio is missing"
pb = None
try:
    pb = _generate()
except (ImportError, FileNotFoundError, subprocess.CalledProcessError) as why:
    MISSING = MISSING or f"protoc or python3-protobuf is missing: {why}"

OPTIONS = [("grpc.max_receive_message_length", 96 << 20), ("grpc.max_send_message_length", 96 << 20)]


def attach(channel):
    return channel.stream_stream(
        "/sandbox.v1.SandboxWorker/Attach",
        request_serializer=pb.WorkerFrame.SerializeToString,
        response_deserializer=pb.ServerFrame.FromString,
    )


def harness_exec(channel):
    return channel.unary_stream(
        "/sandbox.v1.SandboxExec/Exec",
        request_serializer=pb.ExecRequest.SerializeToString,
        response_deserializer=pb.ExecEvent.FromString,
    )


def harness_abort(channel):
    return channel.unary_unary(
        "/sandbox.v1.SandboxExec/Abort",
        request_serializer=pb.AbortRequest.SerializeToString,
        response_deserializer=pb.AbortResponse.FromString,
    )


def worker_handler(attach_method):
    """A grpcio server's handler for SandboxWorker."""
    return grpc.method_handlers_generic_handler(
        "sandbox.v1.SandboxWorker",
        {
            "Attach": grpc.stream_stream_rpc_method_handler(
                attach_method,
                request_deserializer=pb.WorkerFrame.FromString,
                response_serializer=pb.ServerFrame.SerializeToString,
            )
        },
    )
