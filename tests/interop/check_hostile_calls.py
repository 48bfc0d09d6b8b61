#!/usr/bin/python3
"""Hostile and odd gRPC servers against netd: responses, ends of the call, messages, and what netd itself sends.

usage: check_hostile_calls.py [NETD [name ...]]; prints TAP-like lines: ok / not ok / skip."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hostile

if not hostile.hpack:
    hostile.main("hostile_calls")
    sys.exit(0)

import channel
import hpack
from h2raw import (DATA, HEADERS, OK_HEADERS, TRAILERS, abort_frame, data, exec_frame, field, goaway, headers,
                   message, rst, settings, varint, window)
from hostile import MESSAGE_KIB, begin, flood, hello, scenario, send_flow, still_serves, variant

# --- responses ---------------------------------------------------------------------------------------------------------
@scenario("protocol")
def data_before_headers(peer, netd):
    hello(peer)
    peer.send(data(b"xx"))


@scenario(None)
def early_hints_then_200(peer, netd):
    hello(peer)
    peer.send(headers([(":status", "103"), ("link", "x")]) + headers(OK_HEADERS))
    still_serves(peer, netd)


@scenario("flood")
def flood_of_1xx(peer, netd):
    hello(peer)
    flood(peer, headers([(":status", "103"), ("link", "x" * 100)]) * 10, 4000)


@scenario("protocol")
def end_stream_in_100(peer, netd):
    hello(peer)
    peer.send(headers([(":status", "100")], end_stream=True))


@scenario("protocol")
def upper_case_header(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS + [("X-Bad", "1")]))


@scenario("protocol")
def no_status_pseudo(peer, netd):
    hello(peer)
    peer.send(headers([("content-type", "application/grpc")]))


@scenario("protocol")
def connection_header(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS + [("connection", "close")]))


@scenario("status", http=200)
def wrong_content_type(peer, netd):
    hello(peer)
    peer.send(headers([(":status", "200"), ("content-type", "text/html")]) + data(b"<h1>hello</h1>", end=True))


def http_error(code):
    def f(peer, netd):
        hello(peer)
        peer.send(headers([(":status", str(code)), ("content-type", "text/html")]) + data(b"<h1>no</h1>", end=True))
    return f


for code, grpc in ((400, 13), (431, 13), (401, 16), (403, 7), (404, 12), (429, 14), (502, 14), (503, 14), (504, 14),
                   (500, 2), (418, 2)):
    variant("http_%d" % code, http_error(code), "status", grpc=grpc, http=code)


@scenario("status", grpc=16, log="bad token")
def trailers_only(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS + [("grpc-status", "16"), ("grpc-message", "bad%20token%0a")], end_stream=True))


@scenario("status", grpc=0)
def status_ok_after_hello(peer, netd):
    begin(peer)
    peer.send(headers(TRAILERS, end_stream=True))


@scenario("status", grpc=0, leaves=False)
def trailers_then_rst_0(peer, netd):
    begin(peer)
    peer.send(headers(TRAILERS, end_stream=True) + rst(0))


@scenario("protocol")
def trailers_without_end(peer, netd):
    begin(peer)
    peer.send(headers(TRAILERS) + data(b"", end=True))


@scenario("status", grpc=2)
def end_without_trailers(peer, netd):
    begin(peer)
    peer.send(data(b"", end=True))


@scenario("protocol", grpc=13)
def end_inside_message(peer, netd):
    begin(peer)
    peer.send(data(message(b"x" * 100)[:50], end=True))


@scenario("protocol", grpc=13)
def compressed_flag(peer, netd):
    begin(peer)
    peer.send(data(message(b"abc", compressed=1)))


@scenario("flood", grpc=8)
def message_far_too_long(peer, netd):
    begin(peer)
    peer.send(data(b"\0\x7f\xff\xff\xff" + b"x" * 1000))


@scenario("status", log=r"\\x1b|%1b|\\u001b")
def status_message_is_escaped(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS + [("grpc-status", "7"), ("grpc-message", "%1b[31mred%0anetd level=info msg=forged" + "x" * 3000)],
                      end_stream=True))


@scenario("status", grpc=2)
def status_is_not_a_number(peer, netd):
    begin(peer)
    peer.send(headers([("grpc-status", "99x")], end_stream=True))


@scenario("status")
def headers_after_end(peer, netd):
    begin(peer)
    peer.send(headers(TRAILERS, end_stream=True) + headers(TRAILERS, end_stream=True) + data(b"x"))


# --- resets and GOAWAY ---------------------------------------------------------------------------------------------------
def reset(code):
    def f(peer, netd):
        begin(peer)
        peer.send(rst(code))
    return f


for code, grpc in ((0, 13), (1, 13), (2, 13), (7, 14), (8, 1), (11, 8), (12, 7), (13, 13), (99, 13)):
    variant("rst_%d" % code, reset(code), "reset", grpc=grpc, h2=code)


@scenario("goaway")
def goaway_excludes_us(peer, netd):
    hello(peer)
    peer.send(goaway(0, 0))


@scenario("protocol")
def goaway_even_id(peer, netd):
    hello(peer)
    peer.send(goaway(2, 2))


@scenario("protocol", lines=2)
def goaway_increases(peer, netd):
    hello(peer)
    peer.send(goaway(1, 0) + goaway(5, 0))


# RFC 9113 3.4: a server begins with SETTINGS, and "an invalid preface indicates that the peer is not using HTTP/2".
@scenario("not-http2", attached=False)
def goaway_before_settings(peer, netd):
    peer.send(goaway(0, 2, b"bye"))
    time.sleep(0.2)
    peer.end()


@scenario("eof", ping_ms=300000, lines=2, log="too_many_pings")
def too_many_pings(peer, netd):
    begin(peer)
    peer.send(goaway(1, 11, b"too_many_pings"))
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
@scenario(None)
def a_byte_a_frame(peer, netd):
    begin(peer)
    for b in message(exec_frame(5, b"echo split")) + message(b"") + message(abort_frame(5)):
        peer.send(data(bytes([b])) + data(b""))
    assert netd.wait_record(channel.EXEC)[2] == 5
    assert netd.wait_record(channel.ABORT)[2] == 5


@scenario(None)
def many_messages_a_frame(peer, netd):
    begin(peer)
    peer.send(data(b"".join(message(abort_frame(i)) for i in range(1, 1001))))
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
    begin(peer)
    peer.send(data(message(exec_frame(3, b"touch a\0; touch b"))))
    body = netd.wait_record(channel.EXEC)[3]
    assert body[12] == 4, "bad is %d" % body[12]


@scenario(None)
def bad_utf8_in_command(peer, netd):
    begin(peer)
    peer.send(data(message(exec_frame(3, b"echo \xff\xfe"))))
    body = netd.wait_record(channel.EXEC)[3]
    assert body[12] == 0 and body.endswith(b"echo \xff\xfe")


@scenario(None)
def undecodable_exec_with_an_id(peer, netd):
    begin(peer)
    peer.send(data(message(field(1, field(1, 44) + b"\x12\xff\xff\xff\x7f"))))
    r = netd.wait_record(channel.EXEC, 3)
    assert r[2] == 44 and r[3][12] == 8


@scenario(None)
def message_too_long_is_read_through(peer, netd):
    begin(peer)
    body = exec_frame(21, b"true", b"z" * (20 << 20))
    send_flow(peer, message(body) + message(abort_frame(22)))
    r = netd.wait_record(channel.EXEC, 20)
    assert r[2] == 21 and r[3][12] == 7, r[:3]
    assert netd.wait_record(channel.ABORT)[2] == 22


@scenario(None, memory_kib=MESSAGE_KIB)
def message_of_full_size(peer, netd):
    begin(peer)
    send_flow(peer, message(exec_frame(23, b"true", b"z" * (16 << 20))))
    r = netd.wait_record(channel.EXEC, 20)
    assert r[2] == 23 and r[3][12] == 0


@scenario(None, memory_kib=MESSAGE_KIB)
def tiny_unknown_fields(peer, netd):
    """16 MiB of two-byte unknown fields: no allocation for each."""
    begin(peer)
    assert send_flow(peer, message(field(3, 1) * (8 << 20)) + message(abort_frame(9)))
    assert netd.wait_record(channel.ABORT, 20)[2] == 9


@scenario(None, memory_kib=MESSAGE_KIB)
def many_small_execs_unanswered(peer, netd):
    """20,000 messages that execd does not answer: netd stops reading the relay and does not grow."""
    begin(peer)
    peer.conn.settimeout(2)
    try:
        send_flow(peer, b"".join(message(exec_frame(i + 1, b"x" * 5000)) for i in range(20000)), seconds=2)
    except OSError:
        pass


# --- what netd sends ---------------------------------------------------------------------------------------------------------
@scenario(None)
def request_headers(peer, netd):
    peer.send(settings())
    f = peer.wait_frame(HEADERS)[0]
    got = hpack.Decoder().decode(f[3])
    names = [k for k, _ in got]
    assert names == [":method", ":scheme", ":path", ":authority", "te", "content-type", "user-agent", "authorization"], names
    d = dict(got)
    assert d[":method"] == "POST" and d[":path"] == "/sandbox.v1.SandboxWorker/Attach", d
    assert d["te"] == "trailers" and d["content-type"] == "application/grpc"
    assert d[":scheme"] == peer.scheme and d["user-agent"].startswith("sandbox-worker/"), d
    assert d["authorization"] == "Bearer secret-token"
    assert not f[1] & 1, "END_STREAM on the request"


@scenario(None, settings={"heartbeat_ms": 1000})
def heartbeats(peer, netd):
    peer.send(settings())
    assert peer.wait_messages(3, 5)[1:3] == [b"\x12\x00", b"\x12\x00"]


@scenario(None)
def silence_after_hello_is_fine(peer, netd):
    """No response headers, no bytes: what the real relay does for hours."""
    hello(peer)
    time.sleep(1.5)
    assert netd.closed is None and not peer.ended


@scenario(None, settings={"heartbeat_ms": 1000})
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
    netd.wait_closed(12)
    assert any(f[0] == DATA and f[1] & 1 for f in peer.frames), "our side was not ended"


if __name__ == "__main__":
    hostile.main("hostile_calls")
