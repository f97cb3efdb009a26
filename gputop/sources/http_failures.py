"""Connections that fail, in words: what requests and OpenSSL say is for programmers."""

import re
from typing import Final
from urllib.parse import urlsplit

import requests

from gputop.model.text import clean

_TABLE: Final = (
    ("CERTIFICATE_REQUIRED", "TLS: the server wants a client certificate (client_cert)"),
    ("WRONG_VERSION_NUMBER", "TLS: the server speaks plain HTTP: use http://"),
    ("CERTIFICATE_VERIFY_FAILED", "TLS: the certificate is not trusted (ca_file)"),
    ("Unable to connect to proxy", "the proxy of the environment does not answer"),
    ("Cannot connect to proxy", "the proxy of the environment does not answer"),
    ("Name or service not known", "the name is not known"),
    ("Temporary failure in name resolution", "names cannot be resolved"),
    ("nodename nor servname", "the name is not known"),
    ("Connection refused", "connection refused"),
    ("No route to host", "no route"),
    ("Network is unreachable", "no route"),
    ("Connection reset", "the connection was reset"),
    ("IncompleteRead", "the answer broke off"),
    ("Connection broken", "the answer broke off"),
    ("closed connection without response", "the connection was closed without an answer"),
    ("BadStatusLine", "no HTTP answer: is it the right port?"),
)
"""Part of an exception's text, and what is said."""
_OPENSSL: Final = re.compile(r"\[[A-Z0-9_]*: ([A-Z0-9_]+)\] ([^('\"]*)")
_USER_INFO: Final = re.compile(r"//[^/@\s]*@")


def host_of(url: str) -> str:
    """Return host and port of an address, without credentials."""
    return clean(urlsplit(url).netloc.rpartition("@")[2], 120)


def failure(error: Exception, url: str, connect_s: float, read_s: float) -> str:
    """Return why there is no answer, in one line without secrets.

    Args:
        error: What requests, urllib3 or the system raised.
        url: Address of the server.
        connect_s: Time limit of connecting.
        read_s: Time limit of an answer.
    """
    host = host_of(url)
    text = str(error)
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return f"{host}: no connection within {connect_s:.0f} s"
    if isinstance(error, requests.exceptions.ReadTimeout) or "timed out" in text.lower():
        return f"{host}: no answer within {read_s:.0f} s"
    told = _OPENSSL.search(text)
    detail = f": {clean(told[2].rpartition(': ')[2].strip(), 100)}" if told and "verify failed:" in told[2] else ""
    for mark, words in _TABLE:
        if mark in text:
            return f"{host}: {words}{detail}"
    if told:
        return f"{host}: TLS: {clean(told[2].strip(), 100)}"
    return f"{host}: {clean(_USER_INFO.sub('//', text), 160)}"
