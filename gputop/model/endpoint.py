"""How an HTTP source is reached: address, credentials, certificates. Shared by Prometheus and exporters."""

import re
from urllib.parse import unquote, urlsplit, urlunsplit

from msgspec import Struct

from gputop.model.secret import Secret


class Endpoint(Struct, frozen=True, kw_only=True):
    """One HTTP source.

    Attributes:
        url: Base address without credentials; for Prometheus with the path prefix of the API.
        name: Name on screen, "" to make one from the address.
        username: User for basic authentication, "" for none.
        password: Password for basic authentication.
        token: Bearer token.
        token_file: File with a bearer token, read anew when it changes; "" for none.
        token_command: Command that prints a bearer token; empty for none.
        client_cert: PEM file of the client certificate, "" for none.
        client_key: PEM file of its key, "" when it is in the same file.
        ca_file: PEM file of the certificate authorities to trust, "" for the system's.
        insecure: Do not check the server's certificate.
        tenant: Value of X-Scope-OrgID (Mimir, Cortex, Loki), "" for none.
        headers: Further headers, whose values may be secrets.
        selector: Label matchers added to every query, such as `cluster="prod-eu"`.
        cluster: Name of the cluster it tells of, "" when a label tells or nobody.
        timeout_s: Longest wait for one answer.
        found: How it was found, for `gputop doctor`.
    """

    url: str
    name: str = ""
    username: str = ""
    password: Secret = Secret()
    token: Secret = Secret()
    token_file: str = ""
    token_command: tuple[str, ...] = ()
    client_cert: str = ""
    client_key: str = ""
    ca_file: str = ""
    insecure: bool = False
    tenant: str = ""
    headers: tuple[tuple[str, Secret], ...] = ()
    selector: str = ""
    cluster: str = ""
    timeout_s: float = 10.0
    found: str = ""


class UnencodedError(ValueError):
    """A password in an address has a character that ends it: "/", "?", "#", "[" or "]"."""


def split_credentials(url: str) -> tuple[str, str, Secret]:
    """Return an address without the credentials in it, the user, and the password.

    ":" and "@" may stand in a password as they are: the first ":" ends the user, the last "@" before the path
    the password (RFC 3986 3.2.1 wants them encoded, and people forget it).

    Raises:
        UnencodedError: Where the password ends cannot be told; the rest of it would be taken for a host or a
            path, be shown, and be sent to whoever answers.
        ValueError: It is no address.
    """
    _, divider, rest = url.partition("://")
    if any(ord(c) < 0x20 or ord(c) == 0x7F for c in url):
        # urlsplit drops line breaks and tabs silently, and with them a part of a password.
        raise ValueError("an address has no control characters")
    credentials, at, _ = rest.rpartition("@")
    if divider and at and _ends_early(credentials):
        raise UnencodedError
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url, "", Secret()
    user_info, _, host = parts.netloc.rpartition("@")
    user, _, password = user_info.partition(":")
    return urlunsplit(parts._replace(netloc=host)), unquote(user), Secret(unquote(password))


def _ends_early(credentials: str) -> bool:
    """Whether what stands before the last "@" has an end of the host's part within what may be a password."""
    authority = re.split(r"[/?#]", credentials, maxsplit=1)[0]
    ends = authority != credentials
    # An IPv6 address has colons too; elsewhere a bracket breaks the reading of an address.
    bare = re.sub(r"^\[[0-9a-fA-F:.]*\]", "", authority)
    return (ends and (":" in bare or "@" in bare)) or (not ends and ("[" in bare or "]" in bare))
