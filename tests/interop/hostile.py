"""Runs scripted HTTP/2 servers against netd, a few side by side, and judges how netd took each.

A scenario is a function of a Peer (h2raw.py) and a Netd (channel.py). What it ends in is said where it is registered."""
import os
import queue
import re
import sys
import tempfile
import threading
import time

try:
    import hpack
except ImportError:
    hpack = None

if hpack:
    import channel
    from h2raw import (DATA, GOAWAY, OK_HEADERS, PING, RST, SETTINGS, WINDOW, Peer, data, frame, headers, listen, settings)

SIDE_BY_SIDE = 8
MEMORY_KIB = 16 * 1024  # VmHWM of a netd that holds no message; an idle one has 5 MiB
MESSAGE_KIB = 40 * 1024  # of one that holds a message of the greatest size
SCENARIOS = []


class Scenario:
    def __init__(self, name, function, cls, attached=True, log=None, seconds=12, memory_kib=MEMORY_KIB, serves=0, settings=None,
                 lines=None, leaves=True, **numbers):
        self.name, self.function, self.cls, self.attached, self.log = name, function, cls, attached, log
        self.seconds, self.memory_kib, self.serves, self.lines = seconds, memory_kib, serves, lines
        self.settings, self.leaves, self.numbers = settings or {}, leaves, numbers


def scenario(cls, **expect):
    """cls: the class that CLOSED must give, and with it the one line of the log; None: the connection still stands at the end.

    attached=False: Hello did not leave. serves: Execs and Aborts that were handed on, for those end the backoff. log: a pattern.
    lines: how many warnings. leaves=False: the peer does not see how netd leaves, for it still sends. grpc, h2, http, ping_ms: numbers of CLOSED. settings: for netd. memory_kib, seconds: bounds."""
    def add(f):
        SCENARIOS.append(Scenario(f.__name__, f, cls, **expect))
        return f
    return add


def variant(name, f, cls, **expect):
    """A scenario from a table."""
    SCENARIOS.append(Scenario(name, f, cls, **expect))


# --- for scenarios -------------------------------------------------------------------------------------------------------
def hello(peer):
    """Our SETTINGS, and netd's Hello."""
    peer.send(settings() + settings(ack=True))
    got = peer.wait_messages(1)
    assert got, "no Hello came"
    assert got[0][0] == 0x0A, "the first message is not a Hello: %r" % got[0][:20]


def begin(peer):
    hello(peer)
    peer.send(headers(OK_HEADERS))


def still_serves(peer, netd):
    peer.send(frame(PING, 0, 0, b"stillup!"))
    assert peer.wait(lambda fs: [f for f in fs if f[0] == PING and f[1] & 1 and f[3] == b"stillup!"]), "no PING ack"
    assert netd.closed is None


def flood(peer, piece, times):
    """Until it is all sent or netd is gone."""
    peer.conn.settimeout(5)
    try:
        for _ in range(times):
            peer.send(piece)
    except OSError:
        pass


def given_windows(frames):
    """Bytes that netd has allowed so far, for the connection and for stream 1."""
    initial, give = 65535, {0: 65535, 1: 0}
    for f in frames:
        if f[0] == SETTINGS and not f[1] & 1:
            for i in range(0, len(f[3]), 6):
                if f[3][i:i + 2] == b"\0\4":
                    initial = int.from_bytes(f[3][i + 2:i + 6], "big")
        elif f[0] == WINDOW and f[2] in give:
            give[f[2]] += int.from_bytes(f[3], "big")
    give[1] += initial
    return give


def send_flow(peer, payload, seconds=20):
    """DATA within the windows that netd gives. False: they stayed shut."""
    sent, end = 0, time.monotonic() + seconds
    while sent < len(payload):
        with peer.lock:
            give = given_windows(peer.frames)
            room = min(give[0] - sent, give[1] - sent, len(payload) - sent)
            if room <= 0:
                left = end - time.monotonic()
                if left <= 0 or peer.ended:
                    return False
                peer.lock.wait(min(left, 0.2))
                continue
        piece = payload[sent:sent + room]
        peer.send(b"".join(data(piece[i:i + 16384]) for i in range(0, len(piece), 16384)))
        sent += room
    return True


# --- the judge -----------------------------------------------------------------------------------------------------------
def judge_log(s, c, text):
    warned = [line for line in text.splitlines() if "level=warn" in line or "level=error" in line]
    lines = s.lines if s.lines is not None else 1 if c is not None and c.cls != "drained" else 0
    if len(warned) != lines:
        return "%d warnings, expected %d" % (len(warned), lines)
    if c is not None and lines and not re.search(r'msg="?(connection closed|dial failed)"? class=%s .*(why|reason)="?[^" ]' % c.cls, warned[-1]):
        return "the line does not say the class and why"
    if s.log and not re.search(s.log, text):
        return "the log does not say %r" % s.log
    if "\x1b" in text or "\nnetd level=info msg=forged" in text:
        return "the log can be forged"
    if "secret-token" in text:
        return "the token is in the log"
    return None


def judge_leaving(s, peer):
    """RST_STREAM, GOAWAY and FIN: a relay that does not see them keeps the session, and refuses the next."""
    # RFC 9113 3.4: what is not HTTP/2 needs no GOAWAY.
    if not s.leaves or s.cls in (None, "eof", "not-http2"):
        return None
    if not peer.wait_end():
        return "netd left without FIN"
    goaways = [f for f in peer.frames if f[0] == GOAWAY]
    resets = [int.from_bytes(f[3], "big") for f in peer.frames if f[0] == RST and f[2] == 1]
    if not goaways:
        return "netd left without GOAWAY"
    broken = any(int.from_bytes(f[3][4:8], "big") for f in goaways)
    ended = s.cls in ("reset", "goaway") or any(f[0] == DATA and f[1] & 1 for f in peer.frames)
    if s.attached and not (resets or ended or broken):
        return "netd left its stream open"
    if s.cls != "protocol" and resets and resets[-1] not in (0, 8):
        return "RST_STREAM says %d" % resets[-1]
    return None


def judge(s, netd, text):
    if netd.peak_kib > s.memory_kib:
        return "memory: %d KiB" % netd.peak_kib
    if netd.peak_kib == 0 and os.geteuid() == 0:
        return "memory was not measured"
    if os.WIFSIGNALED(netd.status) and not netd.killed:
        return "netd died of signal %d" % os.WTERMSIG(netd.status)
    c = netd.closed
    if s.cls is None:
        if c is not None:
            return "closed although it should stand: %r" % c
        return judge_log(s, None, text)
    if c is None:
        return "no CLOSED record"
    if c.cls not in s.cls.split("|"):
        return "class %s, expected %s (%r)" % (c.cls, s.cls, c)
    if s.attached != bool(netd.seen(channel.ATTACHED)):
        return "attached" if not s.attached else "never attached"
    served = len(netd.seen(channel.EXEC)) + len(netd.seen(channel.ABORT))
    if s.serves is not None and served != s.serves:
        return "%d Execs and Aborts were handed on, expected %d" % (served, s.serves)
    for key, value in s.numbers.items():
        if getattr(c, key) != value:
            return "%s is %d, expected %d (%r)" % (key, getattr(c, key), value, c)
    return judge_log(s, c, text)


def run(s, program, security):
    """(what is wrong or None, the log, the netd). security: of tls_conn.py, None: plaintext."""
    log = tempfile.TemporaryFile()
    server = listen()
    settings = dict({"relay_port": server.getsockname()[1]}, **s.settings)
    peer, problem, others = None, None, []
    if security:
        settings.update(security.settings)
    netd = channel.Netd(program, log, **settings)

    def again():
        others.append(channel.Netd(program, log, **settings))
        return others[-1]

    def accept():
        conn = server.accept()[0]
        accepted = Peer(security.secure(conn) if security else conn)
        accepted.scheme = "https" if security else "http"
        return accepted

    netd.again, netd.accept = again, accept
    try:
        peer = accept()
        s.function(peer, netd)
        if s.cls is not None and netd.usage is None:
            netd.wait_closed(s.seconds)
        while s.cls is None and netd.receive(0.05):
            pass
    except (AssertionError, OSError) as e:
        problem = "%s: %s" % (type(e).__name__, e)
    for n in [netd] + others:
        if n.usage is None:
            n.finish(0)
    server.close()
    log.seek(0)
    text = log.read().decode(errors="replace")
    return problem or judge(s, netd, text) or judge_leaving(s, peer), text, netd


def report(suite, s, seconds, problem, text, netd):
    about = "%r " % netd.closed if netd.closed else ""
    lines = ["ok %s.%s # %s%.1f s, %d KiB" % (suite, s.name, about, seconds, netd.peak_kib)]
    if problem:
        lines = ["not ok %s.%s: %s" % (suite, s.name, problem)] + ["# " + line for line in text.splitlines()[-5:]]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    return problem is None


def main(suite, security=None):
    """usage: check_… [NETD [name ...]]"""
    if not hpack:
        print("skip %s: python3-hpack is not installed" % suite)
        return
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.environ.get("BUILD", "build"), "netd")
    only, todo, failed = sys.argv[2:], queue.Queue(), []
    if os.geteuid() != 0:
        print("skip %s.memory: only root may read it" % suite)
    for s in SCENARIOS:
        if not only or s.name in only:
            todo.put(s)

    def work():
        while True:
            try:
                s = todo.get_nowait()
            except queue.Empty:
                return
            start = time.monotonic()
            try:
                result = run(s, program, security)
            except Exception as e:  # a scenario that is broken is one failure, not the end of the others
                print("not ok %s.%s: %s: %s" % (suite, s.name, type(e).__name__, e), flush=True)
                failed.append(s.name)
                continue
            if not report(suite, s, time.monotonic() - start, *result):
                failed.append(s.name)

    threads = [threading.Thread(target=work) for _ in range(SIDE_BY_SIDE)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.exit(1 if failed else 0)
