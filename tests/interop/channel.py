"""A netd of one's own: starts the real program, plays execd on its channel, and reads what it says.

The layout is common/channel.h's, written a second time on purpose: a change of the wire between the two daemons must
show here."""
import fcntl
import os
import select
import socket
import struct
import subprocess
import threading
import time

SET, JAIL, DIAL, ADMITTED, DUPLICATE, REPLAY, REFUSED, FETCH, STARTED, ENDED, DRAIN = range(1, 12)
JAILED, ATTACHED, EXEC, COMMAND, ABORT, DRAINED, GOAWAY, ALIVE, CLOSED = range(64, 73)
KEYS = {
    "relay_host": 1, "relay_port": 2, "relay_tls": 3, "server_name": 4, "sandbox_id": 5, "image": 6, "trust": 7,
    "capability": 8, "capacity": 9, "heartbeat_ms": 10, "ping_ms": 11, "proxy_host": 12, "proxy_port": 13,
    "no_proxy": 14, "ca_dir": 15, "log_level": 16, "log_format": 17, "background_kill": 18, "tier": 19,
    "token": 64, "proxy_user": 65, "proxy_password": 66, "ca_file": 67, "client_cert": 68, "client_key": 69,
}
CLASSES = [None, "drained", "resolve", "connect", "proxy", "tls", "handshake-timeout", "not-http2", "protocol", "flood",
           "keepalive", "eof", "reset", "goaway", "status", "credentials", "internal"]
HEADER = struct.Struct("<BBHIQI")

# Descriptor 3 is netd's end of the channel: kept free of anything else from the start.
_null = fcntl.fcntl(os.open("/dev/null", os.O_RDONLY), fcntl.F_DUPFD_CLOEXEC, 4)
os.dup2(_null, 3)
_spawning = threading.Lock()


def _shut(program):
    """A copy as execd makes one: who can't read it starts it non-dumpable."""
    fd = os.memfd_create("netd", 0)
    with open(program, "rb") as f:
        while os.sendfile(fd, f.fileno(), None, 1 << 30):
            pass
    os.fchmod(fd, 0o111)
    return fd


class Closed:
    def __init__(self, body):
        cls, self.grpc, self.http, self.h2, self.ping_ms, self.address = struct.unpack("<BBHII16s", body)
        self.cls = CLASSES[cls]

    def __repr__(self):
        return "closed(%s grpc=%d http=%d h2=%d ping_ms=%d)" % (self.cls, self.grpc, self.http, self.h2, self.ping_ms)


class Netd:
    """One connection attempt. settings: names of KEYS; files are given as paths."""

    def __init__(self, program, log, **settings):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock, self.seq, self.closed, self.records, self.usage = ours, 0, None, [], None
        self.status, self.peak_kib = None, 0
        with _spawning:
            os.dup2(theirs.fileno(), 3)
            image = _shut(program)
            self.process = subprocess.Popen(["netd"], executable="/proc/self/fd/%d" % image, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log, pass_fds=[3, image], env={},
                                            user=65534 if os.getuid() == 0 else None)
            os.close(image)
            os.dup2(_null, 3)
        threading.Thread(target=self._watch_memory, daemon=True).start()
        theirs.close()
        base = {"relay_host": "127.0.0.1", "relay_tls": 0, "sandbox_id": "sbx-test", "trust": "untrusted", "capacity": 4,
                "heartbeat_ms": 15000, "token": "secret-token"}
        base.update(settings)
        credentials = {k: v for k, v in base.items() if KEYS[k] >= 64}
        for k, v in base.items():
            if k not in credentials:
                self._set(k, v)
        self._send(JAIL)
        self._wait(JAILED, 5)
        for k, v in credentials.items():
            self._set(k, v)
        self._send(DIAL)

    def _watch_memory(self):
        """VmHWM, which only root may read of a netd that is not dumpable. (ru_maxrss would count python's own.)"""
        while self.usage is None:
            try:
                with open("/proc/%d/status" % self.process.pid) as f:
                    for line in f:
                        if line.startswith("VmHWM:"):
                            self.peak_kib = max(self.peak_kib, int(line.split()[1]))
            except OSError:
                return
            time.sleep(0.01)

    def _send(self, kind, flags=0, req_id=0, body=b"", fds=None):
        packet = HEADER.pack(kind, flags, 0, len(body), req_id, self.seq) + body
        self.seq += 1
        if fds:
            socket.send_fds(self.sock, [packet], fds)
        else:
            self.sock.send(packet)

    def _set(self, key, value):
        number = KEYS[key]
        if number >= KEYS["ca_file"]:
            with open(value, "rb") as f:
                self._send(SET, number, 0, b"", [f.fileno()])
        elif isinstance(value, int):
            self._send(SET, number, 0, struct.pack("<I", value))
        elif isinstance(value, (list, tuple)):
            for v in value:
                self._send(SET, number, 0, v.encode())
        else:
            self._send(SET, number, 0, value if isinstance(value, bytes) else value.encode())

    def answer(self, kind, req_id, flags=0, body=b"", fds=None):
        self._send(kind, flags, req_id, body, fds)

    def receive(self, seconds):
        """The next record as (type, flags, req_id, body), or None at a timeout or the end."""
        ready, _, _ = select.select([self.sock], [], [], max(0, seconds))
        if not ready:
            return None
        try:
            packet = self.sock.recv(70000)
        except OSError:
            packet = b""
        if not packet:
            return None
        kind, flags, _, length, req_id, _ = HEADER.unpack_from(packet)
        body = packet[HEADER.size:HEADER.size + length]
        record = (kind, flags, req_id, body)
        self.records.append(record)
        if kind == CLOSED:
            self.closed = Closed(body)
        return record

    def _wait(self, kind, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            r = self.receive(end - time.monotonic())
            if r is None:
                break
            if r[0] == kind:
                return r
        raise AssertionError("record %d did not come; got %s" % (kind, [r[0] for r in self.records]))

    def wait_attached(self, seconds=10):
        return self._wait(ATTACHED, seconds)

    def wait_record(self, kind, seconds=10):
        return self._wait(kind, seconds)

    def seen(self, kind):
        return [r for r in self.records if r[0] == kind]

    def wait_closed(self, seconds):
        """Reads until CLOSED and the end of the process; kills it after that time. Sets usage."""
        end = time.monotonic() + seconds
        while self.closed is None and time.monotonic() < end:
            if self.receive(end - time.monotonic()) is None:
                break
        return self.finish(end)

    def finish(self, end=None):
        end = end or time.monotonic()
        killed = False
        while True:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end and not killed:
                self.process.kill()
                killed = True
            time.sleep(0.005)
        self.process.returncode = status
        self.status, self.usage, self.killed = status, usage, killed
        self.sock.close()
        return self.closed
