#!/usr/bin/python3
"""gRPC's own eight negative HTTP/2 tests of clients, under their names, against netd (the grpc repository's
doc/http2-interop-test-descriptions.md).

usage: check_http2_negative.py [NETD [name ...]]; prints TAP-like lines: ok / not ok / skip."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hostile

if not hostile.hpack:
    hostile.main("http2_negative")
    sys.exit(0)

import channel
import h2raw as h2
from hostile import begin, hello, scenario, still_serves


def call(peer, netd, req_id):
    """One Exec that reaches execd."""
    peer.send(h2.data(h2.message(h2.exec_frame(req_id, b"true"))))
    assert netd.wait_record(channel.EXEC)[2] == req_id


@scenario("goaway", serves=1, lines=2)
def goaway(peer, netd):
    """After a call: running work may finish, the old stream ends, and the next call is a new connection's."""
    begin(peer)
    call(peer, netd, 1)
    peer.send(h2.goaway(2 ** 31 - 1, 0) + h2.goaway(1, 0))
    netd.wait_record(channel.GOAWAY)
    still_serves(peer, netd)
    netd.answer(channel.DRAIN, 0)
    assert peer.wait_stream_end(), "the old stream was not ended"
    netd.wait_closed(12)
    again = netd.again()
    peer = netd.accept()
    begin(peer)
    call(peer, again, 2)


@scenario("reset", grpc=13, h2=0)
def rst_after_header(peer, netd):
    begin(peer)
    peer.send(h2.rst(0))


@scenario("reset", grpc=13, h2=0)
def rst_during_data(peer, netd):
    """Nothing of the broken message is run."""
    begin(peer)
    peer.send(h2.data(h2.message(h2.exec_frame(1, b"true"))[:-1]) + h2.rst(0))


@scenario("reset", grpc=13, h2=0, serves=1)
def rst_after_data(peer, netd):
    """A complete message counts, and the reset ends the call all the same."""
    begin(peer)
    peer.send(h2.data(h2.message(h2.exec_frame(1, b"true"))) + h2.rst(0))


@scenario(None)
def ping(peer, netd):
    """Before, between and after DATA: each is acknowledged, in order, with its own bytes."""
    def say(i):
        sent.append(b"ping %03d" % i)
        peer.send(h2.frame(h2.PING, 0, 0, sent[-1]))

    sent = []
    hello(peer)
    say(0)
    peer.send(h2.headers(h2.OK_HEADERS))
    for i in range(1, 6):
        say(i)
        call(peer, netd, i)
    say(6)
    peer.wait(lambda fs: len(acks(fs)) == len(sent))
    assert acks(peer.frames) == sent, acks(peer.frames)


def acks(frames):
    return [f[3] for f in frames if f[0] == h2.PING and f[1] & 1]


@scenario(None)
def max_streams(peer, netd):
    """One stream is allowed and one is opened, for all calls; a lower limit later does not touch it."""
    peer.send(h2.settings((3, 1)) + h2.settings(ack=True))
    assert peer.wait_messages(1), "no Hello came"
    peer.send(h2.headers(h2.OK_HEADERS))
    for i in range(1, 11):
        call(peer, netd, i)
    peer.send(h2.settings((3, 0)))
    call(peer, netd, 11)
    assert len([f for f in peer.frames if f[0] == h2.HEADERS]) == 1, "a second stream"


@scenario(None)
def data_frame_padding(peer, netd):
    """Each byte in a frame of its own with 255 of padding, for more than a window of 64 KiB: padding counts for the windows."""
    begin(peer)
    exec_message = h2.message(h2.exec_frame(1, b"echo padded", b"x" * 1000))
    for i in range(len(exec_message)):
        peer.send(h2.frame(h2.DATA, 8, 1, b"\xff" + exec_message[i:i + 1] + b"\0" * 255))
    r = netd.wait_record(channel.EXEC)
    assert r[2] == 1 and r[3].endswith(b"echo padded")
    gave = peer.wait(lambda fs: sum(int.from_bytes(f[3], "big") for f in fs if f[0] == h2.WINDOW and f[2] == 0))
    assert gave, "the connection's window was not opened again"


@scenario(None)
def no_df_padding_sanity(peer, netd):
    """The same without padding."""
    begin(peer)
    exec_message = h2.message(h2.exec_frame(1, b"echo plain", b"x" * 1000))
    for i in range(len(exec_message)):
        peer.send(h2.data(exec_message[i:i + 1]))
    r = netd.wait_record(channel.EXEC)
    assert r[2] == 1 and r[3].endswith(b"echo plain")


if __name__ == "__main__":
    hostile.main("http2_negative")
