#!/usr/bin/python3
"""Hostile and odd HTTP/2 servers against netd: frames, header blocks and floods, one script for each line of the client's checklist.

usage: check_hostile_frames.py [NETD [name ...]]; prints TAP-like lines: ok / not ok / skip."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hostile

if not hostile.hpack:
    hostile.main("hostile_frames")
    sys.exit(0)

import channel
import hpack
from h2raw import (CONTINUATION, DATA, HEADERS, OK_HEADERS, PING, PUSH, SETTINGS, abort_frame, block, data, field, frame, headers,
                   message, settings, window)
from hostile import begin, flood, given_windows, hello, scenario, send_flow, still_serves

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


@scenario(None)
def header_table_of_nothing(peer, netd):
    """What the peer's table may hold is kept to from the first block on, and frames longer than 16 KiB are not sent."""
    peer.send(settings((1, 0), (5, 1 << 20), (6, 4096)))
    block_of_request = peer.wait_frame(HEADERS)[0][3]
    decoder = hpack.Decoder()
    decoder.max_allowed_table_size = decoder.header_table_size = 0
    assert (":method", "POST") in decoder.decode(block_of_request)
    assert decoder.header_table_size == 0
    assert all(len(f[3]) <= 16384 for f in peer.frames)


@scenario(None)
def windows_of_a_mebibyte(peer, netd):
    """From the start, or 16 MiB at 50 ms a round trip would take 13 s."""
    hello(peer)
    give = given_windows(peer.frames)
    assert min(give.values()) >= 1 << 20, give


@scenario("flood", leaves=False)
def ping_flood(peer, netd):
    hello(peer)
    peer.paused.set()
    flood(peer, frame(PING, 0, 0, b"12345678") * 100, 4000)


@scenario("flood", leaves=False)
def settings_flood(peer, netd):
    hello(peer)
    peer.paused.set()
    flood(peer, settings((3, 100)) * 100, 4000)


@scenario("protocol")
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


@scenario("protocol")
def window_overflow_stream(peer, netd):
    begin(peer)
    peer.send(window(1, 2 ** 31 - 1))


@scenario("protocol")
def window_overflow_connection(peer, netd):
    begin(peer)
    peer.send(window(0, 2 ** 31 - 1))


@scenario("protocol")
def window_update_zero(peer, netd):
    begin(peer)
    peer.send(window(1, 0))


@scenario("not-http2", attached=False)
def ping_before_settings(peer, netd):
    peer.send(frame(PING, 0, 0, b"12345678"))
    time.sleep(0.2)


@scenario("eof", attached=False)
def closes_at_once(peer, netd):
    peer.end()


@scenario("not-http2", attached=False, log="HTTP/2")
def http1(peer, netd):
    peer.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


@scenario("not-http2", attached=False, log="HTTP/2")
def http1_ok(peer, netd):
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


@scenario("not-http2", attached=False)
def garbage(peer, netd):
    peer.send(b"\x00\x01\x02SSH-2.0-OpenSSH\r\n" * 20)


# --- bombs and floods ------------------------------------------------------------------------------------------------------
@scenario("flood")
def empty_data_flood(peer, netd):
    begin(peer)
    flood(peer, data(b"") * 1000, 500)


@scenario("flood")
def padding_only_flood(peer, netd):
    begin(peer)
    flood(peer, frame(DATA, 8, 1, b"\xff" + b"\0" * 255) * 50, 2000)


@scenario(None)
def empty_messages_are_passed_over(peer, netd):
    """Two million of them: each is an empty ServerFrame, which says nothing, and none is kept."""
    begin(peer)
    assert send_flow(peer, message(b"") * (2 << 20))
    still_serves(peer, netd)


@scenario("flood")
def hpack_bomb(peer, netd):
    hello(peer)
    b = block(OK_HEADERS) + b"\x40\x01a" + b"\x7f" + bytes([(3900 - 127) & 0x7F | 0x80, (3900 - 127) >> 7]) + b"v" * 3900
    peer.send(frame(HEADERS, 4, 1, b + b"\xbe" * 12000))


@scenario("protocol")
def hpack_garbage(peer, netd):
    hello(peer)
    peer.send(frame(HEADERS, 4, 1, b"\xff\xff\xff\xff\xff\xff"))


@scenario("protocol")
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
    begin(peer)
    peer.send(frame(DATA, 0, 1, b"x" * 16385) * 3)


@scenario("protocol")
def headers_on_an_idle_stream(peer, netd):
    hello(peer)
    peer.send(headers(OK_HEADERS, stream=3))


@scenario("protocol")
def push_promise(peer, netd):
    hello(peer)
    push = block([(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")])
    peer.send(settings(ack=True) + frame(PUSH, 4, 1, b"\0\0\0\2" + push))


@scenario(None)
def windows_are_ignored(peer, netd):
    """What is read is consumed at once, so more than a window in flight does no harm, and takes no memory."""
    begin(peer)
    peer.paused.set()
    flood(peer, data(message(field(99, b"z" * 16000))), 1500)
    peer.paused.clear()
    still_serves(peer, netd)


if __name__ == "__main__":
    hostile.main("hostile_frames")
