"""Servers with their credentials, from a table of config.toml or from an address and variables.

Secrets are wrapped as soon as they are read. A message never shows a value that may hold one.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from gputop.config.errors import ConfigError, nearest
from gputop.model.endpoint import Endpoint, UnencodedError, split_credentials
from gputop.model.secret import Secret
from gputop.model.text import clean

MOST_TIMEOUT_S: Final = 600.0

_TEXTS: Final = ("name", "username", "tenant", "selector", "cluster")
_PATHS: Final = ("token_file", "client_cert", "client_key", "ca_file")
_PASSWORDS: Final = ("password", "password_file", "password_env")
_TOKENS: Final = ("token", "token_file", "token_env", "token_command")
_OTHERS: Final = ("url", "insecure", "timeout_s", "headers", "headers_file")
KEYS: Final = tuple(dict.fromkeys((*_OTHERS, *_TEXTS, *_PATHS, *_PASSWORDS, *_TOKENS)))
"""What a `[[prometheus]]` or `[[exporter]]` table may hold."""

_UNENCODED: Final = (
    'in a password "/" is written %2F, "?" %3F, "#" %23, "[" %5B and "]" %5D, and in a path "@" is written %40; '
    "or give the password apart (password_file, GPUTOP_PROMETHEUS_PASSWORD)"
)

# RFC 9110 5.6.2: what the name of a header may be made of.
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


class Row(Struct, frozen=True):
    """What is said of one server.

    Attributes:
        fields: Values by key.
        where: What a message begins with, such as "config.toml: [[prometheus]]".
        found: How the server was found, for `gputop doctor`.
        folder: Where relative paths begin: the file's folder, or the working folder for variables.
        env: The environment, for HOME and the variables that a row names.
    """

    fields: Mapping[str, Any]
    where: str
    found: str
    folder: Path
    env: Mapping[str, str]

    def error(self, key: str, words: str) -> ConfigError:
        """Return the error that names a key of this row."""
        return ConfigError(f"{self.where}: {key}: {words}")

    def text(self, key: str, default: str = "") -> str:
        """Return a text.

        Raises:
            ConfigError: It is something else.
        """
        value = self.fields.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, "must be a text")
        return value

    def path(self, key: str) -> str:
        """Return a path with "~" and the folder of the file put in, "" for none."""
        text = self.text(key)
        return str(user_path(text, self.folder, self.env)) if text else ""

    def variable(self, key: str, name: str) -> str:
        """Return the value of an environment variable that a setting names.

        Raises:
            ConfigError: It is not set: going on without the secret would end in a puzzling 401.
        """
        if name not in self.env:
            raise self.error(key, f"the variable {clean(name)} is not set")
        return self.env[name]

    def contents(self, key: str, path: str) -> str:
        """Return what a small file holds, without the line break at its end.

        Raises:
            ConfigError: It cannot be read.
        """
        full = user_path(path, self.folder, self.env)
        try:
            return full.read_text(encoding="utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise self.error(key, f"{clean(str(full))}: is not a text") from None
        except OSError as error:
            raise self.error(key, f"{clean(str(full))}: {error.strerror or 'cannot be read'}") from None
        except ValueError:
            raise self.error(key, "is no path") from None


def user_path(text: str, folder: Path, env: Mapping[str, str]) -> Path:
    """Return a path as a user means it: "~" is HOME, and relative ones begin in a folder."""
    if text == "~" or text.startswith("~/"):
        return Path(env.get("HOME") or "/") / text[2:]
    return folder / text


def endpoint(row: Row, *, selector: str, cluster: str) -> Endpoint:
    """Return a server.

    Args:
        row: What is said of it.
        selector: Label matchers where the row has none.
        cluster: Name of the cluster where the row has none.

    Raises:
        ConfigError: Something said of it cannot be used.
    """
    for key in row.fields:
        if key not in KEYS:
            raise ConfigError(f"{row.where}: {clean(key)}: no such setting{nearest(key, KEYS)}")
    url, user, password = _address(row)
    if user and "username" in row.fields:
        raise row.error("url", "names a user, and username does too")
    if password and any(key in row.fields for key in _PASSWORDS):
        raise row.error("url", "has a password, and another is given")
    texts = {key: row.text(key) for key in _TEXTS}
    paths = {key: row.path(key) for key in _PATHS}
    if paths["client_key"] and not paths["client_cert"]:
        raise row.error("client_key", "is of no use without client_cert")
    token = _secret(row, _TOKENS)
    _refuse_unsendable(row, "token", token.reveal())
    _refuse_unsendable(row, "tenant", texts["tenant"])
    return Endpoint(
        **paths,
        url=url,
        name=texts["name"],
        username=texts["username"] or user,
        password=password or _secret(row, _PASSWORDS),
        token=token,
        token_command=_command(row),
        insecure=_switch(row),
        tenant=texts["tenant"],
        headers=_headers(row),
        selector=row.text("selector", selector),
        cluster=row.text("cluster", cluster),
        timeout_s=_timeout_s(row),
        found=row.found,
    )


def has_credentials(url: str) -> bool:
    """Whether an address carries a user or password; one that cannot be read carries none that is used."""
    try:
        _, user, password = split_credentials(url)
    except ValueError:
        return False
    return bool(user or password)


def _shown(url: str) -> str:
    """Return an address for a message: nothing before the last "@", as a password may hold any character."""
    scheme, divider, rest = url.partition("://") if "://" in url else ("", "", url)
    return clean(f"{scheme}{divider}{rest.rpartition('@')[2]}")


def _address(row: Row) -> tuple[str, str, Secret]:
    given = row.text("url")
    if not given:
        raise row.error("url", "must be an address")
    shown = _shown(given)
    try:
        bare, user, password = split_credentials(given)
        address = _parts(bare)
    except UnencodedError:
        raise ConfigError(f"{row.where}: {shown}: {_UNENCODED}") from None
    except ValueError:
        # The library's own words may repeat a part of the credentials.
        raise ConfigError(f"{row.where}: {shown}: is no address") from None
    if address is None:
        hint = f", such as http://{shown}" if "://" not in given else ""
        raise ConfigError(f"{row.where}: {shown}: an address begins with http:// or https://{hint}")
    if any(ord(c) <= 0x20 or ord(c) == 0x7F for c in bare):
        raise ConfigError(f"{row.where}: {shown}: an address has no blanks")
    return bare.rstrip("/"), user, password


def _parts(bare: str) -> str | None:
    """Return the host, or None where it is no HTTP address; a port that is none raises ValueError."""
    parts = urlsplit(bare)
    _ = parts.port
    return parts.hostname if parts.scheme in {"http", "https"} else None


def _secret(row: Row, keys: tuple[str, ...]) -> Secret:
    """Return a password or token; one that is read by the source itself, as from token_file, is none here."""
    given = [key for key in keys if row.fields.get(key)]
    if len(given) > 1:
        raise row.error(given[0], f"{given[1]} is given too; one of them is enough")
    if not given:
        return Secret()
    (key,) = given
    if key == keys[0]:
        return Secret(row.text(key))
    if key.endswith("_env"):
        return Secret(row.variable(key, row.text(key)))
    # Service-account tokens are replaced while one watches, so a source reads its token's file again.
    return Secret(row.contents(key, row.text(key))) if key == "password_file" else Secret()


def _command(row: Row) -> tuple[str, ...]:
    words = row.fields.get("token_command", ())
    if not isinstance(words, list | tuple) or not all(isinstance(w, str) for w in words):
        raise row.error("token_command", 'must be a list of words, such as ["print-token", "--raw"]')
    return tuple(words)


def _switch(row: Row) -> bool:
    value = row.fields.get("insecure", False)
    if not isinstance(value, bool):
        raise row.error("insecure", "must be true or false")
    return value


def _timeout_s(row: Row) -> float:
    value = row.fields.get("timeout_s", 10)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_TIMEOUT_S:
        raise row.error("timeout_s", f"must be a number of seconds above 0 and at most {MOST_TIMEOUT_S:g}")
    return float(value)


def _headers(row: Row) -> tuple[tuple[str, Secret], ...]:
    table = row.fields.get("headers", {})
    if not isinstance(table, dict):
        raise row.error("headers", 'must be a table, such as { X-Name = "value" }')
    headers = [(str(name), _header_value(row, str(name), value)) for name, value in table.items()]
    headers += _header_lines(row)
    for name, value in headers:
        if not _HEADER_NAME.fullmatch(name):
            raise row.error("headers", f"{clean(name)} is no name of a header")
        _refuse_unsendable(row, f"headers: {name}", value)
    return tuple((name, Secret(value)) for name, value in headers)


def _header_value(row: Row, name: str, value: object) -> str:
    key = f"headers: {clean(name)}"
    match value:
        case str():
            return value
        case {"env": str(variable), **others} if not others:
            return row.variable(key, variable)
        case {"file": str(path), **others} if not others:
            return row.contents(key, path)
        case _:
            raise row.error(key, 'must be a text, { env = "NAME" } or { file = "PATH" }')


def _header_lines(row: Row) -> list[tuple[str, str]]:
    path = row.text("headers_file")
    found: list[tuple[str, str]] = []
    for number, line in enumerate(row.contents("headers_file", path).splitlines() if path else (), 1):
        name, colon, value = line.partition(":")
        if colon:
            found.append((name.strip(), value.strip()))
        elif line.strip():
            # The line itself may be a secret.
            raise row.error("headers_file", f'line {number} is not "Name: value"')
    return found


def _refuse_unsendable(row: Row, key: str, value: str) -> None:
    """Refuse what cannot stand in a header: line breaks would begin another one (RFC 9110 5.5)."""
    if any((ord(c) < 0x20 and c != "\t") or ord(c) == 0x7F or ord(c) > 0xFF for c in value):
        raise row.error(key, "has characters that a header cannot carry")
