"""Putting settings together: flag, then environment, then file, then what was detected, then default."""

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gputop.config.endpoints import Row, endpoint, has_credentials, user_path
from gputop.config.errors import ConfigError, nearest
from gputop.config.settings import ENDPOINT_ENV, SETTINGS, Setting, Type
from gputop.model.endpoint import Endpoint
from gputop.model.text import clean

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_SWITCH_WORDS: Final = "must be one of 1, 0, true, false, yes, no, on, off"
WITH_DEMO: Final = "the demo and a bundle cannot both be read: name one of them"
_TABLES: Final = {"prometheus": "prometheus_urls", "exporter": "exporters_urls"}
"""The setting that names servers of a kind, by the kind's table in config.toml."""

_KINDS: Final[Mapping[Type, tuple[tuple[type, ...], str]]] = {
    Type.TEXT: ((str,), "must be a text"),
    Type.PATH: ((str,), "must be a text"),
    Type.TEXTS: ((list, tuple), "must be a list of texts"),
    Type.SWITCH: ((bool,), "must be true or false"),
    Type.NUMBER: ((int, float), "must be a number"),
    Type.COUNT: ((int,), "must be a whole number"),
    Type.CHOICE_OR_FLAG: ((str,), "must be a text"),
}


class Config:
    """All settings with their values.

    Each name of `SETTINGS` is an attribute, typed below (a test holds the two together). Addresses in
    `prometheus_urls` and `exporters_urls` are without credentials; those are in the endpoints.

    Attributes:
        prometheus: Prometheus servers to read.
        exporters: Exporters to read directly.
    """

    interval: float
    timeout: float
    nvml: bool | None
    nvml_only: bool
    host_name: str
    processes: bool
    profiling: bool
    prometheus_urls: tuple[str, ...]
    exporters_urls: tuple[str, ...]
    selector: str
    cluster: str
    detect: bool
    pane: str
    theme: str
    ascii: bool
    color: bool
    mouse: bool
    read_only: bool
    log_file: str
    bundle: tuple[str, ...]
    at: str
    demo: str | None
    demo_seed: int
    demo_nodes: int | None

    def __init__(
        self,
        values: Mapping[str, object],
        origins: Mapping[str, str],
        endpoints: Mapping[str, tuple[Endpoint, ...]],
    ) -> None:
        self.__dict__.update(values)
        self._origins = dict(origins)
        self.prometheus = endpoints["prometheus"]
        self.exporters = endpoints["exporter"]

    def origin(self, name: str) -> str:
        """Return where a setting's value comes from: an option, a variable, a file, or "default"."""
        return self._origins.get(name, "default")

    def items(self) -> list[tuple[str, object, str]]:
        """Return (name, value, origin) of every setting; there is no secret in them."""
        return [(s.name, getattr(self, s.name), self.origin(s.name)) for s in SETTINGS]


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
        folder = Path()
        if setting.name in flags:
            value = flags[setting.name]
            origin = setting.negative if value is False else setting.flag
        elif setting.env and env.get(setting.env, "") != "":
            value, origin = _from_text(setting, env[setting.env]), setting.env
        elif setting.name in table:
            value, origin, folder = table[setting.name], str(file), file.parent
        else:
            values[setting.name] = setting.default
            continue
        value = _checked(setting, value, f"{origin}: {setting.name}" if origin == str(file) else origin)
        if setting.type is Type.PATH and value:
            value = str(user_path(str(value), folder, env))
        values[setting.name] = value
        origins[setting.name] = origin
    if values["bundle"] and origins.get("demo", "").startswith("--"):
        # GPUTOP_DEMO may stand in a profile; a bundle named for this run is read all the same.
        raise ConfigError(f"{origins['demo']}, {origins['bundle']}: {WITH_DEMO}")
    endpoints = {kind: _endpoints(kind, values, origins, table, env, file) for kind in _TABLES}
    for kind, name in _TABLES.items():
        values[name] = tuple(e.url for e in endpoints[kind]) if values[name] else ()
    return Config(values, origins, endpoints)


def _read(file: Path, *, required: bool) -> dict[str, Any]:
    try:
        if file.exists() and not (file.is_file() or file.is_dir()):
            # A device or a pipe that nobody writes to would be read for ever.
            raise ConfigError(f"{file}: is no plain file")
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        if required:
            raise ConfigError(f"{file}: there is no such file") from None
        return {}
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: {clean(str(error))}") from None
    import tomllib  # noqa: PLC0415 - most machines have no such file

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{file}: {clean(str(error))}") from None


def _refuse_unknown(table: Mapping[str, Any], file: Path) -> None:
    known = [s.name for s in SETTINGS if s.in_file] + list(_TABLES)
    for key in table:
        if key not in known:
            raise ConfigError(f"{file}: {clean(key)}: no such setting{nearest(key, known)}")


def _from_text(setting: Setting, text: str) -> object:
    if setting.type is Type.TEXTS:
        return [part.strip() for part in text.split(",") if part.strip()]
    if setting.type is Type.SWITCH:
        return _switch(setting.env, text)
    if setting.type in {Type.NUMBER, Type.COUNT}:
        try:
            return float(text) if setting.type is Type.NUMBER else int(text)
        except ValueError:
            raise ConfigError(f"{setting.env}: {clean(text)} is not a number") from None
    return text


def _switch(name: str, text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in _TRUE | _FALSE:
        raise ConfigError(f"{name}: {_SWITCH_WORDS}")
    return lowered in _TRUE


def _checked(setting: Setting, value: object, where: str) -> object:
    types, words = _KINDS[setting.type]
    if not isinstance(value, types) or (isinstance(value, bool) and setting.type is not Type.SWITCH):
        raise ConfigError(f"{where}: {words}")
    if isinstance(value, list | tuple):
        if not all(isinstance(v, str) for v in value):
            raise ConfigError(f"{where}: {words}")
        value = tuple(value)
    if setting.type is Type.NUMBER and isinstance(value, int | float):
        try:
            value = float(value)
        except OverflowError:
            # A whole number of TOML has any length.
            value = math.inf
    for one in value if isinstance(value, tuple) else (value,):
        reason = setting.check(one) if setting.check else ""
        if reason:
            raise ConfigError(f"{where}: {f'{one:g}' if isinstance(one, float) else clean(str(one))} {reason}")
    return value


def _endpoints(
    kind: str,
    values: Mapping[str, object],
    origins: Mapping[str, str],
    table: Mapping[str, Any],
    env: Mapping[str, str],
    file: Path,
) -> tuple[Endpoint, ...]:
    tables = table.get(kind, [])
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise ConfigError(f"{file}: {kind}: must be a table [[{kind}]]")
    name = _TABLES[kind]
    urls = values[name]
    assert isinstance(urls, tuple)  # noqa: S101 - told by the table
    if urls:
        # What is named for this run is what is read; the file's servers are for when nothing is named.
        rows = [_given(kind, url, origins[name], env) for url in urls]
    else:
        rows = [Row(t, f"{file}: [[{kind}]]", str(file), file.parent, env) for t in tables]
    selector, cluster = str(values["selector"]), str(values["cluster"])
    return tuple(endpoint(row, selector=selector, cluster=cluster) for row in rows)


def _given(kind: str, url: str, origin: str, env: Mapping[str, str]) -> Row:
    """Return what is said of a server that an option or a variable names."""
    if origin.startswith("--") and has_credentials(url):
        raise ConfigError(
            f"{origin}: credentials do not belong on a command line, which every user of the machine can read; "
            f"use {ENDPOINT_ENV['password_file']} or config.toml"
        )
    fields: dict[str, Any] = {"url": url}
    if kind == "prometheus":
        fields |= {key: env[name] for key, name in ENDPOINT_ENV.items() if env.get(name)}
    if "insecure" in fields:
        fields["insecure"] = _switch(ENDPOINT_ENV["insecure"], fields["insecure"])
    if "token_command" in fields:
        try:
            fields["token_command"] = shlex.split(fields["token_command"])
        except ValueError:
            raise ConfigError(f"{ENDPOINT_ENV['token_command']}: a quote is not closed") from None
    return Row(fields, origin, origin, Path(), env)
