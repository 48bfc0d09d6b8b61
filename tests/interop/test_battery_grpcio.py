"""The contract with a relay on gRPC's C core."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import battery  # noqa: E402
from grpcio_relay import GrpcioRelay  # noqa: E402


class Grpcio(battery.Battery):
    stack = GrpcioRelay


class GrpcioTls(battery.Battery):
    stack, way = GrpcioRelay, battery.OverTls


class GrpcioMtls(battery.WantsCertificate, battery.Battery):
    stack, way = GrpcioRelay, battery.OverMtls


class GrpcioOriginalWire(battery.Original, battery.Battery):
    stack = GrpcioRelay

    def check_truncated(self, seen, cut):
        """This stack keeps what it does not know, so one sees that it came: field 3 with the value 1."""
        super().check_truncated(seen, cut)
        self.assertEqual(seen.terminals[0][1].SerializeToString().endswith(b"\x18\x01"), cut)


if __name__ == "__main__":
    unittest.main(verbosity=2)
