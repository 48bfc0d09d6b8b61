"""Raw HTTP/2 frames, for servers that no library would let one write."""
import socket
import struct
import threading
import time

import hpack

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
OK_HEADERS = [(":status", "200"), ("content-type", "application/grpc")]
TRAILERS = [("grpc-status", "0"), ("grpc-message", "fine")]


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def block(headers):
    return hpack.Encoder().encode(headers)


def headers(h, end_headers=True, end_stream=False, stream=1):
    return frame(HEADERS, (4 if end_headers else 0) | (1 if end_stream else 0), stream, block(h))


def settings(*pairs, ack=False):
    return frame(SETTINGS, 1 if ack else 0, 0, b"".join(struct.pack(">HI", k, v) for k, v in pairs))


def goaway(last, code, debug=b""):
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, code) + debug)


def rst(code, stream=1):
    return frame(RST, 0, stream, struct.pack(">I", code))


def window(stream, n):
    return frame(WINDOW, 0, stream, struct.pack(">I", n))


def message(body, compressed=0):
    return bytes([compressed]) + struct.pack(">I", len(body)) + body


def data(payload, end=False, stream=1):
    return frame(DATA, 1 if end else 0, stream, payload)


def varint(n):
    out = b""
    while True:
        out += bytes([n & 0x7F | (0x80 if n > 0x7F else 0)])
        n >>= 7
        if not n:
            return out


def field(number, value):
    """One protobuf field: int, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def exec_frame(req_id, command, stdin=b"", timeout=0, streaming=1, extra=b""):
    body = field(1, req_id) + field(2, command) + (field(3, stdin) if stdin else b"")
    body += (field(4, timeout) if timeout else b"") + (field(5, streaming) if streaming else b"") + extra
    return field(1, body)


def abort_frame(req_id):
    return field(2, field(1, req_id))


class Peer:
    """One accepted connection: frames that came are kept, SETTINGS and PINGs are answered only when asked."""

    def __init__(self, conn, read=True):
        self.conn, self.frames, self.buffer, self.ended = conn, [], b"", False
        self.lock = threading.Condition()
        self.ack_pings = True
        self.paused = threading.Event()
        if read:
            threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        got_preface = False
        try:
            while True:
                while self.paused.is_set():
                    time.sleep(0.01)
                piece = self.conn.recv(65536)
                if not piece:
                    break
                self.buffer += piece
                if not got_preface:
                    if len(self.buffer) < len(PREFACE):
                        continue
                    assert self.buffer.startswith(PREFACE), self.buffer[:40]
                    self.buffer, got_preface = self.buffer[len(PREFACE):], True
                self._cut()
        except OSError:
            pass
        with self.lock:
            self.ended = True
            self.lock.notify_all()

    def _cut(self):
        while len(self.buffer) >= 9:
            size = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + size:
                return
            f = (self.buffer[3], self.buffer[4], int.from_bytes(self.buffer[5:9], "big"), self.buffer[9:9 + size])
            self.buffer = self.buffer[9 + size:]
            if f[0] == PING and not f[1] & 1 and self.ack_pings:
                self.send(frame(PING, 1, 0, f[3]))
            with self.lock:
                self.frames.append(f)
                self.lock.notify_all()

    def send(self, piece):
        self.conn.sendall(piece)

    def end(self):
        """FIN both ways; close() alone says nothing while the reader waits in recv()."""
        try:
            self.conn.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def wait(self, want, seconds=10):
        """Waits until want(frames) is true; its value."""
        end = time.monotonic() + seconds
        with self.lock:
            while True:
                value = want(self.frames)
                if value or self.ended:
                    return value
                left = end - time.monotonic()
                if left <= 0:
                    return value
                self.lock.wait(left)

    def wait_frame(self, kind, seconds=10, flags=0, stream=None):
        return self.wait(lambda fs: [f for f in fs if f[0] == kind and f[1] & flags == flags
                                     and (stream is None or f[2] == stream)], seconds)

    def wait_stream_end(self, seconds=10):
        return self.wait(lambda fs: [f for f in fs if f[0] == DATA and f[1] & 1 or f[0] == RST], seconds)

    def wait_end(self, seconds=10):
        end = time.monotonic() + seconds
        with self.lock:
            while not self.ended and time.monotonic() < end:
                self.lock.wait(end - time.monotonic())
            return self.ended

    def messages(self):
        """gRPC messages that came on stream 1, whole ones only."""
        joined = b""
        for f in list(self.frames):
            if f[0] == DATA:
                payload = f[3]
                if f[1] & 8:
                    payload = payload[1:len(payload) - payload[0]]
                joined += payload
        out = []
        while len(joined) >= 5:
            size = int.from_bytes(joined[1:5], "big")
            if len(joined) < 5 + size:
                break
            out.append(joined[5:5 + size])
            joined = joined[5 + size:]
        return out

    def wait_messages(self, n, seconds=10):
        end = time.monotonic() + seconds
        while len(self.messages()) < n and time.monotonic() < end and not self.ended:
            time.sleep(0.005)
        return self.messages()


def listen(host="127.0.0.1"):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((host, 0))
    s.listen(16)
    s.settimeout(15)
    return s
