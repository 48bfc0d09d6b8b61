"""Our worker as a test starts it, and what is to be seen of it from outside."""
import os
import re
import signal
import subprocess
import time

import sandbox_wire as wire

EXECD = os.path.join(wire.BUILD, "execd")


def alive(mark):
    """Processes that have mark on their command line."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                count += mark.encode() in f.read()
        except OSError:
            pass
    return count


def wait_for(what, why, seconds=20):
    """Until what() is true. For what nothing tells of."""
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise AssertionError(why() if callable(why) else why)
        time.sleep(0.02)


class Worker:
    """Runs from construction on. Its log is in log_file."""

    def __init__(self, address, log_file, **settings):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")}
        ours = {"RELAY_ADDR": address, "SANDBOX_ID": "sbx", "SANDBOX_TOKEN": "token", "HEARTBEAT_S": "1"}
        self.log_file = log_file
        with open(log_file, "wb") as log:
            self.process = subprocess.Popen([EXECD], env={**kept, **ours, **settings}, stdin=subprocess.DEVNULL, stderr=log)

    def log(self):
        with open(self.log_file, encoding="utf-8") as f:
            return f.read()

    def wait_log(self, text, count=1, seconds=20):
        wait_for(lambda: self.log().count(text) >= count, lambda: f"{text!r} is not {count} times in: {self.log()}", seconds)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds=8):
        """Its exit code; killed after that time."""
        try:
            return self.process.wait(seconds)
        finally:
            self.process.kill()
            self.process.wait()


class OurRelay:
    """`test-relay serve` with the worker's token; port is where it listens."""

    PROGRAM = os.path.join(wire.BUILD, "test-relay")

    def __init__(self, log_file, port=0, options=()):
        self.log_file, self.port, self.options = log_file, port, options
        self.start()

    def start(self):
        """With a new log; on the same port as before."""
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(
                [self.PROGRAM, "serve", "--listen", f"127.0.0.1:{self.port}", "--token", "token", *self.options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        wait_for(lambda: "listening" in self.log(), "the relay does not listen")
        self.port = int(re.search(r"listening on port (\d+)", self.log())[1])

    def log(self):
        with open(self.log_file, encoding="utf-8") as f:
            return f.read()

    def attached(self):
        """How often a worker has attached."""
        return self.log().count("msg=attached")

    def gone(self):
        return self.log().count("msg=gone")

    def wait_attached(self, times):
        wait_for(lambda: self.attached() >= times, lambda: f"{self.attached()} times attached, not {times}")

    def client(self, *arguments):
        return [self.PROGRAM, "exec", "--relay", f"127.0.0.1:{self.port}", "--sandbox-id", "sbx", *arguments]

    def exec(self, *arguments, stdin=None):
        return subprocess.run(self.client(*arguments), input=stdin, capture_output=True, timeout=60, check=False)

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
