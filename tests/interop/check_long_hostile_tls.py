#!/usr/bin/python3
"""All scenarios of the other scripts again, over TLS. suite-timeout: 120

usage: check_long_hostile_tls.py [NETD [name ...]]; prints TAP-like lines: ok / not ok / skip."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hostile
import tls_conn

if not hostile.hpack or tls_conn.MISSING:
    print("skip hostile_over_tls: %s" % (tls_conn.MISSING or "python3-hpack is not installed"))
    sys.exit(0)

# They register their scenarios.
import check_hostile_calls  # noqa: F401
import check_hostile_frames  # noqa: F401
import check_http2_negative  # noqa: F401

security = tls_conn.Security()
try:
    hostile.main("hostile_over_tls", security)
finally:
    security.stop()
