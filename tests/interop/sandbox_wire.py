"""The messages and methods of sandbox.v1 for grpcio, made from our .proto, or from a variant of it, when the tests run."""
import os
import re
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
PROTO = "sandbox/v1/sandbox.proto"

try:
    import grpc
except ImportError:
    grpc = None


def read_proto():
    with open(os.path.join(ROOT, "proto", PROTO), encoding="utf-8") as f:
        return f.read()


def proto_without_truncated():
    """The original wire: End had no more than a req_id and an exit_code."""
    text, count = re.subn(r"^ *bool truncated = 3;.*\n", "", read_proto(), flags=re.MULTILINE)
    assert count == 1, "End.truncated is not where it was"
    return text


def proto_with_workspace_key():
    """The newest wire that we know: its relays send a field that we do not have."""
    text, count = re.subn(r"^message Exec \{\n", r"\g<0>  string workspace_key = 6;\n", read_proto(), flags=re.MULTILINE)
    assert count == 1, "Exec is not where it was"
    return text


class Messages:
    """The classes and values of one .proto, by name. They live in a pool of their own: two wires fit in one process."""

    def __init__(self, text):
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        with tempfile.TemporaryDirectory() as folder:
            source, result = os.path.join(folder, PROTO), os.path.join(folder, "set")
            os.makedirs(os.path.dirname(source))
            with open(source, "w", encoding="utf-8") as f:
                f.write(text)
            subprocess.run(["protoc", "-I", folder, "--descriptor_set_out", result, source], check=True)
            with open(result, "rb") as f:
                files = descriptor_pb2.FileDescriptorSet.FromString(f.read())
        self.text = text
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.AddSerializedFile(file.SerializeToString())
        if hasattr(message_factory, "GetMessageClass"):
            make = message_factory.GetMessageClass
        else:
            make = message_factory.MessageFactory(pool).GetPrototype
        file = pool.FindFileByName(PROTO)
        for name, message in file.message_types_by_name.items():
            setattr(self, name, make(message))
        for enum in file.enum_types_by_name.values():
            for value in enum.values:
                setattr(self, value.name, value.number)


# Why tests cannot run that need the messages, or these and grpcio; None: they can.
PROTO_MISSING = None
pb = None
try:
    pb = Messages(read_proto())
except (ImportError, FileNotFoundError, subprocess.CalledProcessError) as why:
    PROTO_MISSING = f"protoc or python3-protobuf is missing: {why}"
MISSING = PROTO_MISSING or (None if grpc else "python3-grpcio is missing")

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
