"""The relay's presence records in Redis, read with a few lines of its protocol."""
import json
import socket
import time
from urllib.parse import unquote, urlparse

RECORDS = "sh:sandbox:records"


class Presence:
    def __init__(self, url):
        at = urlparse(url)
        self.socket = socket.create_connection((at.hostname or "localhost", at.port or 6379), 10)
        self.file = self.socket.makefile("rb")
        if at.password:
            self.ask("AUTH", *filter(None, [unquote(at.username or "")]), unquote(at.password))
        if at.path.strip("/"):
            self.ask("SELECT", at.path.strip("/"))

    def close(self):
        self.file.close()
        self.socket.close()

    def ask(self, *words):
        out = b"*%d\r\n" % len(words)
        for word in words:
            data = word.encode()
            out += b"$%d\r\n%s\r\n" % (len(data), data)
        self.socket.sendall(out)
        return self.answer()

    def answer(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:].strip()
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        return rest.decode()

    def record(self, sandbox_id):
        """The record of this id as a dictionary, or None. The records are a hash by id."""
        text = self.ask("HGET", RECORDS, sandbox_id)
        return None if text is None else json.loads(text)

    def wait(self, sandbox_id, there, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            record = self.record(sandbox_id)
            if (record is not None) == there:
                return record
            time.sleep(0.02)
        raise AssertionError(f"{sandbox_id} is {'not ' if there else 'still '}in {RECORDS}")
