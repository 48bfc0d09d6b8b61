"""The contract with a relay on @grpc/grpc-js, the real relay's own stack."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import battery  # noqa: E402
from grpc_js_relay import GrpcJsRelay  # noqa: E402


class GrpcJs(battery.Battery):
    stack = GrpcJsRelay


class GrpcJsTls(battery.Battery):
    stack, way = GrpcJsRelay, battery.OverTls


class GrpcJsMtls(battery.WantsCertificate, battery.Battery):
    stack, way = GrpcJsRelay, battery.OverMtls


class GrpcJsOriginalWire(battery.Original, battery.Battery):
    stack = GrpcJsRelay


if __name__ == "__main__":
    unittest.main(verbosity=2)
