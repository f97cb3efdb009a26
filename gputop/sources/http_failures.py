"""Connections that fail, in words: what requests and OpenSSL say is for programmers."""

import re
from typing import Final
from urllib.parse import urlsplit

import requests
from msgspec import Struct
from requests.utils import get_environ_proxies, select_proxy
from urllib3.exceptions import ReadTimeoutError

from gputop.model.endpoint import Endpoint
from gputop.model.status import SourceState
from gputop.model.text import clean
from gputop.sources.base import SourceError
from gputop.sources.http_certificates import file_fault


class _Cause(Struct, frozen=True):
    """A part of an exception's text, what is said for it, and what follows."""

    mark: str
    words: str
    state: SourceState = SourceState.DOWN


_DENIED: Final = SourceState.DENIED
_NOT_ACCEPTED: Final = "TLS: the server does not accept the client certificate (client_cert)"
_NO_PROXY: Final = "the proxy of the environment does not answer"

_TABLE: Final = (
    _Cause("CERTIFICATE_REQUIRED", "TLS: the server wants a client certificate (client_cert)", _DENIED),
    # TLS 1.2 has no alert of its own for a certificate that is not shown (RFC 5246 7.2.2).
    _Cause("ALERT_HANDSHAKE_FAILURE", "TLS: refused: does it want a client certificate (client_cert)?", _DENIED),
    _Cause("ALERT_UNKNOWN_CA", _NOT_ACCEPTED, _DENIED),
    _Cause("ALERT_BAD_CERTIFICATE", _NOT_ACCEPTED, _DENIED),
    _Cause("ALERT_CERTIFICATE_", _NOT_ACCEPTED, _DENIED),
    _Cause("ALERT_ACCESS_DENIED", _NOT_ACCEPTED, _DENIED),
    # The alert is lost where the server closes before the client has written its request.
    _Cause("EOF occurred in violation of protocol", "TLS: broken off: does it want another client certificate?"),
    _Cause("WRONG_VERSION_NUMBER", "TLS: the server speaks plain HTTP: use http://"),
    _Cause("RECORD_LAYER_FAILURE", "TLS: the server speaks plain HTTP: use http://"),
    _Cause("certificate has expired", "TLS: the certificate has expired"),
    _Cause("certificate is not yet valid", "TLS: the certificate is not valid yet: is a clock wrong?"),
    _Cause("certificate is not valid for", "TLS: the certificate is for another name or address"),
    _Cause("CERTIFICATE_VERIFY_FAILED", "TLS: the certificate is not trusted (ca_file)"),
    _Cause("Tunnel connection failed: 407", "the proxy wants a login", _DENIED),
    _Cause("Tunnel connection failed: 5", "the proxy refuses the connection"),
    _Cause("Tunnel connection failed: ", "the proxy refuses the connection", _DENIED),
    _Cause("Unable to connect to proxy", _NO_PROXY),
    _Cause("Cannot connect to proxy", _NO_PROXY),
    _Cause("Name or service not known", "the name is not known"),
    _Cause("Temporary failure in name resolution", "names cannot be resolved"),
    _Cause("nodename nor servname", "the name is not known"),
    _Cause("Connection refused", "connection refused"),
    _Cause("No route to host", "no route"),
    _Cause("Network is unreachable", "no route"),
    _Cause("Connection reset", "the connection was reset"),
    _Cause("IncompleteRead", "the answer broke off"),
    _Cause("Connection broken", "the answer broke off"),
    _Cause("closed connection without response", "the connection was closed without an answer"),
    _Cause("BadStatusLine", "no HTTP answer: is it the right port?"),
)
_OPENSSL: Final = re.compile(r"\[[A-Z0-9_]*: ([A-Z0-9_]+)\] ([^('\"]*)")
_TUNNEL: Final = re.compile(r"Tunnel connection failed: ([^'\")]*)")
_USER_INFO: Final = re.compile(r"//[^/@\s]*@")


def host_of(url: str) -> str:
    """Return host and port of an address, without credentials; "" where it is no address."""
    try:
        return clean(urlsplit(url).netloc.rpartition("@")[2], 120)
    except ValueError:
        return ""


def is_late(error: Exception) -> bool:
    """Whether an error means that a time limit was reached."""
    return isinstance(error, requests.Timeout | ReadTimeoutError | TimeoutError) or "timed out" in str(error).lower()


def failure(error: Exception, url: str, endpoint: Endpoint, connect_s: float) -> SourceError:
    """Return why there is no answer, in one line without secrets.

    Args:
        error: What requests, urllib3 or the system raised.
        url: Address that was asked.
        endpoint: As whom, and whom to trust.
        connect_s: Time limit of connecting.
    """
    fault = file_fault(endpoint)
    if fault:
        return SourceError(fault, SourceState.DENIED)
    words, state = _words(error, endpoint.timeout_s, connect_s)
    return SourceError(f"{host_of(url)}: {words}{_way(url)}", state)


def _words(error: Exception, read_s: float, connect_s: float) -> tuple[str, SourceState]:
    text = str(error)
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return f"no connection within {connect_s:.0f} s", SourceState.DOWN
    if is_late(error):
        return f"no answer within {read_s:.0f} s", SourceState.DOWN
    told = _OPENSSL.search(text)
    cause = next((c for c in _TABLE if c.mark in text), None)
    if cause is not None:
        return cause.words + _detail(cause, text), cause.state
    if told:
        return f"TLS: {clean(told[2].strip(), 100)}", SourceState.DOWN
    return clean(_USER_INFO.sub("//", text), 160), SourceState.DOWN


def _detail(cause: _Cause, text: str) -> str:
    """Return what the other side has said beyond what the words say."""
    tunnel = _TUNNEL.search(text)
    if tunnel and cause.mark.startswith("Tunnel"):
        return f": {clean(tunnel[1].strip(), 60)}"
    told = _OPENSSL.search(text)
    if told and cause.mark == "CERTIFICATE_VERIFY_FAILED":
        return f": {clean(told[2].rpartition(': ')[2].strip(), 100)}"
    return ""


def _way(url: str) -> str:
    """Return through which proxy of the environment an address is reached, as that may be what fails."""
    try:
        proxy = select_proxy(url, get_environ_proxies(url))
    except (ValueError, requests.RequestException):
        return ""
    return f" (through the proxy {host_of(proxy)})" if proxy else ""
