"""Certificates for the tests, by the openssl program."""
import os
import shutil
import subprocess
import tempfile

MISSING = None if shutil.which("openssl") else "openssl is missing"
NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


class Pki:
    """A root, what it has signed (relay.pem for localhost, worker.pem), and a worker's certificate of another root:
    stranger.pem. The keys are beside them, NAME.key; stop() removes all."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        os.chmod(self.folder, 0o755)
        for root in ("root", "other"):
            self.make(root, "-x509", "-days", "2")
        for name, root in (("relay", "root"), ("worker", "root"), ("stranger", "other")):
            self.make(name, "-addext", "subjectAltName=DNS:localhost")
            self.openssl("x509", "-req", "-in", self[name + ".pem"], "-out", self[name + ".pem"], "-days", "2",
                         "-CA", self[root + ".pem"], "-CAkey", self[root + ".key"], "-CAcreateserial",
                         "-copy_extensions", "copy")

    def make(self, name, *more):
        self.openssl("req", *NEW_KEY, "-keyout", self[name + ".key"], "-out", self[name + ".pem"], "-subj", f"/CN={name}", *more)

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def __getitem__(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self[name], "rb") as f:
            return f.read()

    def stop(self):
        shutil.rmtree(self.folder)
