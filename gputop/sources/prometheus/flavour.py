"""Which server speaks the Prometheus API, as told by its answers; and what it wants to be asked with.

Sources: HTTP API documentation of Prometheus ("Build information"), of Thanos Query (partial_response, dedup,
stores), of Mimir (build information with `application`) and of VictoriaMetrics (`isPartial`).
"""

from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from gputop.model.text import clean

_MANAGED: Final = (
    ("monitoring.googleapis.com", "Google Managed Prometheus"),
    (".prometheus.monitor.azure.com", "Azure Monitor"),
    (".amazonaws.com", "Amazon Managed Prometheus"),
)
"""End of a host name, and whose service it is: these tell no version."""

_PARAMETERS: Final = {"Thanos": {"partial_response": "true", "dedup": "true"}}
"""What a query carries: a store that is down then costs its own part, which Thanos says in a warning."""


class Flavour(Struct, frozen=True):
    """A kind of server.

    Attributes:
        name: "Prometheus", "Thanos", "VictoriaMetrics", or what the server calls itself.
        version: Its version, "" if not told.
        parameters: Form fields that go with each query.
    """

    name: str = "Prometheus"
    version: str = ""
    parameters: dict[str, str] = {}


def flavour(url: str, build: bytes | None, *, is_partial_told: bool, has_stores: bool) -> Flavour:
    """Return the kind of server.

    Args:
        url: Its address.
        build: The data of its answer at status/buildinfo, None if it has none.
        is_partial_told: Its answers to queries say whether they are partial.
        has_stores: It has the endpoint `stores`, which is Thanos' own.
    """
    fields = _fields(build)
    version = clean(fields.get("version", ""), 40)
    host = urlsplit(url).hostname or ""
    managed = next((name for end, name in _MANAGED if host.endswith(end)), "")
    if managed:
        name = managed
    elif fields.get("application"):
        name = clean(fields["application"], 40)
    elif is_partial_told:
        # Its build information names the Prometheus it is compatible with, not itself.
        name, version = "VictoriaMetrics", ""
    elif has_stores:
        name = "Thanos"
    else:
        name = "Prometheus"
    return Flavour(name, version, _PARAMETERS.get(name, {}))


def _fields(build: bytes | None) -> dict[str, str]:
    if build is None:
        return {}
    try:
        return {k: v for k, v in msgspec.json.decode(build, type=dict[str, object]).items() if isinstance(v, str)}
    except msgspec.MsgspecError:
        return {}
