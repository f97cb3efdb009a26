"""An authority of a test's own and the certificates it gives, made by the `openssl` program."""

import os
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct

_CONFIG: Final = """
[req]
distinguished_name = name
prompt = no
x509_extensions = authority
[name]
CN = {name}
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[ca]
default_ca = own
[own]
database = {folder}/index.txt
new_certs_dir = {folder}
serial = {folder}/serial
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
"""
_EXTENSIONS: Final = """
basicConstraints = CA:FALSE
subjectAltName = {names}
authorityKeyIdentifier = keyid
extendedKeyUsage = {usage}
"""


class Certificate(Struct, frozen=True):
    """Files of a certificate and its key, in PEM."""

    path: str
    key: str


def _openssl(*words: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        reason = "no openssl program on PATH (Debian and Ubuntu: the package `openssl`)"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir()
        self._folder = folder
        self._config = folder / "openssl.cnf"
        self._config.write_text(_CONFIG.format(name=name, folder=folder))
        (folder / "index.txt").touch()
        (folder / "serial").write_text("01\n")
        self.path = str(folder / "ca.pem")
        _openssl(
            *("req", "-x509", "-config", str(self._config), "-days", "2", "-out", self.path),
            *("-newkey", "rsa:2048", "-noenc", "-keyout", str(folder / "ca.key")),
        )

    def give(
        self, name: str, *, names: str = "IP:127.0.0.1", client: bool = False, expired: bool = False
    ) -> Certificate:
        """Give a certificate.

        Args:
            name: Common name, and name of its files.
            names: Names and addresses it is for, as OpenSSL writes them.
            client: It is a client's rather than a server's.
            expired: It was good for one day, some years ago.
        """
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        given = Certificate(str(self._folder / f"{name}.pem"), str(self._folder / f"{name}.key"))
        extensions.write_text(_EXTENSIONS.format(names=names, usage="clientAuth" if client else "serverAuth"))
        _openssl(
            *("req", "-new", "-config", str(self._config), "-subj", f"/CN={name}", "-out", str(request)),
            *("-newkey", "rsa:2048", "-noenc", "-keyout", given.key),
        )
        dates = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z") if expired else ("-days", "1")
        _openssl(
            *("ca", "-config", str(self._config), "-batch", "-notext", *dates, "-in", str(request)),
            *("-extfile", str(extensions), "-out", given.path),
        )
        return given

    def lock(self, key: str, to: Path, phrase: str) -> None:
        """Write a key that only a pass phrase opens."""
        _openssl("pkey", "-in", key, "-aes256", "-passout", f"pass:{phrase}", "-out", str(to))


def serving(certificate: Certificate, clients_of: Authority | None = None) -> ssl.SSLContext:
    """Return how a server shows a certificate, and of which authority its clients have to have one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.path, certificate.key)
    if clients_of is not None:
        context.load_verify_locations(clients_of.path)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
