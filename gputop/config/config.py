"""Putting settings together: flag, then environment, then file, then what was detected, then default."""

import difflib
import math
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gputop.config.settings import ENDPOINT_ENV, SETTINGS, Setting, Type
from gputop.model.endpoint import Endpoint, split_credentials
from gputop.model.secret import Secret
from gputop.model.text import clean

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class ConfigError(Exception):
    """A setting cannot be used; the message names where it stands, its key and why."""


class Config:
    """All settings with their values.

    Each name of `SETTINGS` is an attribute; `prometheus` and `exporters` are tuples of `Endpoint`.
    """

    def __init__(
        self,
        values: Mapping[str, object],
        origins: Mapping[str, str],
        endpoints: Mapping[str, tuple[Endpoint, ...]],
    ) -> None:
        self._values = dict(values)
        self._origins = dict(origins)
        self.prometheus = endpoints["prometheus"]
        self.exporters = endpoints["exporter"]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - typed by the table
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(name) from None

    def origin(self, name: str) -> str:
        """Return where a setting's value comes from: an option, a variable, a file, or "default"."""
        return self._origins.get(name, "default")

    def items(self) -> list[tuple[str, object, str]]:
        """Return (name, value, origin) of every setting."""
        return [(s.name, self._values[s.name], self.origin(s.name)) for s in SETTINGS]


def load(flags: Mapping[str, object], env: Mapping[str, str], file: Path, *, required: bool = False) -> Config:
    """Return the settings.

    Args:
        flags: Values given on the command line by setting name; only what was typed.
        env: The environment.
        file: The configuration file.
        required: The file was named by the user, so it must be there.

    Raises:
        ConfigError: Something in it cannot be used.
    """
    table = _read(file, required=required)
    _refuse_unknown(table, file)
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for setting in SETTINGS:
        if setting.name in flags:
            value, origin = flags[setting.name], setting.flag
        elif setting.env and env.get(setting.env, "") != "":
            value, origin = _from_text(setting, env[setting.env]), setting.env
        elif setting.name in table:
            value, origin = table[setting.name], str(file)
        else:
            values[setting.name] = setting.default
            continue
        values[setting.name] = _checked(setting, value, origin)
        origins[setting.name] = origin
    return Config(values, origins, _endpoints(values, origins, table, env, file))


def _read(file: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise ConfigError(f"{file}: there is no such file") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file}: {clean(str(error))}") from error


def _refuse_unknown(table: Mapping[str, Any], file: Path) -> None:
    known = [s.name for s in SETTINGS if s.in_file] + ["prometheus", "exporter"]
    for key in table:
        if key not in known:
            raise ConfigError(f"{file}: {clean(key)}: no such setting{_nearest(key, known)}")


def _nearest(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def _from_text(setting: Setting, text: str) -> object:
    if setting.type is Type.TEXTS:
        return [part.strip() for part in text.split(",") if part.strip()]
    if setting.type is Type.SWITCH:
        lowered = text.strip().lower()
        if lowered in _TRUE | _FALSE:
            return lowered in _TRUE
        raise ConfigError(f"{setting.env}: must be one of 1, 0, true, false, yes, no, on, off")
    if setting.type in {Type.NUMBER, Type.COUNT}:
        try:
            return float(text) if setting.type is Type.NUMBER else int(text)
        except ValueError:
            raise ConfigError(f"{setting.env}: {clean(text)} is not a number") from None
    return text


def _checked(setting: Setting, value: object, origin: str) -> object:
    where = f"{origin}: {setting.name}" if "/" in origin else origin
    kinds: dict[Type, tuple[type, ...]] = {
        Type.TEXT: (str,),
        Type.TEXTS: (list, tuple),
        Type.SWITCH: (bool,),
        Type.NUMBER: (int, float),
        Type.COUNT: (int,),
        Type.CHOICE_OR_FLAG: (str,),
    }
    fits = isinstance(value, kinds[setting.type])
    if not fits or (isinstance(value, bool) and setting.type is not Type.SWITCH):
        raise ConfigError(f"{where}: must be a {setting.type}")
    if setting.type is Type.TEXTS:
        assert isinstance(value, list | tuple)  # noqa: S101 - told by `kinds`
        if not all(isinstance(v, str) for v in value):
            raise ConfigError(f"{where}: must be texts")
        value = tuple(value)
    if setting.type is Type.NUMBER and isinstance(value, int | float):
        value = float(value)
    reason = setting.check(value) if setting.check else ""
    if reason:
        shown = f"{value:g}" if isinstance(value, float) and not math.isnan(value) else str(value)
        raise ConfigError(f"{where}: {shown} {reason}")
    return value


def _endpoints(
    values: Mapping[str, object],
    origins: Mapping[str, str],
    table: Mapping[str, Any],
    env: Mapping[str, str],
    file: Path,
) -> dict[str, tuple[Endpoint, ...]]:
    found: dict[str, tuple[Endpoint, ...]] = {}
    for kind, name in (("prometheus", "prometheus_urls"), ("exporter", "exporters_urls")):
        urls = values[name]
        assert isinstance(urls, tuple)  # noqa: S101 - told by the table
        origin = origins.get(name, "")
        given = [_given(str(url), origin, values, env if kind == "prometheus" else {}) for url in urls]
        rows = table.get(kind, [])
        if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
            raise ConfigError(f"{file}: {kind}: must be a table [[{kind}]]")
        # A flag or a variable names what to read in this run; the file's are for when none does.
        from_file = [] if given else [_from_table(kind, row, values, env, file) for row in rows]
        found[kind] = (*given, *from_file)
    return found


def _given(url: str, origin: str, values: Mapping[str, object], env: Mapping[str, str]) -> Endpoint:
    bare, user, password = split_credentials(url)
    if (user or password) and origin.startswith("--"):
        raise ConfigError(
            f"{origin}: credentials do not belong on a command line, which every user of the machine can read; "
            f"use {ENDPOINT_ENV['password_file']} or config.toml"
        )
    row = {key: env[name] for key, name in ENDPOINT_ENV.items() if env.get(name)}
    token_command = row.pop("token_command", "")
    fields: dict[str, Any] = dict(row)
    if token_command:
        fields["token_command"] = shlex.split(token_command)
    if "insecure" in fields:
        fields["insecure"] = row["insecure"].lower() in _TRUE
    fields |= {"url": bare}
    if user:
        fields.setdefault("username", user)
    endpoint = _endpoint(fields, values, env, origin, origin)
    return endpoint if not password else _with_password(endpoint, password)


def _with_password(endpoint: Endpoint, password: Secret) -> Endpoint:
    fields = {name: getattr(endpoint, name) for name in endpoint.__struct_fields__}
    return Endpoint(**{**fields, "password": password})


def _from_table(
    kind: str, row: Mapping[str, Any], values: Mapping[str, object], env: Mapping[str, str], file: Path
) -> Endpoint:
    where = f"{file}: [[{kind}]]"
    fields = dict(row)
    if not isinstance(fields.get("url"), str):
        raise ConfigError(f"{where}: url: must be a text")
    bare, user, password = split_credentials(fields["url"])
    fields["url"] = bare
    if user:
        fields.setdefault("username", user)
    endpoint = _endpoint(fields, values, env, where, str(file))
    return endpoint if not password else _with_password(endpoint, password)


_TEXT_FIELDS: Final = ("name", "username", "token_file", "client_cert", "client_key", "ca_file", "tenant",
                       "selector", "cluster")  # fmt: skip
_SECRET_FIELDS: Final = ("password", "token")


def _endpoint(
    fields: Mapping[str, Any], values: Mapping[str, object], env: Mapping[str, str], where: str, found: str
) -> Endpoint:
    known = ["url", "insecure", "timeout_s", "token_command", "headers", "headers_file", *_TEXT_FIELDS,
             *(f"{s}{end}" for s in _SECRET_FIELDS for end in ("", "_file", "_env"))]  # fmt: skip
    for key in fields:
        if key not in known:
            raise ConfigError(f"{where}: {clean(key)}: no such setting{_nearest(key, known)}")
    url = fields["url"]
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{where}: {clean(url)}: an address begins with http:// or https://")
    taken: dict[str, Any] = {"url": url.rstrip("/"), "found": found}
    for key in _TEXT_FIELDS:
        value = fields.get(key, values.get(key, "") if key in {"selector", "cluster"} else "")
        if not isinstance(value, str):
            raise ConfigError(f"{where}: {key}: must be a text")
        taken[key] = value
    for key in _SECRET_FIELDS:
        taken[key] = _secret(key, fields, env, where)
    timeout_s = fields.get("timeout_s", 10.0)
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= 600:
        raise ConfigError(f"{where}: timeout_s: must be a number of seconds above 0 and at most 600")
    insecure = fields.get("insecure", False)
    if not isinstance(insecure, bool):
        raise ConfigError(f"{where}: insecure: must be true or false")
    command = fields.get("token_command", ())
    if not isinstance(command, list | tuple) or not all(isinstance(w, str) for w in command):
        raise ConfigError(f"{where}: token_command: must be a list of words")
    taken |= {"timeout_s": float(timeout_s), "insecure": insecure, "token_command": tuple(command)}
    return Endpoint(**taken, headers=_headers(fields, where))


def _secret(key: str, fields: Mapping[str, Any], env: Mapping[str, str], where: str) -> Secret:
    if f"{key}_env" in fields:
        return Secret(env.get(str(fields[f"{key}_env"]), ""))
    # A token's file is read by the source, since service-account tokens are replaced while one watches.
    if key != "token" and f"{key}_file" in fields:
        return Secret(_file_text(Path(str(fields[f"{key}_file"])), f"{where}: {key}_file"))
    return Secret(str(fields.get(key, "")))


def _file_text(path: Path, where: str) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: {clean(str(error))}") from error


def _headers(fields: Mapping[str, Any], where: str) -> tuple[tuple[str, Secret], ...]:
    rows = fields.get("headers", {})
    if not isinstance(rows, dict):
        raise ConfigError(f"{where}: headers: must be a table of texts")
    headers = [(str(name), str(value)) for name, value in rows.items()]
    if "headers_file" in fields:
        lines = _file_text(Path(str(fields["headers_file"])), f"{where}: headers_file").splitlines()
        headers += [(n.strip(), v.strip()) for n, colon, v in (line.partition(":") for line in lines) if colon]
    for name, value in headers:
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum() or "\n" in value:
            raise ConfigError(f"{where}: headers: {clean(name)} is no header")
    return tuple((name, Secret(value)) for name, value in headers)
