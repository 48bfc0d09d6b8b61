"""TLS for the peers of hostile.py: a socket's few methods, to be used by one thread that reads and others that write."""
import ssl
import threading

import pki

MISSING = pki.MISSING


class Security:
    """A root, a certificate for localhost, and the settings with which netd trusts it."""

    def __init__(self):
        self.keys = pki.Pki()
        self.settings = {"relay_host": "localhost", "relay_tls": 1, "ca_file": self.keys["root.pem"]}
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.keys["relay.pem"], self.keys["relay.key"])
        self.context.set_alpn_protocols(["h2"])

    def secure(self, conn):
        return TlsConn(conn, self.context)

    def stop(self):
        self.keys.stop()


class TlsConn:
    def __init__(self, conn, context):
        self.conn, self.lock, self.notified = conn, threading.Lock(), None
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self._until_done(self.tls.do_handshake)
        self._flush()

    def _until_done(self, step):
        """Its result, once enough has come for it."""
        while True:
            with self.lock:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    pass
            self._flush()
            piece = self.conn.recv(65536)
            with self.lock:
                if piece:
                    self.incoming.write(piece)
                else:
                    self.incoming.write_eof()

    def _flush(self):
        with self.lock:
            piece = self.outgoing.read()
            if piece:
                self.conn.sendall(piece)

    def recv(self, size):
        """b"" at the end; notified tells then whether close_notify came before it."""
        try:
            piece = self._until_done(lambda: self.tls.read(size))
        except ssl.SSLZeroReturnError:
            piece = b""
        except ssl.SSLError as e:
            if not isinstance(e, ssl.SSLEOFError) and "EOF" not in str(e):
                raise
            self.notified = False
            return b""
        if not piece:
            self.notified = True
        self._flush()
        return piece

    def sendall(self, piece):
        with self.lock:
            self.tls.write(piece)
            self.conn.sendall(self.outgoing.read())

    def close_notify(self):
        """Says that no more comes, and nothing else."""
        with self.lock:
            try:
                self.tls.unwrap()
            except ssl.SSLError:
                pass
            self.conn.sendall(self.outgoing.read())

    def __getattr__(self, name):
        return getattr(self.conn, name)
