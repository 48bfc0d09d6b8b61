"""netd's reading of ServerFrames against python3-protobuf's, over messages made at random: well-formed ones in every form that the
wire allows, and broken ones. A failure prints the seed; DIFFERENTIAL_SEED repeats it."""
import os
import random
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "interop"))
import sandbox_wire as wire  # noqa: E402

DECODE = os.path.join(wire.BUILD, "tests", "decode")
SEED = int(os.environ.get("DIFFERENTIAL_SEED") or random.SystemRandom().randrange(1 << 32))
MESSAGES = 3000
INTERESTING = (0, 1, 2, 127, 128, 16383, 16384, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 53) - 1, (1 << 63), (1 << 64) - 1)


class Maker:
    """Messages by their bytes: what a library would never write is among them."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self):
        if self.random.random() < 0.5:
            return self.random.choice(INTERESTING)
        return self.random.getrandbits(self.random.randint(1, 64))

    def varint(self, value, most=10):
        """Now and then in more bytes than it needs."""
        groups = [value & 0x7F]
        while value >> 7:
            value >>= 7
            groups.append(value & 0x7F)
        if self.random.random() < 0.1:
            groups += [0] * self.random.randint(0, max(0, most - len(groups)))
        return bytes([g | 0x80 for g in groups[:-1]] + [groups[-1]])

    def length(self, value):
        """In five bytes at most: protobuf refuses more, we don't mind."""
        return self.varint(value, 5)

    def tag(self, number, kind):
        return self.varint(number << 3 | kind, 0)

    def data(self):
        return self.random.randbytes(self.random.choice((0, 0, 1, 3, 20, 300)))

    def field(self, number, kind):
        if kind == 0:
            return self.tag(number, 0) + self.varint(self.number())
        if kind == 1:
            return self.tag(number, 1) + self.random.randbytes(8)
        if kind == 5:
            return self.tag(number, 5) + self.random.randbytes(4)
        data = self.data()
        return self.tag(number, 2) + self.length(len(data)) + data

    def member(self):
        """Of an Exec or an Abort: mostly its fields in their types, in any order and number."""
        out = b""
        for _ in range(self.random.randint(0, 8)):
            if self.random.random() < 0.8:
                number = self.random.randint(1, 5)
                out += self.field(number, 2 if number in (2, 3) else 0)
            else:
                number = self.random.choice((1, 2, 3, 4, 5, 6, 15, 16, 2047, 2048, (1 << 29) - 1))
                out += self.field(number, self.random.choice((0, 1, 2, 5)))
        return out

    def whole(self):
        out = b""
        for _ in range(self.random.choice((0, 1, 1, 1, 1, 2, 3))):
            if self.random.random() < 0.9:
                member = self.member()
                out += self.tag(self.random.choice((1, 1, 2)), 2) + self.length(len(member)) + member
            else:
                out += self.field(self.random.choice((1, 2, 3, 9, 500)), self.random.choice((0, 1, 5)))
        return out

    def broken(self):
        """Cut short, or with a piece that must not be; no groups, which we refuse and protobuf skips."""
        whole = self.whole()
        how = self.random.randint(0, 3)
        if how == 0 and whole:
            return whole[: self.random.randrange(len(whole))]
        if how == 1:
            return whole + self.random.choice((b"\x02\x00", b"\x0e\x01", b"\x0f\x01", b"\x08" + b"\x80" * 10 + b"\x01"))
        if how == 2:
            return whole + self.tag(3, 2) + self.varint(self.number() | 1)
        return whole + self.tag(1, 2) + b"\x02\x08" + b"\x80"


def what_protobuf_reads(messages, message):
    try:
        frame = messages.ServerFrame.FromString(message)
    except Exception:  # DecodeError, of whichever implementation
        return "bad"
    kind = frame.WhichOneof("msg")
    if kind == "exec":
        e = getattr(frame, "exec")
        return f"exec {e.req_id} {e.timeout_s} {int(e.streaming)} x{e.command.hex()} x{e.stdin.hex()}"
    return f"abort {frame.abort.req_id}" if kind == "abort" else "nothing"


@unittest.skipIf(wire.PROTO_MISSING, wire.PROTO_MISSING)
class Differential(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # protobuf refuses a command that is not UTF-8; we run it as the bytes that it is.
        text = wire.read_proto().replace("string command = 2;", "bytes command = 2;")
        assert text != wire.read_proto()
        cls.messages = wire.Messages(text)

    def compare(self, made):
        expected = [what_protobuf_reads(self.messages, m) for m in made]
        stream = b"".join(struct.pack(">BI", 0, len(m)) + m for m in made)
        for step in (1, 7, 65536):
            done = subprocess.run([DECODE, str(step)], input=stream, capture_output=True, timeout=60, check=True)
            ours = done.stdout.decode().splitlines()
            self.assertEqual(len(ours), len(made))
            for message, a, b in zip(made, ours, expected):
                self.assertEqual(a, b, f"DIFFERENTIAL_SEED={SEED}, in pieces of {step}: {message.hex()}")
        return expected

    def test_well_formed_messages(self):
        maker = Maker(SEED)
        read = self.compare([maker.whole() for _ in range(MESSAGES)])
        self.assertNotIn("bad", read)
        for kind in ("exec", "abort", "nothing"):
            self.assertGreater(sum(r.startswith(kind) for r in read), MESSAGES / 50, kind)

    def test_broken_messages(self):
        maker = Maker(SEED + 1)
        read = self.compare([maker.broken() for _ in range(MESSAGES)])
        self.assertGreater(read.count("bad"), MESSAGES / 4)
