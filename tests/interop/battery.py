"""The contract, once, for any relay: a class of tests that names a stack (a relay.Relay), a way (h2c, TLS, mTLS) and a wire
gets all of it. Each test has a worker of its own; the relay is one for the class."""
import base64
import hashlib
import os
import re
import shutil
import tempfile
import time
import unittest

import pki
import sandbox_wire as wire
from relay import Tls
from worker import Worker, alive, wait_for

MIB = 1 << 20


class H2c:
    NAME, MISSING = "h2c", None

    def __init__(self):
        self.relay, self.settings = None, {}

    def stop(self):
        pass


class OverTls:
    NAME, MISSING = "tls", pki.MISSING

    def __init__(self):
        self.pki = pki.Pki()
        self.relay = Tls(self.pki.read("relay.key"), self.pki.read("relay.pem"))
        self.settings = {"RELAY_TLS": "1", "RELAY_CA_FILE": self.pki["root.pem"]}

    def stop(self):
        self.pki.stop()


class OverMtls(OverTls):
    NAME = "mtls"

    def __init__(self):
        super().__init__()
        self.relay.roots = self.pki.read("root.pem")
        self.settings = {**self.settings, **self.identity("worker")}

    def identity(self, name):
        return {"RELAY_CERT_FILE": self.pki[name + ".pem"], "RELAY_KEY_FILE": self.pki[name + ".key"]}


class Rig(unittest.TestCase):
    """A relay, and a worker that has attached to it. setUpClass is what a derived class's stack, way and wire make."""

    stack, way, wire_text = None, H2c, staticmethod(wire.read_proto)

    @classmethod
    def setUpClass(cls):
        why = cls.stack.MISSING or cls.way.MISSING
        if why:
            raise unittest.SkipTest(why)
        cls.ends = cls.way()
        cls.relay = cls.stack(wire.Messages(cls.wire_text()), cls.ends.relay)
        cls.mark = f"5001.{os.getpid():07d}"

    @classmethod
    def tearDownClass(cls):
        cls.relay.stop()
        cls.ends.stop()

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.worker = None
        self.relay.forget()
        self.start_worker()

    def tearDown(self):
        try:
            self.stop_worker()
        finally:
            shutil.rmtree(self.folder)
        self.assertEqual(self.relay.complaints, [])
        self.assertEqual(alive(self.mark), 0, "left behind")

    def new_worker(self, **settings):
        log = os.path.join(self.folder, "log")
        return Worker(f"localhost:{self.relay.port}", log, **{**self.ends.settings, **settings})

    def start_worker(self, **settings):
        if self.worker:
            self.stop_worker()
        self.worker = self.new_worker(**settings)
        self.attached = self.relay.wait_attached(len(self.relay.workers) + 1)

    def stop_worker(self):
        """The relay has all that it sent, and has let it go, when this returns."""
        self.worker.terminate()
        self.assertEqual(self.worker.wait(), 0)
        self.assertTrue(self.relay.wait(lambda: all(w.gone for w in self.relay.workers)), "a ghost at the relay")

    def reattached(self):
        """The stream after self.attached is the one to go on with."""
        self.attached = self.relay.wait_attached(self.relay.workers.index(self.attached) + 2)

    def path(self, name):
        return os.path.join(self.folder, name)

    def size(self, name):
        try:
            return os.path.getsize(self.path(name))
        except FileNotFoundError:
            return 0

    def touch(self, name):
        with open(self.path(name), "wb"):
            pass

    def run_(self, req_id, command, **more):
        return self.relay.run(self.attached, req_id, command, **more)

    def send(self, req_id, command, **more):
        return self.relay.send(self.attached, req_id, command, **more)

    def send_up(self, req_id, command, **more):
        """Sends, and waits until the command says "up"."""
        seen = self.send(req_id, f"echo up; {command}", **more)
        self.assertTrue(self.relay.wait(lambda: seen.out == b"up\n"), f"{req_id} is not up")
        return seen

    def abort(self, req_id):
        self.relay.abort(self.attached, req_id)

    def wait_answers(self, *execs):
        for seen in execs:
            self.relay.wait_answers(seen)

    def until(self, name):
        """Shell: until there is that file in our folder."""
        return f"until [ -e '{self.path(name)}' ]; do sleep 0.02; done"

    def counting(self, name, rest):
        return f"echo >> '{self.path(name)}'; {rest}"


class Battery(Rig):
    # --- Hello, Heartbeats, what the relay does not say ---------------------------------------------------------------
    def test_hello_is_true(self):
        self.assertEqual((self.attached.hello.capacity_max, self.attached.hello.trust), (4, "untrusted"))
        programs = self.path("bin")
        os.mkdir(programs)
        for name in ("bash", "base64", "sleep"):
            os.symlink(shutil.which(name), os.path.join(programs, name))
        self.start_worker(PATH=programs, WORKER_MAX_CONCURRENT="7", SANDBOX_IMAGE="image:1", SANDBOX_TRUST="trusted")
        hello = self.attached.hello
        self.assertEqual((hello.sandbox_id, hello.image, hello.trust), ("sbx", "image:1", "trusted"))
        self.assertEqual((sorted(hello.capabilities), hello.capacity_max), (["base64", "bash"], 7))
        self.assertEqual(hello.arch, {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine])
        self.assertEqual(dict(hello.labels), {"moca.dev/tier": "container"})

    def test_heartbeats_come_to_a_relay_that_has_said_nothing(self):
        self.assertTrue(self.relay.wait(lambda: self.attached.heartbeats >= 1))
        self.assertEqual(self.run_(1, "exit 4").answer, 4)

    def test_what_is_new_on_the_wire_is_skipped(self):
        newest = wire.Messages(wire.proto_with_workspace_key())
        work = newest.Exec(req_id=1, command="exit 4", workspace_key="key").SerializeToString() + b"\xc0\x3e\x05"
        frame = b"\x0a" + bytes([len(work)]) + work
        first, last = self.send(2, "exit 5"), self.send(3, "exit 6")
        with self.relay.changed:
            self.relay.execs[1] = new = type(first)()
        for raw in (b"", b"\x7a\x03new", frame):
            self.relay.write(self.attached, raw)
        self.wait_answers(first, last, new)
        self.assertEqual([e.answer for e in (first, last, new)], [5, 6, 4])

    # --- a command's bytes and its code -------------------------------------------------------------------------------
    def test_stdout_stderr_and_exit_code(self):
        done = self.run_(1, "echo out; echo err >&2; exit 7")
        self.assertEqual((done.out, done.err, done.answer), (b"out\n", b"err\n", 7))
        self.assertEqual(self.run_(2, "kill -KILL $$").answer, -1)
        self.assertEqual(self.run_((1 << 64) - 1, "exit 3").answer, 3)

    def test_stdin_ends(self):
        self.assertEqual(self.run_(1, "cat; echo $?").out, b"0\n")
        self.assertEqual(self.run_(2, "cat", stdin=b"\0any\xff").out, b"\0any\xff")

    def test_three_mib_are_written_and_read_and_grepped(self):
        file, data = self.path("file"), os.urandom(3 * MIB)
        self.assertEqual(self.run_(1, f"base64 -d > '{file}'", stdin=base64.b64encode(data)).answer, 0)
        with open(file, "rb") as f:
            self.assertEqual(f.read(), data)
        self.assertEqual(self.run_(2, f"cat '{file}'").out, data)
        done = self.run_(3, "seq 1 300000 | grep 7")
        expected = b"".join(b"%d\n" % i for i in range(1, 300001) if b"7" in b"%d" % i)
        self.assertEqual((done.out, done.answer), (expected, 0))
        self.assertGreater(len(done.sizes["out"]), 2)

    def test_fifteen_mib_of_stdin_and_back(self):
        data = os.urandom(15 * MIB)
        done = self.run_(1, "cat", stdin=data)
        self.assertEqual((done.answer, hashlib.sha256(done.out).digest()), (0, hashlib.sha256(data).digest()))

    # --- not streaming ------------------------------------------------------------------------------------------------
    def test_not_streaming_says_nothing_before_the_exit(self):
        command = f"echo out; echo err >&2; echo > '{self.path('said')}'; {self.until('go')}; exit 3"
        seen = self.send(1, command, streaming=False)
        self.assertEqual(self.run_(2, self.until("said")).answer, 0)
        self.assertEqual((seen.out, seen.err, seen.terminals), (b"", b"", []))
        self.touch("go")
        self.wait_answers(seen)
        self.assertEqual((seen.out, seen.err, seen.answer), (b"out\n", b"err\n", 3))
        self.assertEqual(seen.sizes, {"out": [4], "err": [4]})

    def test_not_streaming_is_cut_at_eight_mib(self):
        for req_id, size, cut in ((1, 8 * MIB, False), (2, 8 * MIB + 1, True)):
            seen = self.run_(req_id, f"head -c {size} /dev/zero; exit 9", streaming=False)
            self.assertEqual((len(seen.out), seen.answer), (8 * MIB, 9))
            self.check_truncated(seen, cut)
        seen = self.run_(3, f"echo out; head -c {8 * MIB + 1} /dev/zero >&2", streaming=False)
        self.assertEqual((seen.out, len(seen.err), seen.answer), (b"out\n", 8 * MIB, 0))
        self.check_truncated(seen, False)

    def check_truncated(self, seen, cut):
        self.assertIs(seen.truncated, cut)

    # --- timeout and abort --------------------------------------------------------------------------------------------
    def test_timeout_kills_and_is_remembered(self):
        command = self.counting("ran", f"setsid sleep {self.mark} & echo up; sleep {self.mark}")
        seen = self.send(1, command, timeout_s=1)
        self.wait_answers(seen)
        self.assertEqual(alive(self.mark), 0)
        self.assertEqual((seen.answer, seen.out), ("timeout:1", b"up\n"))
        again = self.run_(1, command, timeout_s=1)
        self.assertEqual((again.answer, again.out, self.size("ran")), ("timeout:1", b"", 1))

    def test_abort_kills_the_group(self):
        seen = self.send_up(1, f"setsid sleep {self.mark} & yes {self.mark} >&2 & sleep {self.mark}")
        self.assertTrue(self.relay.wait(lambda: seen.err))
        self.abort(1)
        self.abort(1)
        self.wait_answers(seen)
        self.assertEqual(alive(self.mark), 0)
        self.assertEqual(seen.answer, -1)
        self.assertEqual(self.run_(2, "exit 2").answer, 2)  # what came after the End would have come by now

    def test_abort_of_what_waits_and_of_nothing(self):
        self.start_worker(WORKER_MAX_CONCURRENT="1")
        running = self.send_up(1, self.until("go"))
        waiting = self.send(2, self.counting("ran", "true"))
        self.abort(3)
        self.abort(2)
        self.wait_answers(waiting)
        self.assertEqual((waiting.answer, running.terminals), (-1, []))
        self.touch("go")
        self.wait_answers(running)
        self.abort(1)
        self.assertEqual((running.answer, self.run_(4, "exit 4").answer, self.size("ran")), (0, 4, 0))

    # --- ids ----------------------------------------------------------------------------------------------------------
    def test_a_finished_id_is_answered_from_memory_or_runs_other_work(self):
        command = self.counting("ran", "echo out; exit 7")
        self.assertEqual(self.run_(1, command).answer, 7)
        again = self.run_(1, command)
        self.assertEqual((again.answer, again.out, self.size("ran")), (7, b"", 1))
        other = self.run_(1, command + " ")
        self.assertEqual((other.answer, other.out, self.size("ran")), (7, b"out\n", 2))

    def test_a_duplicate_in_flight_is_answered_once(self):
        command = self.counting("ran", f"echo up; {self.until('go')}")
        seen = self.send(1, command)
        self.assertTrue(self.relay.wait(lambda: seen.out == b"up\n"))
        self.relay.send_again(self.attached, 1, command)
        self.assertEqual(self.run_(2, "exit 2").answer, 2)
        self.touch("go")
        self.wait_answers(seen)
        self.assertEqual(self.run_(3, "exit 3").answer, 3)  # a second answer would have come by now
        self.assertEqual((seen.answers, self.size("ran")), ([0], 1))

    def test_other_work_under_an_id_in_flight_is_a_collision(self):
        seen = self.send_up(1, self.until("go"), answers_max=2)
        self.relay.send_again(self.attached, 1, "echo other")
        self.wait_answers(seen)
        self.assertRegex(seen.answer, "^req_id collision: ")
        self.touch("go")
        self.relay.wait_answers(seen, 2)
        self.assertEqual((seen.answers[1], seen.out), (0, b"up\n"))

    # --- the queue and what is refused --------------------------------------------------------------------------------
    def test_the_sixty_ninth_is_refused_and_aborts_are_read(self):
        running = [self.send_up(1 + i, f"exec sleep {self.mark}") for i in range(4)]
        waiting = [self.send(10 + i, self.counting("ran", "true")) for i in range(64)]
        self.assertEqual(self.run_(100, "true").answer, "busy: queue full")
        self.abort(20)
        self.wait_answers(waiting[10])
        self.assertEqual(waiting[10].answer, -1)
        for i in range(4):
            self.abort(1 + i)
        self.wait_answers(*running, *waiting)
        self.assertEqual([e.answer for e in running], [-1] * 4)
        self.assertEqual(([e.answer for e in waiting].count(0), self.size("ran")), (63, 63))

    def test_first_come_first_run(self):
        self.start_worker(WORKER_MAX_CONCURRENT="1")
        ids = [7, 3, 9, 1, 8, 2, 1 << 60, 5]
        first = self.send_up(100, self.until("go"))
        rest = [self.send(i, f"echo {i} >> '{self.path('order')}'") for i in ids]
        self.touch("go")
        self.wait_answers(first, *rest)
        with open(self.path("order"), encoding="ascii") as f:
            self.assertEqual([int(line) for line in f], ids)

    def test_too_much_input_is_refused(self):
        self.start_worker(WORKER_MAX_CONCURRENT="1")
        running = self.send_up(1, self.until("go"))
        data = bytes(15 * MIB)
        waiting = [self.send(2 + i, "wc -c", stdin=data) for i in range(4)]
        self.assertEqual(self.run_(6, "wc -c", stdin=data).answer, "busy: memory")
        self.touch("go")
        self.wait_answers(running, *waiting)
        self.assertEqual({bytes(e.out) for e in waiting}, {b"%d\n" % len(data)})

    def test_what_cannot_run_is_refused(self):
        self.assertRegex(self.run_(1, "echo a\0b").answer, "NUL")
        self.assertRegex(self.run_(2, " " * (MIB + 1)).answer, "1 MiB")
        self.assertEqual(self.run_(1, "exit 3").answer, 3)

    def test_a_failed_start_says_why_and_is_not_remembered(self):
        shutil.copy(shutil.which("bash"), self.path("bash"))
        self.start_worker(PATH=f"{self.folder}:{os.environ['PATH']}")
        os.rename(self.path("bash"), self.path("away"))
        self.assertEqual(self.run_(1, "exit 3").answer, "could not start: bash: No such file or directory")
        os.rename(self.path("away"), self.path("bash"))
        self.assertEqual(self.run_(1, "exit 3").answer, 3)

    # --- the end of the stream ----------------------------------------------------------------------------------------
    def lose(self, how):
        """What was done is answered from memory after the reconnect; what ran is killed, and runs again."""
        done = self.counting("done", "echo out; exit 7")
        killed = self.counting("killed", f"echo up; setsid sleep {self.mark} & sleep {self.mark}")
        self.assertEqual(self.run_(1, done).answer, 7)
        seen = self.send(2, killed)
        self.assertTrue(self.relay.wait(lambda: seen.out == b"up\n"))
        how()
        wait_for(lambda: alive(self.mark) == 0, "the loss of the stream does not kill", 8)
        self.reattached()
        again = self.run_(1, done)
        self.assertEqual((again.answer, again.out, self.size("done"), self.size("killed")), (7, b"", 1, 1))
        seen = self.send(2, killed)
        self.assertTrue(self.relay.wait(lambda: seen.out == b"up\n"))
        self.assertEqual(self.size("killed"), 2)
        self.abort(2)
        self.wait_answers(seen)

    def test_an_end_with_ok_is_a_loss(self):
        self.lose(lambda: self.relay.end(self.attached))

    def test_a_status_of_failure_is_a_loss(self):
        self.lose(lambda: self.relay.fail(self.attached))

    def test_a_restart_of_the_relay_is_a_loss(self):
        def restart():
            self.relay.stop()
            self.assertTrue(self.relay.wait(lambda: self.attached.gone))
            self.relay.start(self.ends.relay)

        self.lose(restart)

    def test_a_wrong_token_is_turned_away(self):
        self.relay.token = "other"
        self.relay.end(self.attached)
        self.assertTrue(self.relay.wait(lambda: self.relay.refused >= 1))
        self.relay.token = self.relay.TOKEN
        self.reattached()
        self.assertEqual(self.run_(1, "exit 2").answer, 2)
        self.assertRegex(self.worker.log(), 'msg="connection closed" class=status .*grpc_status=OK ')

    def test_sigterm_answers_what_runs_and_waits(self):
        running = [self.send_up(1 + i, f"setsid sleep {self.mark} & sleep {self.mark}") for i in range(4)]
        waiting = self.send(9, "true")
        self.assertRegex(self.run_(10, "\0").answer, "NUL")  # so the one before it waits
        self.worker.terminate()
        self.assertEqual(self.worker.wait(5), 0)
        self.assertEqual(alive(self.mark), 0)
        self.assertTrue(self.relay.wait(lambda: self.attached.gone))
        self.assertEqual([e.answers for e in (*running, waiting)], [[-1]] * 4 + [["shutting down"]])


class WantsCertificate:
    """Beside the battery, for a relay that has its clients show a certificate."""

    def check_turned_away(self, reason, **settings):
        """One line of netd's an attempt, which says why, and the waits between them are kept. No byte comes to the relay."""
        self.stop_worker()
        known, began = len(self.relay.workers), time.monotonic()
        self.worker = self.new_worker(**settings)
        self.worker.wait_log("attempt failed", 2)
        took_ms = (time.monotonic() - began) * 1000
        self.worker.terminate()
        self.assertEqual(self.worker.wait(), 0)
        log = self.worker.log()
        lines = re.findall("^netd level=warn .*|^netd level=error .*", log, re.MULTILINE)[:2]
        self.assertEqual([bool(re.search(reason, line)) for line in lines], [True] * 2, lines)
        waits = [int(ms) for ms in re.findall(r'msg="attempt failed" .*backoff_ms=(\d+)', log)]
        self.assertLessEqual(waits[0], took_ms)
        for wait_ms, most in zip(waits, (1000, 2000)):
            self.assertLessEqual(wait_ms, most)
        self.assertEqual((len(self.relay.workers), self.relay.refused), (known, 0))
        self.start_worker()
        self.assertEqual(self.run_(1, "exit 3").answer, 3)

    def test_a_worker_without_a_certificate_says_so_and_waits(self):
        self.check_turned_away(r"(wants|asks for) a client certificate \(RELAY_CERT_FILE\)", RELAY_CERT_FILE="", RELAY_KEY_FILE="")

    def test_a_certificate_of_another_root_is_turned_away(self):
        self.check_turned_away(r"refused the client certificate \(RELAY_CERT_FILE\)", **self.ends.identity("stranger"))


class Original:
    """The battery on the wire as it was at first: what it does not know must do no harm."""

    wire_text = staticmethod(wire.proto_without_truncated)

    def check_truncated(self, seen, cut):
        self.assertIsNone(seen.truncated)
