"""What is wrong with the certificate files of an endpoint, in words; OpenSSL names neither the file nor the setting."""

import ssl
from pathlib import Path
from typing import Final

from gputop.model.endpoint import Endpoint
from gputop.model.text import clean

_CERTIFICATE: Final = (b"-----BEGIN CERTIFICATE-----", b"-----BEGIN TRUSTED CERTIFICATE-----")
_KEY: Final = (b"PRIVATE KEY-----",)


class _LockedError(Exception):
    """The key asks for its pass phrase."""


def file_fault(endpoint: Endpoint) -> str:
    """Return which file cannot be used and why, beginning with its setting; "" when there is nothing to say."""
    files = (
        ("ca_file", "" if endpoint.insecure else endpoint.ca_file, _CERTIFICATE, "certificate"),
        ("client_cert", endpoint.client_cert, _CERTIFICATE, "certificate"),
        ("client_key", endpoint.client_key, _KEY, "private key"),
    )
    for setting, path, marks, what in files:
        # A folder of authorities is allowed, as OpenSSL's c_rehash makes them.
        if not path or (setting == "ca_file" and Path(path).is_dir()):
            continue
        try:
            held = Path(path).read_bytes()
        except OSError as error:
            return f"{setting}: {clean(path)}: {error.strerror or 'cannot be read'}"
        if not any(mark in held for mark in marks):
            return f"{setting}: {clean(path)}: holds no {what} in PEM"
    return _pair_fault(endpoint.client_cert, endpoint.client_key) if endpoint.client_cert else ""


def _pair_fault(certificate: str, key: str) -> str:
    setting = "client_key" if key else "client_cert"

    def asked() -> str:
        raise _LockedError

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key or None, password=asked)
    except _LockedError:
        return f"{setting}: {clean(key or certificate)}: the key has a pass phrase, which cannot be asked for here"
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"{setting}: {clean(key or certificate)}: is the key of another certificate"
        return f"{setting}: {clean(key or certificate)}: cannot be used: {clean(error.reason or 'damaged', 60)}"
    except OSError as error:
        return f"{setting}: {clean(key or certificate)}: {error.strerror or 'cannot be read'}"
    return ""
