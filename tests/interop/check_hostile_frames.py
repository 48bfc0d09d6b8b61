#!/usr/bin/python3
"""Hostile and odd HTTP/2 servers against netd, one raw-frame script for each line of the client's checklist.

usage: check_hostile_frames.py [NETD [name ...]]; prints TAP-like lines: ok / not ok / skip."""
import os
import re
import sys
import tempfile
import time

try:
    import hpack
except ImportError:
    print("skip hostile_frames python3-hpack is not installed")
    sys.exit(0)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import channel
from h2raw import (CONTINUATION, DATA, GOAWAY, HEADERS, PING, PUSH, RST, SETTINGS, WINDOW, OK_HEADERS, TRAILERS, Peer,
                   abort_frame, block, data, exec_frame, field, frame, goaway, headers, listen, message, rst, settings,
                   varint, window)

MAX_RSS_KIB = 96 * 1024
SCENARIOS = []


def scenario(cls, attached=True, **expect):
    """cls: the class netd must give in CLOSED, or several joined by |; None: the connection must still stand at the end.
    attached: Hello left before. Further: grpc, h2, http, ping_ms (of CLOSED), log (a pattern), seconds (to wait)."""
    def add(f):
        SCENARIOS.append((f.__name__, f, cls, attached, expect))
        return f
    return add


def hello(peer):
    """Our SETTINGS, and netd's Hello."""
    peer.send(settings() + settings(ack=True))
    got = peer.wait_messages(1)
    assert got, "no Hello came"
    assert got[0][0] == 0x0A, "the first message is not a Hello: %r" % got[0][:20]


# --- settings, pings, windows -------------------------------------------------------------------------------------------
@scenario(None)
def max_streams_0_then_1(peer, netd):
    peer.send(settings((3, 0)))
    assert not peer.wait_frame(HEADERS, 0.5), "a stream although none is allowed"
    peer.send(settings((3, 1)))
    assert peer.wait_messages(1)


@scenario(None)
def max_streams_0_late(peer, netd):
    hello(peer)
    peer.send(settings((3, 0)) + headers(OK_HEADERS))
    still_serves(peer, netd)


@scenario(None)
def settings_acked(peer, netd):
    hello(peer)
    peer.send(settings((1, 0)) + settings((4, 100000)) + settings((5, 65536)) + settings((6, 100)) + settings((0x99, 7)))
    assert peer.wait(lambda fs: sum(1 for f in fs if f[0] == SETTINGS and f[1] & 1) >= 6), "a SETTINGS was not acked"
    still_serves(peer, netd)


@scenario(None)
def ping_acked(peer, netd):
    hello(peer)
    peer.send(frame(PING, 0, 0, b"abcdefgh"))
    got = peer.wait_frame(PING, flags=1)
    assert got and got[0][3] == b"abcdefgh"


@scenario("flood|protocol")
def ping_flood(peer, netd):
    hello(peer)
    peer.paused.set()
    flood(peer, frame(PING, 0, 0, b"12345678") * 100, 4000)


@scenario("flood|protocol")
def settings_flood(peer, netd):
    hello(peer)
    peer.paused.set()
    flood(peer, settings((3, 100)) * 100, 4000)


@scenario("protocol|flood")
def settings_33_entries(peer, netd):
    hello(peer)
    peer.send(settings(*[(4, 65535)] * 33))


@scenario("protocol")
def window_size_too_big(peer, netd):
    hello(peer)
    peer.send(settings((4, 2 ** 31)))


@scenario("protocol")
def frame_size_too_small(peer, netd):
    hello(peer)
    peer.send(settings((5, 100)))


@scenario("protocol|reset")
def window_overflow_stream(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + window(1, 2 ** 31 - 1))


@scenario("protocol")
def window_overflow_connection(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + window(0, 2 ** 31 - 1))


@scenario("protocol|reset")
def window_update_zero(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + window(1, 0))


@scenario("protocol|not-http2", attached=False)
def ping_before_settings(peer, netd):
    peer.send(frame(PING, 0, 0, b"12345678"))
    time.sleep(0.2)


@scenario("eof|not-http2|protocol", attached=False)
def closes_at_once(peer, netd):
    peer.end()


@scenario("not-http2", attached=False, log="HTTP/2")
def http1(peer, netd):
    peer.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


@scenario("not-http2", attached=False, log="HTTP/2")
def http1_ok(peer, netd):
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


@scenario("protocol|not-http2|eof", attached=False)
def garbage(peer, netd):
    peer.send(b"\x00\x01\x02SSH-2.0-OpenSSH\r\n" * 20)


# --- responses ---------------------------------------------------------------------------------------------------------
@scenario("protocol|reset")
def data_before_headers(peer, netd):
    hello(peer)
    peer.send(data(b"xx"))


@scenario(None)
def early_hints_then_200(peer, netd):
    hello(peer)
    peer.send(headers([(":status", "103"), ("link", "x")]) + headers(OK_HEADERS))
    still_serves(peer, netd)


@scenario("flood|protocol|reset")
def flood_of_1xx(peer, netd):
    hello(peer)
    flood(peer, headers([(":status", "103"), ("link", "x" * 100)]) * 10, 4000)


@scenario("protocol|reset")
def end_stream_in_100(peer, netd):
    hello(peer)
    peer.send(headers([(":status", "100")], end_stream=True))


@scenario("protocol|reset")
def upper_case_header(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS + [("X-Bad", "1")]))


@scenario("protocol|reset")
def no_status_pseudo(peer, netd):
    hello(peer)
    peer.send(headers([("content-type", "application/grpc")]))


@scenario("protocol|reset")
def connection_header(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS + [("connection", "close")]))


@scenario("protocol|status|reset", http=200)
def wrong_content_type(peer, netd):
    hello(peer)
    peer.send(headers([(":status", "200"), ("content-type", "text/html")]) + data(b"<h1>hello</h1>", end=True))


def http_status(code, grpc):
    @scenario("status", grpc=grpc, http=code)
    def f(peer, netd):
        hello(peer)
        peer.send(headers([(":status", str(code)), ("content-type", "text/html")]) + data(b"<h1>no</h1>", end=True))
    name, fn, cls, att, exp = SCENARIOS.pop()
    SCENARIOS.append(("http_%d" % code, fn, cls, att, exp))


for code, grpc in ((400, 13), (431, 13), (401, 16), (403, 7), (404, 12), (429, 14), (502, 14), (503, 14), (504, 14),
                   (500, 2), (418, 2)):
    http_status(code, grpc)


@scenario("status", grpc=16, log="bad token")
def trailers_only(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS + [("grpc-status", "16"), ("grpc-message", "bad%20token%0a")], end_stream=True))


@scenario("status", grpc=0)
def status_ok_after_hello(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + headers(TRAILERS, end_stream=True))


@scenario("status", grpc=0)
def trailers_then_rst_0(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + headers(TRAILERS, end_stream=True) + rst(0))


@scenario("status|protocol|reset")
def trailers_without_end(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + headers(TRAILERS) + data(b"", end=True))


@scenario("status", grpc=2)
def end_without_trailers(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + data(b"", end=True))


@scenario("status|protocol|reset", grpc=13)
def end_inside_message(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + data(message(b"x" * 100)[:50], end=True))


@scenario("status|protocol|reset", grpc=13)
def compressed_flag(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + data(message(b"abc", compressed=1)))


@scenario("status|flood|protocol|reset", grpc=8)
def message_far_too_long(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + data(b"\0\x7f\xff\xff\xff" + b"x" * 1000))


@scenario("status", log=r"\\x1b|%1b|\\u001b")
def status_message_is_escaped(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS + [("grpc-status", "7"), ("grpc-message", "%1b[31mred%0anetd level=info msg=forged" + "x" * 3000)],
                      end_stream=True))


@scenario("status", grpc=2)
def status_is_not_a_number(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + headers([("grpc-status", "99x")], end_stream=True))


@scenario("protocol|reset|status")
def headers_after_end(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + headers(TRAILERS, end_stream=True) + headers(TRAILERS, end_stream=True) + data(b"x"))


# --- resets and GOAWAY ---------------------------------------------------------------------------------------------------
def reset(code, grpc):
    @scenario("reset", grpc=grpc, h2=code)
    def f(peer, netd):
        hello(peer)
        peer.send(headers(OK_HEADERS) + rst(code))
    name, fn, cls, att, exp = SCENARIOS.pop()
    SCENARIOS.append(("rst_%d" % code, fn, cls, att, exp))


for code, grpc in ((0, 13), (1, 13), (2, 13), (7, 14), (8, 1), (11, 8), (12, 7), (13, 13), (99, 13)):
    reset(code, grpc)


@scenario("reset")
def interop_rst_after_header(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + rst(2))


@scenario("reset")
def interop_rst_during_data(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + data(message(exec_frame(1, b"true"))[:7]) + rst(2))


@scenario("reset")
def interop_rst_after_data(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + data(message(exec_frame(1, b"true"))) + rst(2))


@scenario(None)
def interop_ping(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS))
    for i in range(5):
        peer.send(frame(PING, 0, 0, b"%08d" % i) + data(message(exec_frame(i + 1, b"true"))))
    assert len(peer.wait_frame(PING, flags=1)) >= 1
    for _ in range(5):
        netd.wait_record(channel.EXEC)


@scenario(None)
def interop_data_frame_padding(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS))
    whole = message(exec_frame(1, b"echo padded"))
    for i in range(len(whole)):
        peer.send(frame(DATA, 8, 1, b"\xff" + whole[i:i + 1] + b"\0" * 255))
    assert netd.wait_record(channel.EXEC)[2] == 1


@scenario(None)
def interop_goaway(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + goaway(2 ** 31 - 1, 0) + goaway(1, 0))
    netd.wait_record(channel.GOAWAY)


@scenario("goaway")
def goaway_excludes_us(peer, netd):
    hello(peer)
    peer.send(goaway(0, 0))


@scenario("goaway|protocol")
def goaway_even_id(peer, netd):
    hello(peer)
    peer.send(goaway(2, 2))


@scenario("protocol|goaway")
def goaway_increases(peer, netd):
    hello(peer)
    peer.send(goaway(1, 0) + goaway(5, 0))


# A GOAWAY is no connection preface (RFC 9113, 3.4): whatever it is that answers, it has not begun HTTP/2.
@scenario("goaway|protocol|eof|not-http2", attached=False)
def goaway_before_settings(peer, netd):
    peer.send(goaway(0, 2, b"bye"))
    time.sleep(0.2)
    peer.end()


@scenario("goaway|eof", ping_ms=300000, log="too_many_pings")
def too_many_pings(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + goaway(1, 11, b"too_many_pings"))
    time.sleep(0.2)
    peer.end()


@scenario("eof")
def tcp_end(peer, netd):
    hello(peer)
    peer.end()


@scenario("eof")
def tcp_end_mid_frame(peer, netd):
    hello(peer)
    peer.send((headers(OK_HEADERS) + data(message(b"x" * 100)))[:60])
    peer.end()


# --- messages ------------------------------------------------------------------------------------------------------------
def still_serves(peer, netd):
    peer.send(frame(PING, 0, 0, b"stillup!"))
    assert peer.wait(lambda fs: [f for f in fs if f[0] == PING and f[1] & 1 and f[3] == b"stillup!"]), "no PING ack"
    assert netd.closed is None


@scenario(None)
def a_byte_a_frame(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS))
    for b in message(exec_frame(5, b"echo split")) + message(b"") + message(abort_frame(5)):
        peer.send(data(bytes([b])) + data(b""))
    assert netd.wait_record(channel.EXEC)[2] == 5
    assert netd.wait_record(channel.ABORT)[2] == 5


@scenario(None)
def many_messages_a_frame(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + data(b"".join(message(abort_frame(i)) for i in range(1, 1001))))
    for i in range(1, 1001):
        assert netd.wait_record(channel.ABORT)[2] == i


@scenario(None)
def unknown_fields_are_skipped(peer, netd):
    hello(peer)
    extra = field(6, b"workspace") + field(1000, 5) + varint(99 << 3 | 1) + b"8 bytes!" + varint(98 << 3 | 5) + b"four"
    peer.send(headers(OK_HEADERS) + data(message(field(7, b"from the future")) + message(exec_frame(9, b"true", extra=extra))))
    assert netd.wait_record(channel.EXEC)[2] == 9


@scenario(None)
def nul_in_command(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + data(message(exec_frame(3, b"touch a\0; touch b"))))
    body = netd.wait_record(channel.EXEC)[3]
    assert body[12] == 4, "bad is %d" % body[12]


@scenario(None)
def bad_utf8_in_command(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + data(message(exec_frame(3, b"echo \xff\xfe"))))
    body = netd.wait_record(channel.EXEC)[3]
    assert body[12] == 0 and body.endswith(b"echo \xff\xfe")


@scenario(None)
def undecodable_exec_with_an_id(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + data(message(field(1, field(1, 44) + b"\x12\xff\xff\xff\x7f"))))
    r = netd.wait_record(channel.EXEC, 3)
    assert r[2] == 44 and r[3][12] == 8


@scenario(None)
def message_too_long_is_read_through(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS))
    body = exec_frame(21, b"true", b"z" * (20 << 20))
    send_flow(peer, message(body) + message(abort_frame(22)))
    r = netd.wait_record(channel.EXEC, 20)
    assert r[2] == 21 and r[3][12] == 7, r[:3]
    assert netd.wait_record(channel.ABORT)[2] == 22


@scenario(None)
def message_of_full_size(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS))
    send_flow(peer, message(exec_frame(23, b"true", b"z" * (16 << 20))))
    r = netd.wait_record(channel.EXEC, 20)
    assert r[2] == 23 and r[3][12] == 0


@scenario("flood|protocol|status|reset|internal", h2=None)
def tiny_unknown_fields(peer, netd):
    """16 MiB of two-byte unknown fields: no allocation for each. Skipping them all is right too."""
    hello(peer)
    peer.send(headers(OK_HEADERS))
    send_flow(peer, message(field(3, 1) * (4 << 20)) + message(abort_frame(9)))
    r = netd.receive(20)
    while r and r[0] not in (channel.ABORT, channel.CLOSED):
        r = netd.receive(20)
    assert r is not None
    if r[0] == channel.ABORT:
        peer.end()
        netd.tolerated = True


@scenario(None)
def many_small_execs_unanswered(peer, netd):
    """20,000 messages that execd does not answer: netd stops reading the relay and does not grow."""
    hello(peer)
    peer.send(headers(OK_HEADERS))
    peer.conn.settimeout(2)
    try:
        send_flow(peer, b"".join(message(exec_frame(i + 1, b"x" * 5000)) for i in range(20000)), seconds=2)
    except OSError:
        pass


def send_flow(peer, payload, seconds=20):
    """DATA within the windows that netd gives."""
    sent, end = 0, time.monotonic() + seconds
    used = {0: 0, 1: 0}
    while sent < len(payload):
        with peer.lock:
            initial = 65535
            give = {0: 65535, 1: 0}
            for f in peer.frames:
                if f[0] == SETTINGS and not f[1] & 1:
                    for i in range(0, len(f[3]), 6):
                        if f[3][i:i + 2] == b"\0\4":
                            initial = int.from_bytes(f[3][i + 2:i + 6], "big")
                elif f[0] == WINDOW and f[2] in give:
                    give[f[2]] += int.from_bytes(f[3], "big")
            give[1] += initial
            room = min(give[0] - used[0], give[1] - used[1], len(payload) - sent)
            if room <= 0:
                left = end - time.monotonic()
                if left <= 0 or peer.ended:
                    return False
                peer.lock.wait(min(left, 0.2))
                continue
        piece = payload[sent:sent + room]
        for i in range(0, len(piece), 16384):
            peer.send(data(piece[i:i + 16384]))
        sent += room
        used[0] += room
        used[1] += room
    return True


# --- bombs and floods ------------------------------------------------------------------------------------------------------
def flood(peer, piece, times):
    peer.conn.settimeout(5)
    try:
        for _ in range(times):
            peer.send(piece)
    except OSError:
        pass


@scenario("flood|protocol")
def empty_data_flood(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS))
    flood(peer, data(b"") * 1000, 500)


@scenario("flood|protocol|reset")
def padding_only_flood(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS))
    flood(peer, frame(DATA, 8, 1, b"\xff" + b"\0" * 255) * 50, 2000)


@scenario("flood|protocol|reset")
def empty_message_flood_is_bounded(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS))
    flood(peer, data(message(b"") * 3000), 3000)
    peer.end()
    netd.tolerated = True


@scenario("flood|protocol|reset")
def hpack_bomb(peer, netd):
    hello(peer)
    b = block(OK_HEADERS) + b"\x40\x01a" + b"\x7f" + bytes([(3900 - 127) & 0x7F | 0x80, (3900 - 127) >> 7]) + b"v" * 3900
    peer.send(frame(HEADERS, 4, 1, b + b"\xbe" * 12000))


@scenario("protocol|reset|flood")
def hpack_garbage(peer, netd):
    hello(peer)
    peer.send(frame(HEADERS, 4, 1, b"\xff\xff\xff\xff\xff\xff"))


@scenario("protocol|flood")
def continuation_flood(peer, netd):
    hello(peer)
    peer.send(frame(HEADERS, 0, 1, block(OK_HEADERS)))
    flood(peer, frame(CONTINUATION, 0, 1, block([("a", "b" * 200)])) * 10, 2000)


@scenario(None)
def continuation_split(peer, netd):
    hello(peer)
    b = block(OK_HEADERS)
    peer.send(frame(HEADERS, 0, 1, b[:2]) + frame(CONTINUATION, 0, 1, b[2:5]) + frame(CONTINUATION, 4, 1, b[5:]))
    peer.send(data(message(abort_frame(8))))
    assert netd.wait_record(channel.ABORT)[2] == 8


@scenario(None)
def unknown_frames(peer, netd):
    hello(peer)
    peer.send(frame(0x77, 0xFF, 1, b"hello") + frame(0xBB, 0, 0, b"x" * 100) + headers(OK_HEADERS))
    peer.send(frame(0xA, 0, 0, b"\0\1a" + b'h2=":1"') + frame(0xC, 0, 0, b"\0\1a"))
    still_serves(peer, netd)


@scenario("protocol")
def frame_too_long(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + frame(DATA, 0, 1, b"x" * 16385) * 3)


@scenario("protocol")
def headers_on_an_idle_stream(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS, stream=3))


@scenario("protocol|reset")
def push_promise(peer, netd):
    hello(peer)
    push = block([(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")])
    peer.send(settings(ack=True) + frame(PUSH, 4, 1, b"\0\0\0\2" + push))


@scenario("protocol|reset|flood", h2=None)
def window_violation(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS) + settings(ack=True))
    netd.stop_reading = True
    flood(peer, data(message(b"z" * 16000)[:16384]) * 64, 200)
    peer.end()
    netd.tolerated = True


# --- what netd sends ---------------------------------------------------------------------------------------------------------
@scenario(None)
def request_headers(peer, netd):
    peer.send(settings())
    f = peer.wait_frame(HEADERS)[0]
    got = hpack.Decoder().decode(f[3])
    names = [k for k, _ in got]
    assert names[:4] == [":method", ":scheme", ":path", ":authority"], names
    d = dict(got)
    assert d[":method"] == "POST" and d[":path"] == "/sandbox.v1.SandboxWorker/Attach", d
    assert d["te"] == "trailers" and d["content-type"] == "application/grpc"
    assert names[-1] == "authorization" and d["authorization"] == "Bearer secret-token"
    assert not set(names) & {"grpc-timeout", "grpc-encoding", "content-length"}
    assert not f[1] & 1, "END_STREAM on the request"


@scenario(None)
def heartbeats(peer, netd):
    peer.send(settings())
    assert peer.wait_messages(3, 5)[1:3] == [b"\x12\x00", b"\x12\x00"]


@scenario(None)
def silence_after_hello_is_fine(peer, netd):
    """No response headers, no bytes: what the real relay does for hours."""
    hello(peer)
    time.sleep(1.5)
    assert netd.closed is None and not peer.ended


@scenario(None)
def window_shrinks_below_zero_and_back(peer, netd):
    hello(peer)
    peer.send(settings((4, 1)) + headers(OK_HEADERS))
    time.sleep(0.3)
    before = len(peer.messages())
    peer.send(window(1, 70000) + window(0, 70000))
    got = peer.wait_messages(before + 1, 5)
    assert len(got) > before, "no Heartbeat after the window opened"


@scenario("drained")
def drain_is_clean(peer, netd):
    hello(peer)
    netd.answer(channel.DRAIN, 0)
    netd.wait_record(channel.CLOSED)
    peer.wait_end()
    kinds = [f[0] for f in peer.frames]
    assert GOAWAY in kinds, "no GOAWAY"
    assert RST in kinds or any(f[0] == DATA and f[1] & 1 for f in peer.frames), "the stream was not ended"


def run(name, f, cls, attached, expect, program):
    log = tempfile.TemporaryFile()
    server = listen()
    extra = {"heartbeat_ms": 1000} if name in ("heartbeats", "window_shrinks_below_zero_and_back") else {}
    netd = channel.Netd(program, log, relay_port=server.getsockname()[1], **extra)
    netd.tolerated = netd.stop_reading = False
    problem = None
    try:
        conn, _ = server.accept()
        peer = Peer(conn)
        f(peer, netd)
        if cls is None:
            while True:
                r = netd.receive(0.05)
                if r is None:
                    break
            if netd.closed is not None:
                problem = "closed although it should stand: %r" % netd.closed
        else:
            netd.wait_closed(expect.get("seconds", 12))
    except (AssertionError, OSError) as e:
        problem = "%s: %s" % (type(e).__name__, e)
    if netd.usage is None:
        netd.finish(0)
    server.close()
    log.seek(0)
    text = log.read().decode(errors="replace")
    problem = problem or judge(netd, cls, attached, expect, text)
    return problem, text, netd


def judge(netd, cls, attached, expect, text):
    if netd.peak_kib > MAX_RSS_KIB:
        return "memory: %d KiB" % netd.peak_kib
    if os.WIFSIGNALED(netd.status) and not netd.killed:
        return "netd died of signal %d" % os.WTERMSIG(netd.status)
    if cls is None:
        return None
    c = netd.closed
    if c is None:
        return "no CLOSED record"
    if netd.tolerated:
        return None
    if c.cls not in cls.split("|"):
        return "class %s, expected %s (%r)" % (c.cls, cls, c)
    if attached and not netd.seen(channel.ATTACHED):
        return "never attached"
    for key in ("grpc", "h2", "http", "ping_ms"):
        if expect.get(key) is not None and getattr(c, key) != expect[key]:
            return "%s is %d, expected %d (%r)" % (key, getattr(c, key), expect[key], c)
    warned = [l for l in text.splitlines() if "level=warn" in l or "level=error" in l]
    if not warned and c.cls != "drained":
        return "no log line"
    if len(warned) > 3:
        return "%d log lines" % len(warned)
    if "log" in expect and not re.search(expect["log"], text):
        return "the log does not say %r" % expect["log"]
    if "\x1b" in text or "\nnetd level=info msg=forged" in text:
        return "the log can be forged"
    if "secret-token" in text:
        return "the token is in the log"
    return None


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.environ.get("BUILD", "build"), "netd")
    only = sys.argv[2:]
    bad = 0
    for name, f, cls, attached, expect in SCENARIOS:
        if only and name not in only:
            continue
        problem, text, netd = run(name, f, cls, attached, expect, program)
        if problem:
            bad += 1
            print("not ok hostile_frames.%s %s" % (name, problem))
            for line in text.splitlines()[-5:]:
                print("# " + line)
        else:
            print("ok hostile_frames.%s%s" % (name, " # %r" % netd.closed if netd.closed else ""))
        sys.stdout.flush()
    sys.exit(1 if bad else 0)


main()
