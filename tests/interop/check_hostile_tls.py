#!/usr/bin/python3
"""What is special to TLS about a peer of netd: how the stream ends, and what is not TLS at all.

usage: check_hostile_tls.py [NETD [name ...]]; prints TAP-like lines: ok / not ok / skip."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hostile
import tls_conn

if not hostile.hpack or tls_conn.MISSING:
    print("skip hostile_tls: %s" % (tls_conn.MISSING or "python3-hpack is not installed"))
    sys.exit(0)

import channel
import h2raw as h2
from hostile import begin, scenario


@scenario("eof", log="the peer closed the connection")
def end_without_close_notify(peer, netd):
    """A stream that is cut has no trailers: it is lost, whatever was cut."""
    begin(peer)
    peer.end()


@scenario("eof", log="the peer closed the connection")
def end_with_close_notify(peer, netd):
    begin(peer)
    peer.conn.close_notify()


@scenario("status", grpc=7, leaves=False)
def trailers_then_cut(peer, netd):
    """What was said before the cut counts."""
    begin(peer)
    peer.send(h2.headers([("grpc-status", "7")], end_stream=True))
    peer.end()


@scenario("tls", log="wrong version number|bad record|decryption failed", leaves=False)
def no_tls_any_more(peer, netd):
    begin(peer)
    peer.conn.conn.sendall(h2.settings() * 10)


@scenario("tls", log="bad record|decryption failed", leaves=False)
def a_record_that_was_changed(peer, netd):
    begin(peer)
    with peer.conn.lock:
        peer.conn.tls.write(h2.frame(h2.PING, 0, 0, b"12345678"))
        piece = bytearray(peer.conn.outgoing.read())
        piece[-1] ^= 1
        peer.conn.conn.sendall(piece)


@scenario("drained")
def leaving_says_close_notify(peer, netd):
    begin(peer)
    netd.answer(channel.DRAIN, 0)
    assert peer.wait_stream_end(), "our side was not ended"
    netd.wait_closed(12)
    assert peer.wait_end(), "no FIN"
    assert peer.conn.notified, "FIN without close_notify"


if __name__ == "__main__":
    security = tls_conn.Security()
    try:
        hostile.main("hostile_tls", security)
    finally:
        security.stop()
