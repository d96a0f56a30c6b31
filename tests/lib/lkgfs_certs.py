# SPDX-License-Identifier: Apache-2.0
"""Certificates for the tests, made with openssl(1): two authorities, server certificates, client certificates."""
import os
import pathlib
import subprocess

CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE, timeout=30)


class Authority:
    """One CA in a directory: `NAME.crt`, `NAME.key`."""

    def __init__(self, directory, name):
        self.directory, self.name = pathlib.Path(directory), name
        self.certificate = self.directory / f"{name}.crt"
        self.key = self.directory / f"{name}.key"
        openssl("req", "-x509", *CURVE, "-keyout", self.key, "-out", self.certificate, "-subj", f"/CN={name}",
                "-days", 2, "-addext", "keyUsage=critical,keyCertSign")

    def issue(self, name, subject, san="", days=2):
        """Return the paths (certificate, key); `days` 0: expired at once."""
        stem = self.directory / name
        certificate, key, request, extensions = (stem.with_suffix(end) for end in (".crt", ".key", ".csr", ".ext"))
        extensions.write_text("basicConstraints=CA:FALSE\n" + (f"subjectAltName={san}\n" if san else ""))
        openssl("req", *CURVE, "-keyout", key, "-out", request, "-subj", subject)
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-set_serial",
                "0x" + os.urandom(8).hex(), "-days", days, "-extfile", extensions, "-out", certificate)
        return certificate, key


class Certificates:
    """The certificates of the API server of a test session and of its clients."""

    SERVER_NAMES = "IP:127.0.0.1,DNS:localhost"

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.ca = Authority(directory, "ca")
        self.other_ca = Authority(directory, "other-ca")
        subject = "/CN=kube-apiserver"
        self.server = {
            "good": self.ca.issue("server", subject, self.SERVER_NAMES),
            "other-ca": self.other_ca.issue("server-other-ca", subject, self.SERVER_NAMES),
            "wrong-name": self.ca.issue("server-wrong-name", subject, "DNS:elsewhere.example"),
            "expired": self.ca.issue("server-expired", subject, self.SERVER_NAMES, days=0),
        }
        self.clients = {}

    def node(self, name, kind="good"):
        """The credential of system:node:NAME. `kind`: good, other-ca, expired, renewed (another valid one)."""
        if (name, kind) not in self.clients:
            authority = self.other_ca if kind == "other-ca" else self.ca
            self.clients[name, kind] = authority.issue(f"node-{name}-{kind}", f"/O=system:nodes/CN=system:node:{name}",
                                                       days=0 if kind == "expired" else 2)
        return self.clients[name, kind]

    def user(self, name, group=""):
        """Any other client certificate."""
        if name not in self.clients:
            self.clients[name] = self.ca.issue(f"user-{name}", (f"/O={group}" if group else "") + f"/CN={name}")
        return self.clients[name]
