#!/usr/bin/python3
"""Peers that fall silent, against netd: the handshake has 20 s in all, whatever it waits for, and a connection that is half
open is found. All of them side by side. suite-timeout: 120

usage: check_long_silent_peers.py [NETD]; prints TAP-like lines: ok / not ok / skip."""
import ctypes
import os
import re
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hostile
import pki

if not hostile.hpack:
    hostile.main("silent_peers")
    sys.exit(0)

import channel
from h2raw import PING, Peer, listen
from hostile import begin

LIMIT_S = 20
SO_ATTACH_FILTER = 26
CASES = []


def case(cls, says, least=LIMIT_S, most=LIMIT_S + 6, before=None, **settings):
    """The class of CLOSED, what the log says, and the seconds that it takes: a limit for each stage, or one that starts anew
    with each, would take 10 s more. before: what is done with the listening socket before netd dials."""
    def add(f):
        CASES.append((f, cls, says, least, most, before, settings))
        return f
    return add


def answer_connect(conn):
    conn.recv(4096)
    conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n")


def fill(server):
    """A queue that is full: the next SYN is dropped, as by a firewall."""
    server.listen(0)
    fillers = [socket.socket() for _ in range(8)]
    for s in fillers:
        s.setblocking(False)
        s.connect_ex(server.getsockname())
    return fillers


@case("handshake-timeout", "waiting for a connection", before=fill)
def no_answer_to_syn(server, _):
    time.sleep(LIMIT_S + 10)


@case("handshake-timeout", "waiting for the proxy's answer", proxy=True)
def proxy(server, _):
    return server.accept()


@case("handshake-timeout", "waiting for the TLS handshake", relay_tls=1)
def tls(server, _):
    return server.accept()


@case("handshake-timeout", "waiting for the TLS handshake", relay_tls=1, proxy=True)
def tls_behind_a_slow_proxy(server, _):
    conn, _ = server.accept()
    time.sleep(LIMIT_S / 2)
    answer_connect(conn)
    return conn


@case("handshake-timeout", "waiting for HTTP/2")
def settings(server, _):
    return server.accept()


@case("handshake-timeout", "waiting for HTTP/2", proxy=True)
def settings_behind_a_slow_proxy(server, _):
    conn, _ = server.accept()
    time.sleep(LIMIT_S / 2)
    answer_connect(conn)
    return conn


def drop_what_comes(conn):
    """The kernel itself then answers nothing on this connection, not even with an ACK: the other end is half open."""
    nothing = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\0\0")  # BPF_RET: 0 bytes of it
    program = ctypes.create_string_buffer(16)
    ctypes.memmove(program, b"\1\0", 2)
    ctypes.memmove(ctypes.addressof(program) + 8, ctypes.byref(ctypes.c_void_p(ctypes.addressof(nothing))), 8)
    conn.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program.raw)
    return nothing


# 5 s of silence, and 10 s for the PING. Without keepalive TCP gives up after TCP_USER_TIMEOUT, that is 40 s.
@case("keepalive", "the peer is silent", least=15, most=25, ping_ms=5000, heartbeat_ms=1000)
def half_open(server, netd):
    peer = Peer(server.accept()[0])
    begin(peer)
    netd.wait_attached()
    held = drop_what_comes(peer.conn)
    peer.wait(lambda fs: False, LIMIT_S)
    assert not [f for f in peer.frames if f[0] == PING], "something came through"
    return held


@case("keepalive", "the peer is silent", least=15, most=25, ping_ms=5000, heartbeat_ms=1000)
def no_ack_of_pings(server, netd):
    peer = Peer(server.accept()[0])
    peer.ack_pings = False
    begin(peer)
    assert peer.wait_frame(PING, LIMIT_S), "no PING"
    return peer


def run(f, cls, says, least, most, before, settings, program, roots):
    log, server = tempfile.TemporaryFile(), listen()
    kept = [before(server)] if before else []
    port = server.getsockname()[1]
    settings = dict(settings, relay_port=port)
    if settings.pop("proxy", False):
        settings.update(proxy_host="127.0.0.1", proxy_port=port, relay_host="relay.invalid", relay_port=443)
    if settings.get("relay_tls"):
        settings["ca_file"] = roots
    start = time.monotonic()
    netd = channel.Netd(program, log, **settings)
    problems = []

    def serve():
        try:
            kept.append(f(server, View(netd)))
        except (AssertionError, OSError) as e:
            problems.append("%s: %s" % (type(e).__name__, e))

    threading.Thread(target=serve, daemon=True).start()
    closed = netd.wait_closed(LIMIT_S * 2)
    took = time.monotonic() - start
    log.seek(0)
    text = log.read().decode(errors="replace")
    if closed is None or closed.cls != cls:
        problems.append("closed is %r" % closed)
    if not least - 0.1 <= took <= most:
        problems.append("it took %.1f s" % took)
    if len(re.findall("level=(?:warn|error)", text)) != 1 or says not in text:
        problems.append("not one line that says %r" % says)
    if "secret-token" in text:
        problems.append("the token is in the log")
    return problems, took, text


class View:
    """What a peer's thread may ask while another reads the channel."""

    def __init__(self, netd):
        self.netd = netd

    def wait_attached(self, seconds=10):
        end = time.monotonic() + seconds
        while not self.netd.seen(channel.ATTACHED):
            assert time.monotonic() < end, "never attached"
            time.sleep(0.01)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.environ.get("BUILD", "build"), "netd")
    keys = None if pki.MISSING else pki.Pki()
    failed = []

    def work(f, *rest):
        if rest[-1].get("relay_tls") and not keys:
            print("skip silent_peers.%s: %s" % (f.__name__, pki.MISSING), flush=True)
            return
        problems, took, text = run(f, *rest, program, keys and keys["root.pem"])
        if problems:
            failed.append(f)
            print("not ok silent_peers.%s: %s\n%s" % (f.__name__, "; ".join(problems),
                                                      "\n".join("# " + line for line in text.splitlines()[-5:])), flush=True)
        else:
            print("ok silent_peers.%s # %.1f s" % (f.__name__, took), flush=True)

    threads = [threading.Thread(target=work, args=c) for c in CASES]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if keys:
        keys.stop()
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # the peers' threads may still wait


main()
